// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatAnotherHasTakenOverAndDeletedIsNotMadeAgainAfterARestart(t *testing.T) {
	inModes(t, testWhatAnotherHasTakenOverAndDeletedIsNotMadeAgainAfterARestart)
}

func testWhatAnotherHasTakenOverAndDeletedIsNotMadeAgainAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("taken-over")
	b.apply("taken-over", ns, configMap(ns, "passed", "k", "v")+configMap(ns, "ours", "k", "v"))
	b.edit(configmaps, ns, "passed", "convoy", `{"metadata":{"annotations":{"convoy.kumodo.io/owner":"otherhub/newer"}}}`)
	r := b.report("uid-taken-over", "whose it is", func(r tunnel.Report) bool {
		return len(r.Exceptions) == 1 && r.Exceptions[0].Reason == "OwnedByOther" && strings.Contains(r.Exceptions[0].Message, "otherhub/newer")
	})
	if strings.Contains(r.InSync.Message, "all objects") || r.InSync.Status == tunnel.True {
		t.Errorf("InSync is %+v", r.InSync)
	}
	if err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Delete(b.ctx, "passed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.restartInMode()
	// The one proves that the engine repairs, so that it would have repaired the other.
	b.edit(configmaps, ns, "ours", "somebody", `{"data":{"k":"edited"}}`)
	b.live(configmaps, ns, "ours", "repaired", healedTo("v"))
	b.report("uid-taken-over", "whose it was", func(r tunnel.Report) bool {
		return len(r.Exceptions) == 1 && r.Exceptions[0].Reason == "OwnedByOther" && r.InSync.Status == tunnel.False
	})
	b.gone(configmaps, ns, "passed")
	// An order that has it makes it again.
	b.apply("taken-over", ns, configMap(ns, "passed", "k", "again")+configMap(ns, "ours", "k", "v"))
	b.live(configmaps, ns, "passed", "made again", healedTo("again"))
}

func TestABindingByWhichTheAccountActsIsNotReplaced(t *testing.T) {
	inModes(t, testABindingByWhichTheAccountActsIsNotReplaced)
}

func testABindingByWhichTheAccountActsIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := newIdleBench(t)
	ns := b.namespace("account-binding")
	b.serviceAccount(ns, "deployer", "admin")
	b.start()
	binding := func(name, role, account string) string {
		return `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ` + name + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + role + `}
subjects: [{kind: ServiceAccount, name: ` + account + `, namespace: ` + ns + `}]
---
`
	}
	replace := func(o *tunnel.Order) { o.Policy.Replace = true }
	bindings := configmaps
	bindings.Group, bindings.Resource = "rbac.authorization.k8s.io", "rolebindings"
	b.apply("binding", ns, binding("deployer", "admin", "deployer")+binding("other", "view", "other"), as(ns+":deployer"), replace)
	was := b.get(bindings, ns, "deployer")
	o := b.accept(b.order("binding", ns, binding("deployer", "edit", "deployer")+binding("other", "view", "other"), as(ns+":deployer"), replace))
	r := b.settled(o)
	if r.Applied.Status != tunnel.False || len(r.Exceptions) != 1 || r.Exceptions[0].Reason != "Immutable" || !strings.Contains(r.Exceptions[0].Message, "may have the right to by it") {
		t.Errorf("Applied is %+v, exceptions %+v", r.Applied, r.Exceptions)
	}
	if now := b.get(bindings, ns, "deployer"); now.GetUID() != was.GetUID() {
		t.Error("the binding of the account was replaced")
	}
	other := b.get(bindings, ns, "other")
	b.apply("binding", ns, binding("deployer", "admin", "deployer")+binding("other", "edit", "other"), as(ns+":deployer"), replace)
	if now := b.get(bindings, ns, "other"); now.GetUID() == other.GetUID() {
		t.Error("the binding of another account was not replaced")
	}
}
