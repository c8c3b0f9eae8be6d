// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestTwoClustersOfOneTargetTakeNoObjectsFromEachOther: neither agent knows the Releases
// of the other. It runs before those that run at the same time, so that the first
// Cluster is the only one of the plane until the second joins.
func TestTwoClustersOfOneTargetTakeNoObjectsFromEachOther(t *testing.T) {
	ctx := deadline(t)
	const early, late = "early", "late"
	maps := func(folder string) *unstructured.Unstructured {
		t.Helper()
		object, err := edge.Dynamic().Resource(configMaps).Namespace(folder).Get(ctx, "settings", metav1.GetOptions{})
		must(t, err)
		return object
	}
	site(ctx, t, early)
	site(ctx, t, late)
	before := map[string]*unstructured.Unstructured{early: maps(early), late: maps(late)}

	for cluster, folder := range map[string]string{early: late, late: early} {
		name := cluster + "-wants-" + folder
		must(t, hub.ApplyObjects(ctx, install.Release(team, name, cluster, apps, folder)))
		got, err := harness.WaitFor(ctx, hub.Plane.Dynamic(), install.Releases, team, name, func(u *unstructured.Unstructured) (bool, error) {
			r, err := harness.As[corev1alpha1.Release](u)
			if err != nil {
				return false, err
			}
			applied := meta.FindStatusCondition(r.Status.Conditions, corev1alpha1.ConditionApplied)
			// Nothing of the kind is said before it was tried.
			return applied != nil && (applied.Status == metav1.ConditionTrue || applied.Reason == corev1alpha1.ReasonOwnedByOther), nil
		})
		must(t, err)
		raw, err := got.MarshalJSON()
		must(t, err)
		if !strings.Contains(string(raw), corev1alpha1.ReasonOwnedByOther) || !strings.Contains(string(raw), "another Cluster of this hub stands for the same cluster") {
			t.Errorf("Release %s says %s", name, raw)
		}
		now := maps(folder)
		if owner := corev1alpha1.AnnotationOwner; now.GetUID() != before[folder].GetUID() || now.GetAnnotations()[owner] != before[folder].GetAnnotations()[owner] {
			t.Errorf("the object of %s is of %q, was of %q", folder, now.GetAnnotations()[owner], before[folder].GetAnnotations()[owner])
		}
		drift(ctx, t, folder)
	}
}
