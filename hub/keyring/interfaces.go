// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Vault keeps keys by the names of SecretNames.
type Vault interface {
	// Get gives what is stored, empty when nothing is, with a version of it.
	// ErrNotFound when there is no such name.
	Get(ctx context.Context, name string) (data map[string][]byte, version string, err error)
	// Update stores, if what is there still has that version; else ErrConflict.
	Update(ctx context.Context, name string, data map[string][]byte, version string) error
}

// APIServices reads and updates the APIServices of the host cluster; a client-go
// dynamic resource client is one.
type APIServices interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Update(ctx context.Context, obj *unstructured.Unstructured, options metav1.UpdateOptions, subresources ...string) (*unstructured.Unstructured, error)
}
