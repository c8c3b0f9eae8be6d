// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Releases are those of the hub's cache.
type Releases interface {
	ReleaseByUID(uid types.UID) (*v1alpha1.Release, bool)
}

// Keys is the part of etcd's client that is needed.
type Keys interface {
	Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error)
	Put(ctx context.Context, key, value string, options ...clientv3.OpOption) (*clientv3.PutResponse, error)
	Delete(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.DeleteResponse, error)
}
