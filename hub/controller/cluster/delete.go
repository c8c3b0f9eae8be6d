// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/report"
)

// staysForNamespace: in a namespace that goes, Releases and Clusters are deleted
// in one sweep. The Cluster is the last to go, or no agent would hear of the last
// orders and each would go on enforcing for ever. It gives the pause until that is
// looked at again; 0: the Cluster may go.
func (r *Reconciler) staysForNamespace(ctx context.Context, key types.NamespacedName, cluster *v1alpha1.Cluster) (time.Duration, error) {
	since := r.Clock.Since(cluster.DeletionTimestamp.Time)
	if r.Namespaces == nil || since > uninstallFor {
		return 0, nil
	}
	state, err := r.Namespaces.State(ctx, key.Namespace)
	switch {
	case err != nil:
		return 0, err
	case !state.Terminating, !state.Uninstall && since > lastFor:
		return 0, nil
	case len(r.Cache.ReleasesByCluster(key)) > 0, cluster.Status.Reachable && r.Orders.Waiting(cluster.UID) > 0:
		return lookAgain, nil
	}
	return 0, nil
}

// prunes: a Cluster that says so goes after its Releases. Each is deleted with its
// own policy, while the Cluster and the session of its agent still exist; then the
// last orders have to be carried out. Turning pruneReleases off lets the Cluster
// go at once, with what is left of them.
func (r *Reconciler) prunes(ctx context.Context, key types.NamespacedName, cluster *v1alpha1.Cluster) (time.Duration, error) {
	if !cluster.Spec.DeletionPolicy.PruneReleases {
		return 0, nil
	}
	if going, err := r.terminating(ctx, key.Namespace); err != nil || going {
		return 0, err // its Releases are orphaned: the Cluster has stayed for that
	}
	left := slices.DeleteFunc(slices.Clone(r.Cache.ReleasesByCluster(key)), func(release *v1alpha1.Release) bool {
		// One that was made later was not counted, and waits for another Cluster.
		return release.CreationTimestamp.After(cluster.DeletionTimestamp.Time)
	})
	for _, release := range left {
		if release.DeletionTimestamp != nil {
			continue
		}
		name := types.NamespacedName{Namespace: release.Namespace, Name: release.Name}
		if err := r.Releases.Delete(ctx, name, release.UID); err != nil {
			return 0, fmt.Errorf("delete Release %s with its Cluster: %w", name, err)
		}
	}
	waiting := r.Orders.Waiting(cluster.UID)
	if len(left) == 0 && waiting == 0 {
		return 0, nil
	}
	if err := r.tell(ctx, key, cluster, message(cluster, left, waiting)); err != nil {
		return 0, err
	}
	switch {
	case r.Clock.Since(cluster.DeletionTimestamp.Time) <= lastFor:
		return lookAgain, nil
	case cluster.Status.Reachable:
		return lookLater, nil
	}
	return lookSeldom, nil
}

func (r *Reconciler) terminating(ctx context.Context, namespace string) (bool, error) {
	if r.Namespaces == nil {
		return false, nil
	}
	state, err := r.Namespaces.State(ctx, namespace)
	return state.Terminating, err
}

// message says how far the deletion is, and what blocks it.
func message(cluster *v1alpha1.Cluster, left []*v1alpha1.Release, waiting int) string {
	var parts []string
	if len(left) > 0 {
		slices.SortFunc(left, func(a, b *v1alpha1.Release) int { return strings.Compare(a.Name, b.Name) })
		names := make([]string, 0, named)
		for _, release := range left[:min(named, len(left))] {
			names = append(names, release.Name)
		}
		text := fmt.Sprintf("%d Releases are left: %s", len(left), strings.Join(names, ", "))
		if more := len(left) - named; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text)
		for _, release := range left {
			if ready := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonBlockedOnCluster {
				parts = append(parts, fmt.Sprintf("%s waits for the cluster, as its deletionPolicy says", release.Name))
				break
			}
		}
	}
	if waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d last orders are not carried out", waiting))
	}
	if !cluster.Status.Reachable {
		text := "the cluster is not reachable"
		if ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			text += " since " + ready.LastTransitionTime.UTC().Format(time.RFC3339)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ") + ". Set spec.deletionPolicy.pruneReleases to false to let the Cluster go at once: what is left then stays on the cluster"
}

// progress is what was last said of a deletion.
type progress struct {
	message string
	at      time.Time
}

// tell writes the progress of a deletion when it is news, and not too often.
func (r *Reconciler) tell(ctx context.Context, key types.NamespacedName, cluster *v1alpha1.Cluster, message string) error {
	now := r.Clock.Now()
	r.mu.Lock()
	last, known := r.told[key]
	r.mu.Unlock()
	if known && (last.message == message || now.Sub(last.at) < tellEvery) {
		return nil
	}
	err := r.Reporter.Cluster(ctx, key, cluster.UID, func(status *v1alpha1.ClusterStatus) error {
		report.SetDeleting(status, message)
		return nil
	})
	if err != nil && !errors.Is(err, report.ErrGone) {
		return fmt.Errorf("report on the deletion of Cluster %s: %w", key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[key] = progress{message: message, at: now}
	return nil
}

// forget a Cluster that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, key)
}
