// SPDX-License-Identifier: Apache-2.0

// Package link is the agent's end of the link to the hub: it joins with a token,
// dials through whatever proxies there are, keeps a session, hands verified
// orders to the engine (deliver to apply), fetches renders, and brings reports
// back (observe to report). With the hub away it goes on trying; the engine does
// not need it.
package link
