// SPDX-License-Identifier: Apache-2.0

// Package content turns the files of a source into the objects of a Release: the
// pure part of render, the second step of the flow source -> render -> store ->
// deliver -> apply -> observe -> report. It opens no file, dials nobody and keeps
// nothing, so the hub runs it in a worker and a command on a laptop can call it
// directly.
package content
