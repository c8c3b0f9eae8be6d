// SPDX-License-Identifier: Apache-2.0

package options

import "errors"

var (
	// ErrNoEtcd is returned when the hub is not told where to store.
	ErrNoEtcd = errors.New("where to store? Give --etcd-servers, or --embedded-etcd with --data-dir (one replica only)")
	// ErrTwoEtcds is returned when it is told twice.
	ErrTwoEtcds = errors.New("--etcd-servers and --embedded-etcd exclude each other")
	// ErrNoDataDir is returned when something needs a directory.
	ErrNoDataDir = errors.New("--data-dir is needed: the hub keeps its renders there, the embedded etcd its data and a standalone hub its keys")
	// ErrRoles is returned for roles that cannot run apart yet.
	ErrRoles = errors.New(`--roles must be "all": roles do not run apart yet`)
	// ErrStandaloneOnly is returned for a flag without meaning beside a host cluster.
	ErrStandaloneOnly = errors.New("can be used with --standalone only")
	// ErrStandalone is returned for a flag without meaning in standalone mode.
	ErrStandalone = errors.New("cannot be used with --standalone: there is no host cluster")
	// ErrInvalid is returned for a value that cannot be right.
	ErrInvalid = errors.New("invalid value")
	// ErrHost is returned when the host cluster's configuration cannot be read.
	ErrHost = errors.New("no host cluster: give --kubeconfig, run in a cluster, or use --standalone")
)
