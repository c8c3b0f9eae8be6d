// SPDX-License-Identifier: Apache-2.0

// Package trim gives memory back that a busy time has left behind. It stands
// beside the flow source -> render -> store -> deliver -> apply -> observe ->
// report, and looks at the process as a whole.
//
// A Go process keeps garbage as large as what is live, and what collections free
// only goes back to the system bit by bit. For a hub or an agent that is right while
// it works and a waste for the hours in which nothing happens: then it is collected
// and given back at once.
package trim
