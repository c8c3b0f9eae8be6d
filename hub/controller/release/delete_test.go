// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/pkg/tunnel"
)

func blocking(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.BlockOnClusterUnreachable = true }

// blocked waits until a deletion waits for its cluster, and says how to let go.
func (s *stage) blocked(name string) {
	s.t.Helper()
	r := s.untilCondition(name, "Ready", "False BlockedOnCluster")
	message := meta.FindStatusCondition(r.Status.Conditions, "Ready").Message
	for _, want := range []string{`Cluster "edge" is not reachable since 2`, "spec.deletionPolicy.blockOnClusterUnreachable to false", "keepWorkloads to true"} {
		if !strings.Contains(message, want) {
			s.t.Errorf("%q is not in: %s", want, message)
		}
	}
}

func TestS6BlockOnClusterUnreachableStaysWhileTheClusterIsAwayAndSaysSinceWhenAndHowToLetGo(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	r := s.ready("web", blocking)
	s.reachable(false)
	s.untilCondition("web", "InSync", "Unknown Disconnected")
	s.remove("web")
	s.blocked("web")
	// Its remove order is stored all the same: the agent carries it out when it is
	// back, whatever becomes of the hub meanwhile.
	if got := s.graves(); got["web"] != tunnel.VerbRemove {
		t.Errorf("last orders: %v", got)
	}
	s.stop()
	s.start()
	s.blocked("web")
	s.reachable(true)
	grave, _ := s.orders.Buried(r.UID)
	s.done(r.UID, grave.Sequence)
	s.untilGone("web")
}

// blockedDeletion is a Release whose Cluster is away and that is to be deleted first there.
func blockedDeletion(t *testing.T) *stage {
	s := newStage(t)
	s.reachable(true)
	s.ready("web", blocking)
	s.reachable(false)
	s.remove("web")
	s.blocked("web")
	return s
}

func TestS6BlockOnClusterUnreachableSetToFalseLetsGoAndTheRemoveOrderStays(t *testing.T) {
	s := blockedDeletion(t)
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.BlockOnClusterUnreachable = false })
	s.untilGone("web")
	if got := s.graves(); got["web"] != tunnel.VerbRemove {
		t.Errorf("last orders: %v", got)
	}
}

func TestS6KeepWorkloadsLetsABlockedDeletionGoAndNothingIsRemoved(t *testing.T) {
	s := blockedDeletion(t)
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
	s.untilGone("web")
	if got := s.graves(); got["web"] != tunnel.VerbRelease {
		t.Errorf("last orders: %v", got)
	}
}

func TestS6ADeadClusterNeverMakesAnObjectUndeletableForTheClusterMayGo(t *testing.T) {
	s := blockedDeletion(t)
	s.removeCluster()
	s.clusterGone()
	s.untilGone("web")
}

func TestS6ASilentAgentDoesNotHideThatADeletionIsBlocked(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web", blocking)
	s.remove("web")
	s.eventually("a remove order", func() bool { return s.graves()["web"] == tunnel.VerbRemove })
	// It goes away while it removes: what is known of its objects turns Unknown, and
	// the deletion is still what Ready is about.
	s.reachable(false)
	s.untilCondition("web", "Healthy", "Unknown Disconnected")
	s.blocked("web")
}

