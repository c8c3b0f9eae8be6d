// SPDX-License-Identifier: Apache-2.0

package source

import "context"

// SecretGetter reads Secrets of the host cluster.
type SecretGetter interface {
	// GetSecret gives the data of a Secret. ErrSecretNotFound if there is none,
	// ErrNoHostCluster if there is nobody to ask.
	GetSecret(ctx context.Context, namespace, name string) (map[string][]byte, error)
}
