// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/pkg/tunnel"
)

// delete takes a deleted Release to its last order, and lets it go when that is
// safe in etcd and, for a remove order, carried out: by a connected cluster always,
// by one that is away where the Release says so.
func (r *Reconciler) delete(ctx context.Context, key types.NamespacedName, release *v1alpha1.Release) (reconcile.Result, error) {
	if !slices.Contains(release.Finalizers, v1alpha1.FinalizerRelease) {
		return reconcile.Result{}, nil
	}
	if pending, err := r.removalPending(ctx, key, release); pending != nil || err != nil {
		return reconcile.Result{RequeueAfter: blockedPause}, errors.Join(err, r.deleting(ctx, key, release, "", pending))
	}
	grave, err := r.bury(ctx, key, release)
	if err != nil && !errors.Is(err, deliver.ErrNothingOrdered) {
		return reconcile.Result{}, errors.Join(err, r.deleting(ctx, key, release, "", nil))
	}
	if err == nil && grave.Verb == tunnel.VerbRemove && !grave.Done {
		cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: key.Namespace, Name: release.Spec.ClusterRef.Name})
		switch {
		case !ok || cluster.UID != grave.ClusterUID:
			// Nobody is left who could carry it out.
		case cluster.Status.Reachable:
			return r.wait(ctx, key, release, grave)
		case release.Spec.DeletionPolicy.BlockOnClusterUnreachable:
			return r.block(ctx, key, release, cluster)
		}
	}
	if err := r.Reporter.DeleteInventory(ctx, key); err != nil {
		return reconcile.Result{}, fmt.Errorf("let %s go: %w", key, err)
	}
	if err := r.Store.RemoveFinalizer(ctx, key, release.UID, v1alpha1.FinalizerRelease); err != nil {
		return reconcile.Result{}, fmt.Errorf("let %s go: %w", key, err)
	}
	verb := "none"
	if grave.Verb != "" {
		verb = string(grave.Verb)
	}
	r.metrics.deleted.WithLabelValues(verb).Inc()
	logr.FromContextOrDiscard(ctx).Info("Release is gone", "verb", verb, "sequence", grave.Sequence, "done", grave.Done)
	return reconcile.Result{}, nil
}

// bury makes the last order. Its verb is decided once; only a wish to keep the
// workloads changes it afterwards, and the spec as whom and how they are deleted.
func (r *Reconciler) bury(ctx context.Context, key types.NamespacedName, release *v1alpha1.Release) (deliver.Tombstone, error) {
	grave, buried := r.Graves.Buried(release.UID)
	keep := release.Spec.DeletionPolicy.KeepWorkloads
	if buried && (grave.Done || grave.Verb == tunnel.VerbRelease || !keep && grave.Says(r.removal(release))) {
		return grave, nil
	}
	last, clusterUID := deliver.LettingGo(), grave.ClusterUID
	if buried && !keep {
		last = r.removal(release)
	}
	if !buried {
		if _, ok := r.Orders.Ordered(release.UID); !ok {
			return deliver.Tombstone{}, deliver.ErrNothingOrdered
		}
		cluster, ok := r.Cache.Cluster(types.NamespacedName{Namespace: key.Namespace, Name: release.Spec.ClusterRef.Name})
		if !ok {
			// The Cluster is gone, and with it the identity that could fetch an order.
			return deliver.Tombstone{}, deliver.ErrNothingOrdered
		}
		// One that was made anew under the name has the same workloads, or nothing.
		clusterUID = cluster.UID
		if !keep {
			verb, err := r.verb(ctx, release)
			if err != nil {
				return deliver.Tombstone{}, err
			}
			if verb == tunnel.VerbRemove {
				last = r.removal(release)
			}
		}
	}
	if last.Verb == tunnel.VerbRemove {
		var err error
		if last.Fence, err = r.Reporter.Fence(ctx, key, release.UID); err != nil {
			return deliver.Tombstone{}, fmt.Errorf("bury %s: %w", key, err)
		}
	}
	return r.Graves.Bury(ctx, release, clusterUID, last)
}

// removal is what a remove order says, but for the fence. To let go needs no account:
// one that is gone must not keep what is let go.
func (r *Reconciler) removal(release *v1alpha1.Release) deliver.Last {
	last := deliver.Removal()
	policy := policyOf(release, release.Status.Render)
	if ordered, ok := r.Orders.Ordered(release.UID); ok {
		policy.Namespace = ordered.Policy.Namespace
	}
	last.ServiceAccount, last.Allowed, last.Propagation = accountOf(release, policy.Namespace), policy.Allowed, policy.Propagation
	last.Actions = r.actions(release)
	return last
}

// actions on hooks that a remove order carries: what the one before did, since the agent
// may not have seen it, and what is asked for now. Each names one run, and does nothing
// a second time.
func (r *Reconciler) actions(release *v1alpha1.Release) []tunnel.HookAction {
	grave, _ := r.Graves.Buried(release.UID)
	before := grave.Actions()
	action, ok := readAction(requested(release).hook)
	if !ok || len(before) > 0 && before[len(before)-1] == action {
		return before
	}
	return merged(deliver.Once{Actions: before}, deliver.Once{Actions: []tunnel.HookAction{action}}).Actions
}