func TestAnActionOnAHookOfARemovalGoesIntoANewRemoveOrder(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	r := s.ready("web")
	s.remove("web")
	s.untilCondition("web", "Ready", "False Deleting")
	first, _ := s.orders.Buried(r.UID)
	asked := "skip/2026-01-01T00:00:00Z/9-1/Job/team/farewell"
	s.annotated("web", corev1alpha1.AnnotationHookRequested, asked)
	s.until("web", "an answer", func(r *corev1alpha1.Release) bool { return r.Status.LastHookRequest == asked })
	second, _ := s.orders.Buried(r.UID)
	before, err := tunnel.ParseOrder(first.Signed.Payload)
	if err != nil {
		t.Fatal(err)
	}
	order, err := tunnel.ParseOrder(second.Signed.Payload)
	if err != nil {
		t.Fatal(err)
	}
	want := []tunnel.HookAction{{Hook: "Job/team/farewell", Run: "9-1", Action: "skip"}}
	if diff := cmp.Diff(want, order.Actions); diff != "" || order.Sequence <= before.Sequence || order.Verb != tunnel.VerbRemove || order.Fence != before.Fence {
		t.Errorf("order %+v after %+v; actions (-want +got):\n%s", order, before, diff)
	}
	// It is asked for once more when another hook fails, and what was said before stays.
	asked = "skip/2026-01-01T00:00:01Z/9-2/Job/team/last"
	s.annotated("web", corev1alpha1.AnnotationHookRequested, asked)
	s.until("web", "an answer", func(r *corev1alpha1.Release) bool { return r.Status.LastHookRequest == asked })
	third, _ := s.orders.Buried(r.UID)
	if got := third.Actions(); len(got) != 2 || got[1].Run != "9-2" {
		t.Errorf("actions %+v", got)
	}
	s.done(r.UID, third.Sequence)
	s.untilGone("web")
}

func TestS6ADeletedNamespaceOrphansUnlessItWasAnnotatedBeforehand(t *testing.T) {
	for name, c := range map[string]struct {
		state controller.NamespaceState
		verb  tunnel.Verb
	}{
		"without the annotation": {controller.NamespaceState{Terminating: true}, tunnel.VerbRelease},
		"with it":                {controller.NamespaceState{Terminating: true, Uninstall: true}, tunnel.VerbRemove},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, withHost)
			s.reachable(true)
			s.ready("web")
			s.host.mu.Lock()
			s.host.state = c.state
			s.host.mu.Unlock()
			s.removeCluster()
			s.remove("web")
			s.eventually("the last order", func() bool { return s.graves()["web"] == c.verb })
			if _, ok := s.cache.Cluster(key("edge")); !ok {
				t.Error("the Cluster went before its agent heard of the last order")
			}
		})
	}
}

func (s *stage) removeCluster() {
	s.t.Helper()
	if err := s.server.Storage().Clusters.Delete(s.t.Context(), key("edge"), ""); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) clusterGone() {
	s.t.Helper()
	s.eventually("the end of the Cluster", func() bool { _, ok := s.cache.Cluster(key("edge")); return !ok })
}

