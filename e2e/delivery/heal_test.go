// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"strings"
	"testing"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// TestTwoEditsInsideOneSecondAreBothHealed: managedFields times have a grain of
// a second, so that the second edit leaves no trace in them.
func TestTwoEditsInsideOneSecondAreBothHealed(t *testing.T) {
	ctx := deadline(t)
	a := newApp(ctx, t, "heal-twice", map[string]string{"app/cm.yaml": configMap("heal-twice", "settings", "a", "1", "b", "2")})
	a.release(ctx, t, a.name, "app")
	until(ctx, t, a.name, ready(""))

	edit(ctx, t, "heal-twice", "settings", `{"data":{"a":"x"}}`)
	edit(ctx, t, "heal-twice", "settings", `{"data":{"b":"y"}}`)
	onEdge(ctx, t, configMaps, "heal-twice", "settings", data("a", "1"))
	onEdge(ctx, t, configMaps, "heal-twice", "settings", data("b", "2"))
	healed := until(ctx, t, a.name, func(r *corev1alpha1.Release) bool {
		return ready("")(r) && r.Status.LastOperation != nil && r.Status.LastOperation.Type == corev1alpha1.OperationHeal
	})
	if op := healed.Status.LastOperation; op.Phase != corev1alpha1.PhaseSucceeded || !strings.Contains(op.Message, "settings") {
		t.Errorf("the heal does not say what it healed: %+v", op)
	}
}

// TestAnObjectWhoseManagedFieldsWereResetLosesTheKeysThatANewRenderDrops: after
// managedFields: [{}] the API server has forgotten which fields are ours.
func TestAnObjectWhoseManagedFieldsWereResetLosesTheKeysThatANewRenderDrops(t *testing.T) {
	ctx := deadline(t)
	const ns = "heal-reset"
	a := newApp(ctx, t, ns, map[string]string{"app/cm.yaml": configMap(ns, "settings", "keep", "1", "drop", "2")})
	a.release(ctx, t, a.name, "app")
	until(ctx, t, a.name, ready(""))

	edit(ctx, t, ns, "settings", `{"metadata":{"managedFields":[{}]}}`)
	commit := a.commit(ctx, t, map[string]string{"app/cm.yaml": configMap(ns, "settings", "keep", "1")})
	a.sync(ctx, t, a.name)
	until(ctx, t, a.name, ready(commit))
	onEdge(ctx, t, configMaps, ns, "settings", data("drop", ""))
	onEdge(ctx, t, configMaps, ns, "settings", data("keep", "1"))
}

// TestADeletedObjectComesBack, with the hub not asked.
func TestADeletedObjectComesBack(t *testing.T) {
	ctx := deadline(t)
	const ns = "heal-deleted"
	a := newApp(ctx, t, ns, map[string]string{"app/cm.yaml": configMap(ns, "settings", "a", "1")})
	a.release(ctx, t, a.name, "app")
	until(ctx, t, a.name, ready(""))
	first := onEdge(ctx, t, configMaps, ns, "settings", exists)
	if _, err := shared.edge.Plane.Kubectl(ctx, "-n", ns, "delete", "configmap", "settings"); err != nil {
		t.Fatal(err)
	}
	second := onEdge(ctx, t, configMaps, ns, "settings", exists)
	if first.GetUID() == second.GetUID() {
		t.Errorf("the object was not made again")
	}
	until(ctx, t, a.name, ready(""))
}
