// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kumodo.io/convoy/hub/store"
)

// Options of a Backup. All are required.
type Options struct {
	// Etcd holds the keys, all of them under Prefix (no slash at the end).
	Etcd   Etcd
	Prefix string
	// Skip are names below Prefix that are no part of a backup: what a hub writes for
	// itself when it starts.
	Skip []string
	// Renders hold the blobs.
	Renders store.Backend
	// HubID is the hub whose keys are loaded.
	HubID string
	// Restored is called when a restore has come to its end. It must not block.
	Restored func()
}

// Etcd is what is used of a client.
type Etcd interface {
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Txn(ctx context.Context) clientv3.Txn
	Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error)
}

// Backup reads and writes what a hub has stored.
type Backup struct {
	options Options

	mu      sync.Mutex
	pending map[string]*part // blobs that are restored in parts; guarded by mu
}

// New makes a Backup. It starts nothing.
func New(o Options) (*Backup, error) {
	if o.Etcd == nil || o.Prefix == "" || o.Renders == nil || o.HubID == "" || o.Restored == nil {
		return nil, errors.New("backup: Etcd, Prefix, Renders, HubID and Restored are required")
	}
	return &Backup{options: o, pending: map[string]*part{}}, nil
}

// pass is one part of a backup, in the order in which a restore needs them: blobs
// before the orders that name them, Clusters and health rules before Releases.
type pass struct {
	name string
	// folder of the render store; else a range of etcd.
	folder string
	// under is the prefix below Options.Prefix, and rest says that this is what no
	// other pass has.
	under string
	rest  bool
}

var passes = []pass{
	{name: "renders", folder: "sha256"},
	{name: "sealed", folder: "sealed"},
	{name: "orders", under: "/orders/"},
	{name: "clusters", under: "/core.convoy.kumodo.io/clusters/"},
	{name: "sources", under: "/source.convoy.kumodo.io/"},
	{name: "extensions", under: "/extensions.convoy.kumodo.io/"},
	{name: "releases", under: "/core.convoy.kumodo.io/releases/"},
	{name: "rest", under: "/", rest: true},
}
