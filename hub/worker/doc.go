// SPDX-License-Identifier: Apache-2.0

// Package worker runs what comes from tenants in processes of its own, so that
// whatever it does to itself (a stack overflow, all the memory it can get, a loop
// without an end) ends that process and not the hub. The first two steps of the
// flow source -> render -> store -> deliver -> apply -> observe -> report use it:
// source unpacks packs of Git servers in a fetch worker, render runs tenants'
// manifests in a render worker.
//
// A worker is the hub's own program, started again with another first argument:
// an empty environment, an empty folder of its own, stdin and stdout as pipes on
// which frames go back and forth (frame.go). It confines itself before it reads
// the first frame (Confine): resource limits, a bounded stack, and a seccomp
// filter that takes away what the job does not need. The parent watches resident
// memory and wall time and kills at the limit (process.go). A worker whose hub is
// gone reads the end of its stdin and ends.
package worker