// verb is remove only when it is certain that somebody meant this Release. The
// API server holds what the garbage collector asks for, so that an owner which
// does not exist is not the cause here.
func (r *Reconciler) verb(ctx context.Context, release *v1alpha1.Release) (tunnel.Verb, error) {
	if slices.Contains(release.Finalizers, metav1.FinalizerOrphanDependents) {
		return tunnel.VerbRelease, nil // deleted with the wish to orphan
	}
	if r.Namespaces == nil {
		return tunnel.VerbRemove, nil
	}
	state, err := r.Namespaces.State(ctx, release.Namespace)
	switch {
	case err != nil && r.Clock.Since(release.DeletionTimestamp.Time) < uncertainFor:
		return "", err
	case err != nil:
		logr.FromContextOrDiscard(ctx).Error(err, "The host does not say whether the namespace is being deleted; the workloads stay")
		return tunnel.VerbRelease, nil
	case state.Terminating && !state.Uninstall:
		return tunnel.VerbRelease, nil
	}
	return tunnel.VerbRemove, nil
}

// wait for the agent. When that takes longer than the Release's timeout, its
// status says so, and the agent's reports say what blocks.
func (r *Reconciler) wait(ctx context.Context, key types.NamespacedName, release *v1alpha1.Release, grave deliver.Tombstone) (reconcile.Result, error) {
	timeout := time.Duration(policyOf(release, release.Status.Render).TimeoutSeconds) * time.Second
	if left := timeout - r.Clock.Since(release.DeletionTimestamp.Time); left > 0 {
		var goesOn *report.Finding // what it waited for before does not stay
		if ready := meta.FindStatusCondition(release.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonHandOver {
			goesOn = waitsFor(v1alpha1.ReasonDeleting, "what it waited for is over; the remove order is at the agent")
		}
		return reconcile.Result{RequeueAfter: left}, r.deleting(ctx, key, release, requested(release).hook, goesOn)
	}
	message := fmt.Sprintf("the agent of Cluster %q has not carried out the remove order %d%s; set spec.deletionPolicy.keepWorkloads to let go without it",
		release.Spec.ClusterRef.Name, grave.Sequence, obstacle(&release.Status))
	return reconcile.Result{RequeueAfter: lastBackoff}, r.deleting(ctx, key, release, requested(release).hook, waitsFor(v1alpha1.ReasonDeleting, message))
}

// obstacle is what the agent has said that its last order waits for; empty when it
// has said nothing of it. What it said of the order before is not meant.
func obstacle(status *v1alpha1.ReleaseStatus) string {
	last := status.LastOperation
	if last == nil || last.Type != v1alpha1.OperationRemove && last.Type != v1alpha1.OperationRelease {
		return ""
	}
	said := last.Message
	if said == "" && len(status.Exceptions) > 0 {
		e := &status.Exceptions[0]
		said = fmt.Sprintf("%s %s: %s", e.Kind, strings.TrimPrefix(e.Namespace+"/"+e.Name, "/"), cmp.Or(e.Message, e.Reason))
	}
	if said == "" {
		return ""
	}
	if len(said) > maxObstacleBytes {
		said = strings.ToValidUTF8(said[:maxObstacleBytes], "") + "..."
	}
	return ", it says: " + said
}

// block until the cluster is back: its remove order is stored, and the Release
// stays to show that it was not carried out.
func (r *Reconciler) block(ctx context.Context, key types.NamespacedName, release *v1alpha1.Release, cluster *v1alpha1.Cluster) (reconcile.Result, error) {
	since := ""
	if ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		since = " since " + ready.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	message := fmt.Sprintf("Cluster %q is not reachable%s, and the objects are removed when it is back. "+
		"To let go now: set spec.deletionPolicy.blockOnClusterUnreachable to false, and the removal waits for the cluster alone; or keepWorkloads to true, and nothing is removed",
		cluster.Name, since)
	return reconcile.Result{RequeueAfter: blockedPause}, r.deleting(ctx, key, release, requested(release).hook, waitsFor(v1alpha1.ReasonBlockedOnCluster, message))
}

func waitsFor(reason, message string) *report.Finding {
	return &report.Finding{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// deleting says in the status that a Release is being deleted, and what that waits for;
// nil: what was said of it stays. hook is the request that the last order has taken in;
// empty: none.
func (r *Reconciler) deleting(ctx context.Context, key types.NamespacedName, release *v1alpha1.Release, hook string, waits *report.Finding) error {
	err := r.Reporter.Release(ctx, key, release.UID, report.Outcome{
		Generation: release.Status.ObservedGeneration, HookRequest: hook, Deleting: waits,
	})
	if err != nil && !errors.Is(err, report.ErrGone) {
		return fmt.Errorf("report on %s: %w", key, err)
	}
	return nil
}
