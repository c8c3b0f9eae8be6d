// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

type controllerResult = reconcile.Result

const releaseKeys = "/registry/convoy.kumodo.io/core.convoy.kumodo.io/releases/team/"

func TestARolloutIsThreeVersionsOfItsObject(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	// Created, ordered, settled.
	if got := s.version(releaseKeys + "web"); got != 3 {
		t.Errorf("the Release was written %d times, want 3", got)
	}
	if got := s.version("/registry/convoy.kumodo.io/core.convoy.kumodo.io/releaseinventories/team/web"); got != 1 {
		t.Errorf("the inventory was written %d times, want 1", got)
	}
	s.git.push("2", map[string]string{"app": "two"})
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: "t1"}
	})
	s.until("web", "its second order", func(r *corev1alpha1.Release) bool { return r.Status.RenderRef == digest("two") })
	s.applied("web")
	r := s.untilCondition("web", "Ready", "True Ready")
	if got := s.version(releaseKeys + "web"); got != 6 {
		t.Errorf("the Release was written %d times, want 6 (one of them the request)", got)
	}
	if r.Status.LastSyncRequest != "t1" || len(r.Status.History) != 2 || r.Status.SourceRevision != "main@sha1:2" {
		t.Errorf("status: %+v", r.Status)
	}
}

func TestARestartOrdersAndWritesNothing(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	writes := s.version(releaseKeys + "web")
	s.stop()
	s.resync = 50 * time.Millisecond
	s.start()
	<-time.NewTimer(300 * time.Millisecond).C
	if got := s.version(releaseKeys + "web"); got != writes {
		t.Errorf("the Release was written %d times, want %d as before", got, writes)
	}
	if got := s.renderer.made(); got != 0 {
		t.Errorf("%d renders", got)
	}
	after, _ := s.cache.Release(key("web"))
	if *after.Status.Order != *before.Status.Order {
		t.Error("there is another order")
	}
}

func TestAnUnchangedInputKeepsDigestAndOrderThoughTheCommitIsAnother(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.git.push("2", map[string]string{"app": "one", "other": "x"})
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval = &metav1.Duration{Duration: time.Hour} })
	r := s.until("web", "the new generation", func(r *corev1alpha1.Release) bool { return r.Status.ObservedGeneration == 2 })
	if condition(r, "Ready") != "True Ready" {
		t.Errorf("Ready is %s", condition(r, "Ready"))
	}
	if got := s.version(releaseKeys + "web"); got != 5 {
		t.Errorf("the Release was written %d times, want 5: the edit, and its generation observed", got)
	}
	if got := s.renderer.made(); got != 1 {
		t.Errorf("%d renders, want 1", got)
	}
}

func TestAFailingRenderKeepsTheOrderAndNamesTheLine(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	s.git.push("2", map[string]string{"app": "bad"})
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: "t1"}
	})
	r := s.untilCondition("web", "Rendered", "False RenderFailed")
	if *r.Status.Order != *before.Status.Order || r.Status.RenderRef != before.Status.RenderRef {
		t.Error("the order or the render changed")
	}
	if condition(r, "Applied") != "True Applied" || condition(r, "Ready") != "False RenderFailed" {
		t.Errorf("Applied is %s, Ready is %s", condition(r, "Applied"), condition(r, "Ready"))
	}
	if r.Status.Conditions[1].Message != "app.yaml: document 1: line 3: not YAML" {
		t.Errorf("Rendered says %q", r.Status.Conditions[1].Message)
	}
	if r.Status.LastSyncRequest != "t1" {
		t.Error("the request is still open")
	}
	// Put right by the next commit; the old digest needs no order.
	s.git.push("3", map[string]string{"app": "one"})
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Spec.SyncPolicy.Interval = &metav1.Duration{Duration: time.Hour}
	})
	r = s.untilCondition("web", "Ready", "True Ready")
	if *r.Status.Order != *before.Status.Order {
		t.Error("there is another order")
	}
}

func TestPR06AnEmptyRenderNeverBecomesAnOrder(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	s.git.push("2", map[string]string{"app": ""})
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncForceRequestedAt: "t1"}
	})
	r := s.untilCondition("web", "Rendered", "False EmptyRender")
	if *r.Status.Order != *before.Status.Order {
		t.Error("there is another order")
	}
}

func TestPR06AnEmptyRenderIsOrderedWhereTheReleaseAllowsIt(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	s.git.push("2", map[string]string{"app": ""})
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Spec.SyncPolicy.Prune.AllowEmpty = true
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: "t1"}
	})
	s.until("web", "a newer order", func(r *corev1alpha1.Release) bool {
		return r.Status.Order != nil && r.Status.Sequence > before.Status.Sequence && r.Status.Render.Count == 0 &&
			strings.Contains(r.Status.Order.Payload, `"allowEmpty":true`)
	})
}

