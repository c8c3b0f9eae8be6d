// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/deliver"
	"kumodo.io/convoy/pkg/tunnel"
)

// graves lists the last orders that are both given out and stored.
func (s *stage) graves() map[string]tunnel.Verb {
	s.t.Helper()
	answer, err := s.server.EtcdClient().Get(s.t.Context(), deliver.Prefix, clientv3.WithPrefix())
	if err != nil {
		s.t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, kv := range answer.Kvs {
		stored[string(kv.Key)] = true
	}
	out := map[string]tunnel.Verb{}
	orders, _, _ := s.orders.Current(s.cluster.UID)
	for _, o := range orders {
		order, err := tunnel.ParseOrder(o.Signed.Payload)
		if err != nil {
			s.t.Fatal(err)
		}
		if order.Verb != tunnel.VerbApply && stored[deliver.Prefix+s.cluster.UID+"/"+o.UID] {
			out[order.Release.Name] = order.Verb
		}
	}
	return out
}

func TestADeletedReleaseWaitsForItsAgentAndNamesItAfterTheTimeout(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	r := s.ready("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Timeout = &metav1.Duration{Duration: time.Second} })
	s.remove("web")
	s.untilCondition("web", "Ready", "False Deleting")
	grave, ok := s.orders.Buried(r.UID)
	if !ok || grave.Verb != tunnel.VerbRemove {
		t.Fatalf("the last order is %+v", grave)
	}
	s.until("web", "the name of the agent", func(r *corev1alpha1.Release) bool {
		ready := meta.FindStatusCondition(r.Status.Conditions, "Ready")
		return ready != nil && strings.HasPrefix(ready.Message, `the agent of Cluster "edge" has not carried out the remove order`)
	})
	s.done(r.UID, grave.Sequence)
	s.untilGone("web")
	if _, err := s.server.Storage().Inventories.Get(t.Context(), key("web")); err == nil {
		t.Error("the inventory is still there")
	}
	s.eventually("no last order", func() bool { return len(s.graves()) == 0 })
}

func (s *stage) eventually(what string, is func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("never came to %s", what)
		}
	}
}

func TestADeletedReleaseOfAnAbsentClusterGoesAtOnceAndLeavesItsOrder(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.reachable(false)
	s.remove("web")
	s.untilGone("web")
	if got := s.graves(); len(got) != 1 || got["web"] != tunnel.VerbRemove {
		t.Errorf("last orders: %v", got)
	}
}

func TestAClusterThatIsLostLetsADeletionGo(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.remove("web")
	s.eventually("a last order", func() bool { return len(s.graves()) == 1 })
	s.reachable(false)
	s.untilGone("web")
}

func TestKeepWorkloadsReleasesAndIsTheWayOutOfADeletionThatHangs(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("kept", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
	s.remove("kept")
	s.untilGone("kept")
	s.ready("web")
	s.remove("web")
	s.eventually("a remove order", func() bool { return s.graves()["web"] == tunnel.VerbRemove })
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
	s.untilGone("web")
	if got := s.graves(); got["web"] != tunnel.VerbRelease || got["kept"] != tunnel.VerbRelease {
		t.Errorf("last orders: %v", got)
	}
}

func TestAReleaseThatWasNeverOrderedIsDeletedAtOnce(t *testing.T) {
	s := newStage(t)
	s.create("web")
	s.untilCondition("web", "Applied", "False ClusterNotReady")
	s.remove("web")
	s.untilGone("web")
	if got := s.graves(); len(got) != 0 {
		t.Errorf("last orders: %v", got)
	}
}

func TestWhatADeletionMeansOnAHost(t *testing.T) {
	owned := func(r *corev1alpha1.Release) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u"}}
	}
	orphaned := func(r *corev1alpha1.Release) { r.Finalizers = append(r.Finalizers, metav1.FinalizerOrphanDependents) }
	s := newStage(t, withHost)
	s.reachable(true)
	tests := []struct {
		name   string
		state  controller.NamespaceState
		change []func(*corev1alpha1.Release)
		verb   tunnel.Verb
	}{
		{"somebody", controller.NamespaceState{}, nil, tunnel.VerbRemove},
		{"namespace", controller.NamespaceState{Terminating: true}, nil, tunnel.VerbRelease},
		{"uninstall", controller.NamespaceState{Terminating: true, Uninstall: true}, nil, tunnel.VerbRemove},
		// What the garbage collector asks for never comes here: the API server holds it.
		{"owned", controller.NamespaceState{}, []func(*corev1alpha1.Release){owned}, tunnel.VerbRemove},
		{"orphan", controller.NamespaceState{}, []func(*corev1alpha1.Release){orphaned}, tunnel.VerbRelease},
	}
	for _, test := range tests {
		s.ready(test.name, test.change...)
		s.host.mu.Lock()
		s.host.state = test.state
		s.host.mu.Unlock()
		s.remove(test.name)
		s.eventually("the last order of "+test.name, func() bool { return s.graves()[test.name] == test.verb })
	}
	// A host that does not answer: not decided in a hurry.
	s.ready("silent")
	s.host.mu.Lock()
	s.host.err = errors.New("away")
	s.host.mu.Unlock()
	s.remove("silent")
	<-time.NewTimer(500 * time.Millisecond).C
	if verb, ok := s.graves()["silent"]; ok {
		t.Errorf("decided for %s", verb)
	}
	s.host.mu.Lock()
	s.host.err, s.host.state = nil, controller.NamespaceState{Terminating: true}
	s.host.mu.Unlock()
	s.untilGone("silent")
}

func TestAThousandReleasesOfADeletedNamespaceDrainAndTheClusterIsTheLast(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand Releases take some seconds")
	}
	s := newStageAlone(t, withHost, withStoppedClock)
	s.reachable(true)
	const count = 1000
	var names []string
	for i := range count {
		name := fmt.Sprintf("r%d", i)
		names = append(names, name)
		s.create(name)
	}
	for _, name := range names {
		s.untilCondition(name, "Applied", "False Progressing")
	}
	s.host.mu.Lock()
	s.host.state = controller.NamespaceState{Terminating: true}
	s.host.mu.Unlock()
	started := time.Now()
	if err := s.server.Storage().Clusters.Delete(t.Context(), key("edge"), ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s.remove(name)
	}
	for _, name := range names {
		s.untilGone(name)
	}
	t.Logf("%d Releases drained in %s", count, time.Since(started).Round(time.Millisecond))
	if _, ok := s.cache.Cluster(key("edge")); !ok {
		t.Error("the Cluster went before its agent heard of the release orders")
	}
	orders, _, _ := s.orders.Current(s.cluster.UID)
	for _, o := range orders {
		s.done(types.UID(o.UID), o.Sequence)
	}
	s.eventually("the end of the Cluster", func() bool { _, ok := s.cache.Cluster(key("edge")); return !ok })
}

func TestADeletedClusterGoesAtOnceAndItsReleasesStay(t *testing.T) {
	s := newStage(t, withHost)
	s.reachable(true)
	before := s.ready("web")
	if err := s.server.Storage().Clusters.Delete(t.Context(), key("edge"), ""); err != nil {
		t.Fatal(err)
	}
	s.eventually("the end of the Cluster", func() bool { _, ok := s.cache.Cluster(key("edge")); return !ok })
	r := s.untilCondition("web", "Ready", "Unknown ClusterNotReady")
	if *r.Status.Order != *before.Status.Order {
		t.Error("the order changed")
	}
	// Its deletion has nobody to wait for.
	s.remove("web")
	s.untilGone("web")
}
