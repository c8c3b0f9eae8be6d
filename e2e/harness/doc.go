// SPDX-License-Identifier: Apache-2.0

// Package harness runs whole Kubernetes control planes, and programs beside
// them, as plain processes on loopback, for tests, the demo and benchmarks. It
// stands outside the flow source -> render -> store -> deliver -> apply ->
// observe -> report and watches all of it from there: real API servers, real
// controllers, real audit logs.
//
// # Planes
//
// A [Plane] is etcd, kube-apiserver and, unless the [Options] say otherwise,
// kube-controller-manager, kube-scheduler and kwok with one node. Each has
// certificate authorities of its own. The kubeconfig that a plane hands out
// belongs to the group [AdminGroup], bound to cluster-admin; system:masters is
// used for that one binding, by the user [BootstrapUser], and never again.
//
// # Nothing left behind
//
// Every child belongs to a small supervisor process (folder supervisor) in a
// process group of its own. It holds the reading end of a pipe; when the
// harness ends, even by SIGKILL, the pipe ends, and the supervisor kills what
// it started, descendants included, and removes the folders. The supervisor is
// a program of its own and not the test binary started again: it needs no hook
// in anybody's TestMain, it is a few MiB without Kubernetes in it, and it is
// never a race or coverage build.
//
// # Pods
//
// [Plane.RunPod] starts the container of a Deployment as a process that sees
// what a kubelet and an image would have given it; see [PodOptions].
package harness
