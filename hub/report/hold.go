// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Held writes down that a deletion of a Release was refused and can be confirmed.
// The same again within a minute is no news. ErrGone: there is no such Release.
func (r *Reporter) Held(ctx context.Context, key types.NamespacedName, uid types.UID, held v1alpha1.HeldDeletion) error {
	cached, ok := r.options.Releases.Release(key)
	if !ok || cached.UID != uid {
		return ErrGone
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return r.writeRelease(ctx, cached, releaseChange{fold: func(next *v1Release) error {
		if old := next.Status.HeldDeletion; old != nil && held.At.Sub(old.At.Time).Abs() < operationRepeat {
			same := held
			same.At = old.At
			if same == *old {
				return nil
			}
		}
		made := held
		made.Message = clip(held.Message, maxMessage)
		next.Status.HeldDeletion = &made
		return nil
	}})
}
