// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/install"
)

type groupVersionResource = schema.GroupVersionResource

// One hub, one edge and one remote tell the whole story, each part standing on
// the one before it: starting them takes longer than all that is told.
func TestAStandaloneHubDelivers(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"web/a.yaml": configMap("a", "1"), "web/b.yaml": configMap("b", "1")})
	w.source()

	step := func(name string, what func()) {
		t.Helper()
		if t.Failed() {
			return
		}
		started := time.Now()
		what()
		t.Logf("%s: %s", name, time.Since(started).Round(time.Millisecond))
	}
	var before *v1alpha1.Release
	var second string
	step("a Release is applied and Ready, for two status writes and one inventory", func() {
		started := time.Now()
		w.release("web", "web", nil)
		w.untilEdge("a", "1")
		there := time.Since(started)
		before = w.until("web", readyAt(first))
		t.Logf("on the edge after %s, Ready after %s", there.Round(time.Millisecond), time.Since(started).Round(time.Millisecond))
		if got := w.written("releases", "web"); got != 3 {
			t.Errorf("the Release was written %d times, want 3: created, ordered, settled", got)
		}
		if got := w.written("releaseinventories", "web"); got != 1 {
			t.Errorf("the inventory was written %d times, want 1", got)
		}
	})
	step("nothing is written while nothing happens, over a resync", func() {
		have := w.changes()
		w.pass(12 * time.Second)
		if diff := cmp.Diff(have, w.changes()); diff != "" {
			t.Errorf("keys that changed (-before +after):\n%s", diff)
		}
	})
	step("a commit is rolled out on a sync", func() {
		second = w.commit(map[string]string{"web/a.yaml": configMap("a", "2")})
		requested := w.sync("web", false)
		before = w.until("web", readyAt(second))
		w.untilEdge("a", "2")
		w.untilEdge("b", "") // pruned
		if before.Status.LastSyncRequest != requested {
			t.Errorf("lastSyncRequest is %q, want %q", before.Status.LastSyncRequest, requested)
		}
		w.sourceMoved(second)
	})
	for name, hard := range map[string]bool{"asked to end": false, "killed": true} {
		step("a hub that was "+name+" comes back, orders nothing and writes nothing", func() {
			have := w.changes()
			w.stopHub(hard)
			w.heal("a", "2")
			w.startHub()
			w.untilSession()
			w.pass(3 * time.Second)
			after := w.until("web", func(*v1alpha1.Release) bool { return true })
			if diff := cmp.Diff(before.Status.Order, after.Status.Order); diff != "" {
				t.Errorf("the order changed (-before +after):\n%s", diff)
			}
			for key, revision := range w.changes() {
				// The repair that the agent made alone is told, once.
				if have[key] != revision && !strings.HasSuffix(key, "/releases/team/web") {
					t.Errorf("%s was written", key)
				}
			}
			before = after
		})
	}
	step("a render that fails names file and line, and the old one stays enforced", func() {
		w.commit(map[string]string{"web/a.yaml": configMap("a", "3"), "web/broken.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n"})
		w.sync("web", false)
		after := w.until("web", func(r *v1alpha1.Release) bool { return has(r, "Rendered", metav1.ConditionFalse, "RenderFailed") })
		if message := after.Status.Conditions[1].Message; !strings.Contains(message, "broken.yaml") || !strings.Contains(message, ", line ") {
			t.Errorf("Rendered says %q", message)
		}
		if diff := cmp.Diff(before.Status.Order, after.Status.Order); diff != "" {
			t.Errorf("the order changed (-before +after):\n%s", diff)
		}
		w.heal("a", "2")
	})
	step("PR-06 an empty render never becomes an order", func() {
		w.commit(map[string]string{"web/readme.txt": "nothing to apply"})
		w.sync("web", false)
		after := w.until("web", func(r *v1alpha1.Release) bool { return has(r, "Rendered", metav1.ConditionFalse, "EmptyRender") })
		if diff := cmp.Diff(before.Status.Order, after.Status.Order); diff != "" {
			t.Errorf("the order changed (-before +after):\n%s", diff)
		}
		w.untilEdge("a", "2")
	})
	var third string
	step("the next good commit is applied", func() {
		third = w.commit(map[string]string{"web/a.yaml": configMap("a", "4"), "other/c.yaml": configMap("c", "1")})
		w.sync("web", false)
		before = w.until("web", readyAt(third))
	})
	step("a source that tells of a commit is asked at once, however long its interval is", func() {
		w.tellable()
		third = w.commit(map[string]string{"web/a.yaml": configMap("a", "told"), "other/c.yaml": configMap("c", "1")})
		if code := w.tell("another key"); code != http.StatusNotFound {
			t.Errorf("a call that was signed with another key is answered with %d", code)
		}
		if code := w.tell(hookToken); code != http.StatusAccepted {
			t.Errorf("a call that was signed is answered with %d", code)
		}
		before = w.until("web", readyAt(third))
		w.untilEdge("a", "told")
	})
	step("force renders and orders again although nothing changed", func() {
		requested := w.sync("web", true)
		after := w.until("web", func(r *v1alpha1.Release) bool {
			return r.Status.LastForceRequest == requested && r.Status.Sequence > before.Status.Sequence && readyAt(third)(r)
		})
		if after.Status.RenderRef != before.Status.RenderRef {
			t.Error("the same inputs have another digest")
		}
		before = after
	})
	step("in manual mode a new render waits, drift is not healed, and a sync applies", func() {
		w.patch("web", map[string]any{"spec": map[string]any{"syncPolicy": map[string]any{"automatic": false}}})
		w.until("web", readyAt(third))
		w.drift("a", "x")
		w.until("web", func(r *v1alpha1.Release) bool { return has(r, "InSync", metav1.ConditionFalse, "Drifted") })
		fourth := w.commit(map[string]string{"web/a.yaml": configMap("a", "5"), "other/c.yaml": configMap("c", "1")})
		w.patch("web", map[string]any{"spec": map[string]any{"syncPolicy": map[string]any{"timeout": "4m"}}})
		w.sourceMoved(fourth)
		w.until("web", func(r *v1alpha1.Release) bool { return has(r, "Applied", metav1.ConditionFalse, "ManualSync") })
		w.untilEdge("a", "x")
		w.sync("web", false)
		w.until("web", readyAt(fourth))
		w.untilEdge("a", "5")
	})
	step("deleting a Release removes its objects", func() {
		w.release("other", "other", nil)
		w.until("other", func(r *v1alpha1.Release) bool { return has(r, "Ready", metav1.ConditionTrue, "") })
		w.remove("other")
		w.gone(install.Releases, "other")
		w.gone(install.Inventories, "other")
		left, err := w.onEdge(w.deadline(), "c")
		w.must(err)
		if left != nil {
			t.Error("the Release was gone before its object was")
		}
	})
	step("keepWorkloads leaves them", func() {
		w.release("kept", "other", map[string]any{"deletionPolicy": map[string]any{"keepWorkloads": true}})
		w.until("kept", func(r *v1alpha1.Release) bool { return has(r, "Ready", metav1.ConditionTrue, "") })
		w.remove("kept")
		w.gone(install.Releases, "kept")
		w.pass(2 * time.Second)
		w.untilEdge("c", "1")
	})
	step("no last order is left over", func() {
		w.untilNoGraves()
	})
}

// drift changes a ConfigMap of the edge, as somebody there would.
func (w *world) drift(name, value string) {
	w.t.Helper()
	patch := []byte(`{"data":{"key":"` + value + `"}}`)
	_, err := w.plane.Client().CoreV1().ConfigMaps(team).Patch(w.deadline(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"})
	w.must(err)
}

// heal breaks a ConfigMap of the edge and waits until it has its value again.
func (w *world) heal(name, value string) {
	w.t.Helper()
	w.drift(name, "broken")
	w.untilEdge(name, value)
}
