// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// Cache is the hub's cache. What is returned is shared and read only.
type Cache interface {
	// RuleSet by namespace and name; without a namespace it is a global one.
	RuleSet(key types.NamespacedName) (v1alpha1.RuleSet, bool)
	// RuleSets of a namespace, or the global ones, in no order.
	RuleSets(namespace string) []v1alpha1.RuleSet
	Releases() []*corev1alpha1.Release
}

// Reporter writes the status.
type Reporter interface {
	RuleSet(ctx context.Context, set v1alpha1.RuleSet, outcome report.RuleSetOutcome) error
}

// Store keeps documents under their digests.
type Store interface {
	// Put returns when the bytes survive a crash. Putting them again is allowed.
	Put(ctx context.Context, document []byte) error
}

// Orders are what clusters are to do.
type Orders interface {
	// Ordered is the current apply order, if this hub signed it.
	Ordered(release types.UID) (tunnel.Order, bool)
}

// Enqueue has a Release looked at after a pause.
type Enqueue func(release types.NamespacedName, after time.Duration)
