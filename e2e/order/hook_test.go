// SPDX-License-Identifier: Apache-2.0

package order_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// plugin runs kubectl convoy, and gives all that it says and its exit code.
func (a *app) plugin(args ...string) (string, int) {
	a.t.Helper()
	hub := world.hub
	command := exec.CommandContext(a.ctx, hub.Programs.Plugin, append([]string{"--kubeconfig", hub.Plane.Kubeconfig(), "-n", team}, args...)...)
	command.Env = hub.Plane.Env(filepath.Dir(hub.Programs.Plugin))
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		a.t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// hook is an object of a hook of a Release, which is healthy as soon as it is there.
func hook(name string, phase corev1alpha1.HookPhase, wave int32) corev1alpha1.Hook {
	h := corev1alpha1.Hook{Name: name, Phases: []corev1alpha1.HookPhase{phase}, Wave: wave}
	h.Object.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`)
	return h
}

// nowhere is a workload that no node takes.
func nowhere(kind, name string) string {
	pod := `{"restartPolicy":"Never","nodeSelector":{"example.test/no":"node"},"containers":[{"name":"c","image":"example.test/c:1"}]}`
	if kind == "Job" {
		return `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"` + name + `"},"spec":{"template":{"spec":` + pod + `}}}`
	}
	pod = strings.Replace(pod, `"Never"`, `"Always"`, 1)
	return `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"` + name + `"},"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":` + pod + `}}}`
}

func TestAHookThatHoldsARemovalIsSkippedWithThePlugin(t *testing.T) {
	t.Parallel()
	a := newApp(t, "skipped", map[string]string{"app/cm.yaml": configMap("cm", "1")})
	a.release("app", func(s *corev1alpha1.ReleaseSpec) {
		h := hook("farewell", corev1alpha1.HookPreDelete, 0)
		h.Object.Raw = []byte(nowhere("Job", "farewell"))
		h.Timeout = &metav1.Duration{Duration: time.Second}
		s.Lifecycle.Hooks = []corev1alpha1.Hook{h}
	})
	a.ready("app", "")
	a.onHub("-n", team, "delete", "release", a.named("app"), "--wait=false")
	err := untilPlugin(a.ctx, func() bool {
		out, code := a.plugin("lifecycle", a.named("app"))
		return code == 0 && strings.Contains(strings.Join(strings.Fields(out), " "), "farewell PreDelete Failed")
	})
	if err != nil {
		t.Fatal(err)
	}
	if !a.has("cm") {
		t.Fatal("an object was deleted before the hook had succeeded")
	}
	if out, code := a.plugin("lifecycle", a.named("app"), "skip", "farewell"); code != 0 || !strings.Contains(out, "skip of hook farewell, run ") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	if err := harness.WaitGone(a.ctx, world.hub.Plane.Dynamic(), install.Releases, team, a.named("app")); err != nil {
		t.Fatal(err, install.Tail(world.edge.Pod.Log()))
	}
	if a.has("cm") {
		t.Error("the Release is gone, and its object is not")
	}
}

// untilPlugin asks again until the plugin answers as it should.
func untilPlugin(ctx context.Context, right func() bool) error {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for !right() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

func TestASyncThatIsWaitedForEndsWithItsFailure(t *testing.T) {
	t.Parallel()
	a := newApp(t, "waited", map[string]string{"late/web.yaml": nowhere("Deployment", "web"), "bad/cm.yaml": refused("cm")})
	short := func(s *corev1alpha1.ReleaseSpec) { s.SyncPolicy.Timeout = &metav1.Duration{Duration: 2 * time.Second} }
	a.release("late", short)
	a.until("late", func(r *corev1alpha1.Release) bool {
		return r.Status.LastOperation != nil && r.Status.LastOperation.Phase == corev1alpha1.PhaseFailed
	})
	out, code := a.plugin("sync", a.named("late"), "--wait", "--timeout", patience.String())
	if code == 0 || !strings.Contains(out, "the sync failed: Sync Failed: after 2s still waiting for apps/Deployment waited/web") {
		t.Errorf("all is applied and not healthy: exit code %d:\n%s", code, out)
	}

	a.release("bad", short, func(s *corev1alpha1.ReleaseSpec) {
		limit := int32(1)
		s.SyncPolicy.Retry = corev1alpha1.RetryPolicy{Limit: &limit, Minimum: &metav1.Duration{Duration: time.Second}}
	})
	a.says("bad", "False", "RetriesExhausted", "")
	out, code = a.plugin("sync", a.named("bad"), "--wait", "--timeout", patience.String())
	if code == 0 || !strings.Contains(out, "the sync failed: Applied=False RetriesExhausted") || !strings.Contains(out, "waited/cm") {
		t.Errorf("refused as often as it may be: exit code %d:\n%s", code, out)
	}
}

// An install and an upgrade are told in few words: each write of a status is one in etcd,
// and one to everybody who watches.
func TestASyncWithHooksCostsFewWritesOfItsStatus(t *testing.T) {
	t.Parallel()
	a := newApp(t, "writes", map[string]string{"app/cm.yaml": configMap("cm", "1")})
	releases := world.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team)
	watched, err := releases.Watch(a.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + a.named("app")})
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Stop()
	// count the writes until the Release is as wanted, and tell each.
	count := func(what string, wanted func(*corev1alpha1.Release) bool) (n int) {
		t.Helper()
		var story []string
		for {
			select {
			case <-a.ctx.Done():
				t.Fatalf("%s: %v:\n%s", what, context.Cause(a.ctx), strings.Join(story, "\n"))
			case event, open := <-watched.ResultChan():
				u, ok := event.Object.(*unstructured.Unstructured)
				if !open || !ok {
					t.Fatalf("%s: the watch ended: %v", what, event)
				}
				r, err := harness.As[corev1alpha1.Release](u)
				if err != nil {
					t.Fatal(err)
				}
				// How often it says for whom it waits is up to the other tests of the cluster.
				if event.Type == watch.Modified && !is(r, "Ready", "False", corev1alpha1.ReasonWaitingForWave, "") {
					n++
				}
				story = append(story, told(r))
				if wanted(r) {
					t.Logf("%s took %d writes:\n%s", what, n, strings.Join(story, "\n"))
					return n
				}
			}
		}
	}
	ran := func(r *corev1alpha1.Release, commit string, runs int) bool {
		done := 0
		for i := range r.Status.Hooks {
			if r.Status.Hooks[i].State == corev1alpha1.HookDone {
				done++
			}
		}
		return done == runs && is(r, "Ready", "True", "Ready", "") && strings.HasSuffix(r.Status.SourceRevision, commit) &&
			r.Status.LastOperation != nil && r.Status.LastOperation.Phase == corev1alpha1.PhaseSucceeded
	}
	a.release("app", func(s *corev1alpha1.ReleaseSpec) {
		s.Lifecycle.Hooks = []corev1alpha1.Hook{
			hook("first", corev1alpha1.HookPreSync, 0), hook("second", corev1alpha1.HookPreSync, 1), hook("third", corev1alpha1.HookPostSync, 0),
		}
	})
	installed := count("the install", func(r *corev1alpha1.Release) bool { return ran(r, "", 3) })
	commit := a.commit(map[string]string{"app/cm.yaml": configMap("cm", "2")})
	upgraded := count("the upgrade", func(r *corev1alpha1.Release) bool { return ran(r, commit, 6) })
	// Ordered, on its way if it takes long, and done.
	if installed > mostWrites || upgraded > mostWrites {
		t.Errorf("the install took %d writes, the upgrade %d; at most %d are needed", installed, upgraded, mostWrites)
	}
}

// mostWrites of a status that one sync needs.
const mostWrites = 5

// told is one state of a Release in short.
func told(r *corev1alpha1.Release) string {
	var words []string
	for _, c := range r.Status.Conditions {
		words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	slices.Sort(words)
	for i := range r.Status.Hooks {
		words = append(words, fmt.Sprintf("%s:%s", r.Status.Hooks[i].Hook, r.Status.Hooks[i].State))
	}
	if o := r.Status.LastOperation; o != nil {
		words = append(words, o.Phase)
	}
	return fmt.Sprintf("  sequence %d of generation %d: %s", r.Status.Sequence, r.Status.ObservedGeneration, strings.Join(words, " "))
}