// pruning makes the Cluster take its Releases with it.
func (s *stage) pruning(prunes bool) {
	s.t.Helper()
	_, err := s.server.Storage().Clusters.Update(s.t.Context(), key("edge"), "", func(c *corev1alpha1.Cluster) error {
		c.Spec.DeletionPolicy.PruneReleases = prunes
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// deleting waits until the Cluster says of its deletion what is wanted.
func (s *stage) deleting(want string) {
	s.t.Helper()
	last := ""
	s.eventually("a Cluster that says "+want, func() bool {
		c, ok := s.cache.Cluster(key("edge"))
		if !ok {
			s.t.Fatalf("the Cluster is gone; it last said %q", last)
		}
		if said := meta.FindStatusCondition(c.Status.Conditions, corev1alpha1.ConditionDeleting); said != nil {
			last = said.Message
		}
		return strings.Contains(last, want)
	})
}

func TestS5PruneReleasesDeletesEachReleaseWithItsOwnPolicyBeforeTheClusterGoes(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.pruning(true)
	web := s.ready("web")
	s.ready("kept", func(r *corev1alpha1.Release) { r.Spec.DeletionPolicy.KeepWorkloads = true })
	s.removeCluster()
	s.untilGone("kept")
	s.eventually("the last orders", func() bool {
		graves := s.graves()
		return graves["web"] == tunnel.VerbRemove && graves["kept"] == tunnel.VerbRelease
	})
	s.deleting("Releases are left: ")
	if _, ok := s.cache.Release(key("web")); !ok {
		t.Error("the Release went before its objects")
	}
	for _, uid := range []types.UID{web.UID} {
		grave, _ := s.orders.Buried(uid)
		s.done(uid, grave.Sequence)
	}
	s.untilGone("web")
	s.deleting("1 last orders are not carried out")
	orders, _, _ := s.orders.Current(s.cluster.UID)
	for _, o := range orders {
		s.done(types.UID(o.UID), o.Sequence)
	}
	s.clusterGone()
}

func TestS5PruneReleasesWaitsForAnAgentThatIsAwayAndSaysHowToLetGo(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.pruning(true)
	s.ready("web", blocking)
	s.ready("api")
	s.reachable(false)
	s.removeCluster()
	s.untilGone("api")
	s.blocked("web")
	s.deleting("the cluster is not reachable since 2")
	s.deleting("Set spec.deletionPolicy.pruneReleases to false to let the Cluster go at once")
	s.deleting("web waits for the cluster, as its deletionPolicy says")
	s.pruning(false)
	s.clusterGone()
	s.untilGone("web")
}

func TestS5ByDefaultTheClusterGoesAtOnceItsReleasesStayAndReportClusterNotReady(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.removeCluster()
	s.clusterGone()
	r := s.untilCondition("web", "Ready", "Unknown ClusterNotReady")
	if r.DeletionTimestamp != nil {
		t.Error("the Release is being deleted with its Cluster")
	}
	if got := s.graves(); len(got) != 0 {
		t.Errorf("last orders: %v", got)
	}
}

// again makes the Cluster anew under its name, as one whose agent has not come yet.
func (s *stage) again() {
	s.t.Helper()
	s.removeCluster()
	s.clusterGone()
	made, err := s.server.Storage().Clusters.Create(s.t.Context(), &corev1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"}, Spec: corev1alpha1.ClusterSpec{ConnectionMode: corev1alpha1.ConnectionModeAgent},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.cluster.UID = string(made.UID)
	s.eventually("the new Cluster", func() bool { _, ok := s.cache.Cluster(key("edge")); return ok })
}

func TestS5AClusterMadeAnewUnderItsNameTakesOverWhenItsAgentComes(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.again()
	// Its session is there, and a moment later the agent says what it holds.
	err := s.reporter.Cluster(t.Context(), key("edge"), types.UID(s.cluster.UID), func(status *corev1alpha1.ClusterStatus) error {
		status.Reachable = true
		status.Agent = &corev1alpha1.ClusterAgentStatus{BoundKey: "b", JoinedAt: metav1.Now()}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.until("web", "a wait for what the agent holds", func(r *corev1alpha1.Release) bool {
		applied := meta.FindStatusCondition(r.Status.Conditions, "Applied")
		return strings.Contains(applied.Message, "has not said yet what it holds")
	})
	s.connects(nil)
	s.until("web", "an order of the new Cluster", func(r *corev1alpha1.Release) bool {
		return strings.Contains(r.Status.Order.Payload, s.cluster.UID)
	})
}

func TestS5AReleaseDeletedBeforeItsNewClusterTookItOverIsRemovedThere(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.again()
	s.remove("web")
	s.untilGone("web")
	if got := s.graves(); got["web"] != tunnel.VerbRemove {
		t.Errorf("last orders of the new Cluster: %v", got)
	}
}

func TestS5ARevokedClusterSaysSoThoughNobodyElseLooks(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	_, err := s.server.Storage().Clusters.UpdateStatus(t.Context(), key("edge"), "", func(c *corev1alpha1.Cluster) error {
		now := metav1.Now()
		c.Status.Agent = &corev1alpha1.ClusterAgentStatus{BoundKey: "a", JoinedAt: now, RevokedAt: &now}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.eventually("Revoked", func() bool {
		c, _ := s.cache.Cluster(key("edge"))
		ready := meta.FindStatusCondition(c.Status.Conditions, "Ready")
		return ready != nil && ready.Reason == corev1alpha1.ReasonRevoked && ready.Status == metav1.ConditionFalse && !c.Status.Reachable
	})
}