func TestForceRendersAndOrdersAgainAlthoughNothingChanged(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	asked := s.git.questions()
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncForceRequestedAt: "t1", corev1alpha1.AnnotationSyncRequestedAt: "t1"}
	})
	r := s.until("web", "the answer to force", func(r *corev1alpha1.Release) bool { return r.Status.LastForceRequest == "t1" })
	if r.Status.Sequence <= before.Status.Sequence || r.Status.RenderRef != before.Status.RenderRef || r.Status.LastSyncRequest != "t1" {
		t.Errorf("status %+v", r.Status)
	}
	if s.renderer.made() != 2 || s.git.questions() != asked+1 {
		t.Errorf("%d renders, %d questions; want 2, %d", s.renderer.made(), s.git.questions(), asked+1)
	}
}

func TestManualModeRendersAndWaitsForASync(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.create("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Automatic = ptr.To(false) })
	r := s.untilCondition("web", "Applied", "False ManualSync")
	if r.Status.RenderRef != digest("one") || r.Status.Order != nil {
		t.Errorf("status %+v", r.Status)
	}
	s.edit("web", func(r *corev1alpha1.Release) {
		r.Annotations = map[string]string{corev1alpha1.AnnotationSyncRequestedAt: "t1"}
	})
	s.untilCondition("web", "Applied", "False Progressing")
	s.applied("web")
	before := s.untilCondition("web", "Ready", "True Ready")
	// The next render waits again; a report about what is enforced does not hide that.
	s.git.push("2", map[string]string{"app": "two"})
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval = &metav1.Duration{Duration: time.Hour} })
	s.untilCondition("web", "Applied", "False ManualSync")
	s.applied("web")
	r = s.untilCondition("web", "Applied", "False ManualSync")
	if *r.Status.Order != *before.Status.Order || r.Status.RenderRef != digest("two") {
		t.Errorf("status %+v", r.Status)
	}
}

func TestACommitIsRolledOutWhenTheSourceIsSeenToHaveMoved(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.ready("web")
	s.git.push("2", map[string]string{"app": "two"})
	_, err := s.server.Storage().GitRepositories.UpdateStatus(t.Context(), key("apps"), "", func(g *sourcev1alpha1.GitRepository) error {
		g.Status.Revision = "main@sha1:2"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.until("web", "the new render", func(r *corev1alpha1.Release) bool { return r.Status.RenderRef == digest("two") })
}

func TestAClusterThatIsAwayHoldsBackAndItsReturnLetsGo(t *testing.T) {
	s := newStage(t)
	s.create("web")
	r := s.untilCondition("web", "Applied", "False ClusterNotReady")
	if condition(r, "Rendered") != "Unknown ClusterNotReady" || s.renderer.made() != 0 {
		t.Errorf("Rendered is %s after %d renders", condition(r, "Rendered"), s.renderer.made())
	}
	s.reachable(true)
	s.untilCondition("web", "Applied", "False Progressing")
	s.applied("web")
	s.untilCondition("web", "Ready", "True Ready")
	// Away again: nothing newer waits, so Applied keeps its value, and the agent's
	// state is Unknown.
	s.reachable(false)
	r = s.untilCondition("web", "Ready", "Unknown Disconnected")
	if condition(r, "Applied") != "True Applied" {
		t.Errorf("Applied is %s", condition(r, "Applied"))
	}
	// Something newer does wait.
	s.git.push("2", map[string]string{"app": "two"})
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval = &metav1.Duration{Duration: time.Hour} })
	s.untilCondition("web", "Applied", "False ClusterNotReady")
	// A broken source is told all the same.
	s.git.fail(reasoned{corev1alpha1.ReasonFetchFailed, errors.New("no route")})
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval = &metav1.Duration{Duration: 2 * time.Hour} })
	s.untilCondition("web", "Rendered", "False FetchFailed")
	s.git.fail(nil)
	s.reachable(true)
	s.until("web", "its second order", func(r *corev1alpha1.Release) bool { return r.Status.RenderRef == digest("two") })
}

func TestAReleaseWaitsForItsSource(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	s.create("web", func(r *corev1alpha1.Release) { r.Spec.Source.Name = "later" })
	s.untilCondition("web", "Rendered", "False SourceNotFound")
	_, err := s.server.Storage().GitRepositories.Create(t.Context(), &sourcev1alpha1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "later"}, Spec: sourcev1alpha1.GitRepositorySpec{URL: "https://git.example/later", Ref: sourcev1alpha1.GitRef{Branch: "main"}, Interval: &metav1.Duration{Duration: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.untilCondition("web", "Rendered", "True Rendered")
}

func TestAnOrderThatSomebodyWroteIntoTheStatusIsReplaced(t *testing.T) {
	s := newStage(t)
	s.reachable(true)
	before := s.ready("web")
	_, err := s.server.Storage().Releases.UpdateStatus(t.Context(), key("web"), "", func(r *corev1alpha1.Release) error {
		r.Status.Order.Payload += " "
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.edit("web", func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Interval = &metav1.Duration{Duration: time.Hour} })
	s.until("web", "a new order", func(r *corev1alpha1.Release) bool { return r.Status.Sequence > before.Status.Sequence })
}

func TestANewClusterIsSaidToBeNeverJoined(t *testing.T) {
	s := newStage(t)
	s.eventually("the condition", func() bool {
		c, ok := s.cache.Cluster(key("edge"))
		return ok && len(c.Status.Conditions) == 1 && c.Status.Conditions[0].Reason == corev1alpha1.ReasonNeverJoined
	})
}
