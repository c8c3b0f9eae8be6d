// SPDX-License-Identifier: Apache-2.0

// Package gateway is the hub's end of the links to the agents: it lets agents
// join, authenticates their sessions, carries orders and renders out (deliver)
// and reports in (report). It decides nothing about Releases: what an agent may
// have, and what becomes of what it says, is asked of small interfaces.
package gateway
