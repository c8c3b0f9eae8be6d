// SPDX-License-Identifier: Apache-2.0

package apiserver

import "errors"

var (
	// ErrEncryptionConfig refuses the library's flag: its encryption would replace
	// our compression instead of following it.
	ErrEncryptionConfig = errors.New("--encryption-provider-config is not supported yet: encrypt the disk under etcd instead")
	// ErrEtcdPrefix refuses another place in etcd.
	ErrEtcdPrefix = errors.New("--etcd-prefix must be " + EtcdPrefix)
	// ErrNoEtcd is returned when nothing says where to store.
	ErrNoEtcd = errors.New("no etcd: give --etcd-servers, or --embedded-etcd with --data-dir")
	// ErrNoHost is returned when there is neither a host cluster nor --standalone.
	ErrNoHost = errors.New("no host cluster: give --kubeconfig, run in a cluster, or use --standalone")
	// ErrFormat is returned when etcd holds what a newer hub wrote.
	ErrFormat = errors.New("etcd was written by a newer hub: run that version or a newer one")
	// ErrShards refuses a number of shards.
	ErrShards = errors.New("--shards is out of range")
	// ErrBudget refuses a budget of deletions.
	ErrBudget = errors.New("--deletion-budget-count, --deletion-budget-percent or --deletion-budget-window is out of range")
	// ErrStandaloneFlag refuses a flag that needs a host cluster.
	ErrStandaloneFlag = errors.New("cannot be used with --standalone: there is no host cluster")
)
