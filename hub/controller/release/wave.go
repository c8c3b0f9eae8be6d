// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/precedence"
	"kumodo.io/convoy/hub/report"
)

// blocker is a Release that another waits for.
type blocker struct {
	key     types.NamespacedName
	finding *report.Finding
}

// blocked says which Release has to be ready before a render of this one is applied;
// nil: none. The one that is named enqueues this one when it changes.
func (r *Reconciler) blocked(w *work) *report.Finding {
	var last types.NamespacedName
	for range maxBlockers {
		b := r.blocker(w)
		if b == nil {
			return nil
		}
		if b.key == last {
			return b.finding
		}
		// It may have become ready since it was looked at, and told nobody: it is looked
		// at once more when it knows who waits.
		r.waiters.add(b.key, w.key)
		last = b.key
	}
	w.soon = true
	return r.blockerOr(w)
}

// blockerOr is the finding of a last look.
func (r *Reconciler) blockerOr(w *work) *report.Finding {
	if b := r.blocker(w); b != nil {
		return b.finding
	}
	return nil
}

// blocker is the first Release that comes before this one and is not ready.
func (r *Reconciler) blocker(w *work) *blocker {
	release := w.release
	var lowest *v1alpha1.Release
	why := ""
	cluster := types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}
	for _, other := range r.Index.ReleasesByCluster(cluster) {
		if other.Spec.ClusterWave >= release.Spec.ClusterWave || other.DeletionTimestamp != nil || lowest != nil && !before(other, lowest) {
			continue
		}
		if reason := r.unready(w, other); reason != "" {
			lowest, why = other, reason
		}
	}
	if lowest != nil {
		return &blocker{keyOf(lowest), &report.Finding{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForWave,
			Message: short(fmt.Sprintf("waits for Release %q of clusterWave %d: %s", lowest.Name, lowest.Spec.ClusterWave, why)),
		}}
	}
	for _, on := range release.Spec.DependsOn {
		key := types.NamespacedName{Namespace: release.Namespace, Name: on.Name}
		other, ok := r.Cache.Release(key)
		why := "there is none"
		if ok {
			why = r.unready(w, other)
		}
		if why == "" {
			continue
		}
		if circle := precedence.Circle(release, lookup{r}); circle != "" {
			why = "none of these will ever be ready, each waits for the next: " + circle
		}
		return &blocker{key, &report.Finding{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonDependency,
			Message: short(fmt.Sprintf("waits for Release %q: %s", on.Name, why)),
		}}
	}
	return nil
}

// before orders what is waited for: lower waves first, then by name, so that all who
// wait name the same.
func before(a, b *v1alpha1.Release) bool {
	if a.Spec.ClusterWave != b.Spec.ClusterWave {
		return a.Spec.ClusterWave < b.Spec.ClusterWave
	}
	return a.Name < b.Name
}

// lookup is what precedence asks for.
type lookup struct{ *Reconciler }

func (l lookup) Release(key types.NamespacedName) (*v1alpha1.Release, bool) {
	return l.Cache.Release(key)
}

func (l lookup) ReleasesByCluster(cluster types.NamespacedName) []*v1alpha1.Release {
	return l.Index.ReleasesByCluster(cluster)
}

// unready says why a Release that comes before this one is not ready; empty: it is.
func (r *Reconciler) unready(w *work, other *v1alpha1.Release) string {
	if why := notReady(other); why != "" {
		return why
	}
	// On an upgrade both may come from the same new revision, and this one be looked at
	// first: then the other does not know yet that it is out of date.
	if w.revision.Key == "" || !sameSource(w.release, other) {
		return ""
	}
	if !r.seen.has(keyOf(other), seen{other.UID, other.Generation, w.revision.Key}) {
		r.Add(keyOf(other))
		return fmt.Sprintf("it has not been looked at yet at %s", w.revision.Display)
	}
	if c := meta.FindStatusCondition(other.Status.Conditions, v1alpha1.ConditionRendered); c != nil && c.Status != metav1.ConditionTrue {
		return fmt.Sprintf("Rendered is %s: %s: %s", c.Status, c.Reason, c.Message)
	}
	return ""
}

// notReady says why a Release is not applied and healthy at its current generation and
// with its current render, as far as its status tells.
func notReady(release *v1alpha1.Release) string {
	status := &release.Status
	switch {
	case release.DeletionTimestamp != nil:
		return "it is being deleted"
	case release.Spec.Suspend:
		return "it is suspended"
	case status.ObservedGeneration != release.Generation:
		return "its newest spec has not been looked at yet"
	}
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionHealthy} {
		c := meta.FindStatusCondition(status.Conditions, kind)
		switch {
		case c == nil:
			return kind + " is not known"
		case kind == v1alpha1.ConditionHealthy && c.Status == metav1.ConditionUnknown && c.Reason == v1alpha1.ReasonSuspended:
			// Somebody paused it on purpose: as waves of one render, others go on.
		case c.Status != metav1.ConditionTrue:
			return fmt.Sprintf("%s is %s: %s: %s", kind, c.Status, c.Reason, c.Message)
		case c.ObservedGeneration != release.Generation:
			return kind + " is not known of its newest spec"
		}
	}
	if status.AppliedRef != status.RenderRef {
		return "its newest render is not applied yet"
	}
	return ""
}

// sameSource says whether two Releases are rendered from the same revisions.
func sameSource(a, b *v1alpha1.Release) bool {
	return a.Spec.Source == b.Spec.Source && chartOf(a) == chartOf(b)
}

func chartOf(release *v1alpha1.Release) [2]string {
	if helm := release.Spec.Content.Helm; helm != nil && helm.Chart != nil {
		return [2]string{helm.Chart.Name, helm.Chart.Version}
	}
	return [2]string{}
}
