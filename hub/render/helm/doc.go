// SPDX-License-Identifier: Apache-2.0

// Package helm renders a chart as `helm template` would, from a tree in memory: no
// file, no network, no environment. It is part of render, the second step of the flow
// source -> render -> store -> deliver -> apply -> observe -> report.
//
// The engine, the merging of values and the handling of dependencies are Helm's own.
// What stands here is what is around them: the chart is read from a files.Tree, an
// archive under limits; a schema may refer to nothing outside of itself; what a
// template asks of the cluster is recorded; whether it used anything random is found
// out; errors say where and repeat no value.
package helm
