// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/pkg/tunnel"
)

// lowest watches the number of replicas of a Deployment. What it returns stops that,
// and gives the least that was seen.
func (b *bench) lowest(ns, name string) (stop func() int64) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	list := metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: b.get(deployments, ns, name).GetResourceVersion()}
	w, err := b.plane.Dynamic().Resource(deployments).Namespace(ns).Watch(ctx, list)
	if err != nil {
		b.t.Fatal(err)
	}
	lowest := replicasOf(b.get(deployments, ns, name))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			u, ok := event.Object.(*unstructured.Unstructured)
			if ok && event.Type == watch.Modified {
				lowest = min(lowest, replicasOf(u))
			}
		}
	}()
	return func() int64 {
		cancel()
		w.Stop()
		<-done
		return lowest
	}
}

// settle gives the engine time to do what it should not.
func (b *bench) settle() {
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-b.ctx.Done():
	}
}

func replicasOf(u *unstructured.Unstructured) int64 {
	n, there, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil || !there {
		return -1
	}
	return n
}

// scale writes the number of replicas as an autoscaler does.
func (b *bench) scale(ns, name, manager string, n int) {
	b.t.Helper()
	_, err := b.plane.Dynamic().Resource(deployments).Namespace(ns).Patch(b.ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{FieldManager: manager}, "scale")
	if err != nil {
		b.t.Fatal(err)
	}
}

// there orders documents and waits until they are applied and in sync, whatever their
// health is: an autoscaler without metrics is not healthy.
func (b *bench) there(release, ns, documents string, options ...option) {
	b.t.Helper()
	o := b.accept(b.order(release, ns, documents, options...))
	b.report(o.Release.UID, "applied and in sync", func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status == tunnel.True && r.InSync.Status == tunnel.True
	})
}

// changing lists the requests after the n-th that change something.
func (b *bench) changing(n int64) []string {
	return slices.DeleteFunc(b.calls.since(n), func(call string) bool {
		return strings.HasPrefix(call, http.MethodGet) || strings.Contains(call, "dryRun=All")
	})
}

// web is a Deployment; count is a line with its number of replicas, or nothing.
func web(count, image string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  ` + count + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "` + image + `"}]
---
`
}

const (
	metricCPU    = "  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}\n"
	metricMemory = "  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 512Mi}}}\n"
)

func scaler(metrics string) string {
	return `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 10
  metrics:
` + metrics + "---\n"
}

func TestDR07TheNumberThatAnAutoscalerChoseIsKept(t *testing.T) {
	inModes(t, testDR07TheNumberThatAnAutoscalerChoseIsKept)
}

func testDR07TheNumberThatAnAutoscalerChoseIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("dr07")
	b.there("dr07", ns, web("replicas: 3", "example/app:1")+scaler(metricCPU+strings.Replace(metricMemory, "512Mi", "0.5Gi", 1)))
	b.scale(ns, "web", "kube-controller-manager", 6)
	lowest := b.lowest(ns, "web")
	b.quiet("after the autoscaler scaled")
	b.report("uid-dr07", "in sync", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True })
	b.there("dr07", ns, web("replicas: 3", "example/app:2")+scaler(metricMemory+metricCPU))
	if got := b.get(deployments, ns, "web"); replicasOf(got) != 6 || !strings.Contains(fmt.Sprint(got.Object["spec"]), "example/app:2") {
		t.Errorf("the spec is %v", got.Object["spec"])
	}
	b.quiet("with the metrics in another order")
	b.there("dr07", ns, web("", "example/app:2")+scaler(metricMemory+metricCPU))
	b.quiet("without a number in the render")
	if least := lowest(); least != 6 || replicasOf(b.get(deployments, ns, "web")) != 6 {
		t.Errorf("a watch saw %d replicas", least)
	}
}

func TestANumberThatLeavesTheRenderStays(t *testing.T) {
	inModes(t, testANumberThatLeavesTheRenderStays)
}

func testANumberThatLeavesTheRenderStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("number-leaves")
	b.apply("number-leaves", ns, web("replicas: 4", "example/app:1"))
	lowest := b.lowest(ns, "web")
	b.apply("number-leaves", ns, web("", "example/app:2"))
	b.quiet("without a number")
	b.scale(ns, "web", "anybody", 5)
	b.quiet("scaled by somebody")
	b.apply("number-leaves", ns, web("", "example/app:3"))
	if least := lowest(); least != 4 || replicasOf(b.get(deployments, ns, "web")) != 5 {
		t.Errorf("a watch saw %d replicas", least)
	}
	b.apply("number-leaves", ns, web("replicas: 1", "example/app:3"), func(o *tunnel.Order) { o.Policy.ForceConflicts = true })
	if n := replicasOf(b.get(deployments, ns, "web")); n != 1 {
		t.Errorf("the render says 1 replica, there are %d", n)
	}
}

func TestAnAutoscalerOfSomebodyElseIsFoundWhenItScales(t *testing.T) {
	inModes(t, testAnAutoscalerOfSomebodyElseIsFoundWhenItScales)
}

func testAnAutoscalerOfSomebodyElseIsFoundWhenItScales(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("foreign-scaler")
	b.apply("foreign-scaler", ns, web("replicas: 3", "example/app:1"))
	b.scale(ns, "web", "kubectl", 5)
	b.live(deployments, ns, "web", "healed, since nothing scales it", func(u *unstructured.Unstructured) bool { return replicasOf(u) == 3 })
	hpas := deployments
	hpas.Group, hpas.Version, hpas.Resource = "autoscaling", "v2", "horizontalpodautoscalers"
	hpa := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": map[string]any{"name": "theirs"},
		"spec": map[string]any{
			"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
			"minReplicas":    int64(2), "maxReplicas": int64(9),
		},
	}}
	if _, err := b.plane.Dynamic().Resource(hpas).Namespace(ns).Create(b.ctx, hpa, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	from := b.calls.n.Load()
	b.scale(ns, "web", "kube-controller-manager", 6)
	lowest := b.lowest(ns, "web")
	b.settle()
	b.report("uid-foreign-scaler", "in sync", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True && r.Settled })
	if made := b.changing(from); len(made) > 0 {
		t.Errorf("after it scaled: %v", made)
	}
	b.scale(ns, "web", "kube-controller-manager", 7)
	calls := b.calls.n.Load()
	b.quiet("after it scaled once more")
	if made := b.calls.since(calls); len(made) > 0 {
		t.Errorf("calls for a number that is known to be somebody's: %v", made)
	}
	b.apply("foreign-scaler", ns, web("replicas: 3", "example/app:2"))
	if least := lowest(); least != 6 || replicasOf(b.get(deployments, ns, "web")) != 7 {
		t.Errorf("a watch saw %d replicas", least)
	}
	b.restart()
	b.report("uid-foreign-scaler", "in sync after a restart", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True && r.Settled })
	b.quiet("after a restart")
	if err := b.plane.Dynamic().Resource(hpas).Namespace(ns).Delete(b.ctx, "theirs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.keeps(b.order("foreign-scaler", ns, web("replicas: 3", "example/app:2")), "7 replicas are kept, the render says 3: no autoscaler scales it any more")
	if n := replicasOf(b.get(deployments, ns, "web")); n != 7 {
		t.Errorf("with the autoscaler just gone there are %d replicas", n)
	}
}

// keeps orders what is applied and leaves a number of replicas that is not the render's.
func (b *bench) keeps(o tunnel.Order, says string) {
	b.t.Helper()
	b.accept(o)
	b.report(o.Release.UID, "applied, and "+says, func(r tunnel.Report) bool {
		return r.Sequence == o.Sequence && r.Applied.Status == tunnel.True &&
			r.InSync.Status == tunnel.False && r.InSync.Reason == v1alpha1.ReasonDrifted && strings.Contains(r.InSync.Message, says)
	})
}

func TestAnAutoscalerThatIsAimedAtNothingByMistakeTakesNoReplicasAway(t *testing.T) {
	inModes(t, testAnAutoscalerThatIsAimedAtNothingByMistakeTakesNoReplicasAway)
}

func testAnAutoscalerThatIsAimedAtNothingByMistakeTakesNoReplicasAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("scaler-astray")
	astray := strings.Replace(scaler(metricCPU), "kind: Deployment, name: web}", "kind: Deployment, name: wbe}", 1)
	b.there("scaler-astray", ns, web("replicas: 3", "example/app:1")+scaler(metricCPU))
	b.scale(ns, "web", "kube-controller-manager", 10)
	lowest := b.lowest(ns, "web")
	b.quiet("after it scaled")
	const kept = "10 replicas are kept, the render says 3"
	b.keeps(b.order("scaler-astray", ns, web("replicas: 3", "example/app:1")+astray), kept)
	b.quiet("while it is aimed at nothing")
	b.keeps(b.order("scaler-astray", ns, web("replicas: 3", "example/app:2")+astray), kept)
	b.edit(deployments, ns, "web", "somebody", `{"spec":{"minReadySeconds":3,"template":{"spec":{"containers":[{"name":"c","image":"example/app:9"}]}}}}`)
	b.live(deployments, ns, "web", "repaired", func(u *unstructured.Unstructured) bool {
		return strings.Contains(fmt.Sprint(u.Object["spec"]), "example/app:2")
	})
	b.restart()
	b.report("uid-scaler-astray", "drifted after a restart", func(r tunnel.Report) bool { return r.InSync.Reason == v1alpha1.ReasonDrifted })
	b.there("scaler-astray", ns, web("replicas: 3", "example/app:2")+scaler(metricCPU))
	if least := lowest(); least != 10 {
		t.Errorf("a watch saw %d replicas", least)
	}
}

func TestAnAutoscalerThatLeavesTheRenderGivesTheNumberBack(t *testing.T) {
	inModes(t, testAnAutoscalerThatLeavesTheRenderGivesTheNumberBack)
}

func testAnAutoscalerThatLeavesTheRenderGivesTheNumberBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("scaler-leaves")
	b.there("scaler-leaves", ns, web("replicas: 3", "example/app:1")+scaler(metricCPU))
	b.scale(ns, "web", "kube-controller-manager", 6)
	b.quiet("after it scaled")
	b.there("scaler-leaves", ns, web("replicas: 4", "example/app:1"))
	b.live(deployments, ns, "web", "as the render says", func(u *unstructured.Unstructured) bool { return replicasOf(u) == 4 })
	b.scale(ns, "web", "kube-controller-manager", 6)
	b.live(deployments, ns, "web", "kept so", func(u *unstructured.Unstructured) bool { return replicasOf(u) == 4 })
}

func TestAnObjectThatIsMadeAnewHasTheNumberThatItsAutoscalerChose(t *testing.T) {
	inModes(t, testAnObjectThatIsMadeAnewHasTheNumberThatItsAutoscalerChose)
}

func testAnObjectThatIsMadeAnewHasTheNumberThatItsAutoscalerChose(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("scaler-replace")
	b.there("scaler-replace", ns, web("replicas: 3", "example/app:1")+scaler(metricCPU))
	b.scale(ns, "web", "kube-controller-manager", 6)
	uid := b.get(deployments, ns, "web").GetUID()
	other := strings.ReplaceAll(web("replicas: 3", "example/app:1"), "{app: web}", "{app: web2}")
	b.there("scaler-replace", ns, other+scaler(metricCPU), func(o *tunnel.Order) { o.Policy.Replace = true })
	if got := b.get(deployments, ns, "web"); got.GetUID() == uid || replicasOf(got) != 6 {
		t.Errorf("made anew: %v, with %d replicas", got.GetUID() != uid, replicasOf(got))
	}
}

func TestANumberIsTheRendersAgainWithoutAnOrderWhenItsAutoscalerIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("scaler-gone")
	b.apply("scaler-gone", ns, web("replicas: 3", "example/app:1"))
	hpas := deployments
	hpas.Group, hpas.Version, hpas.Resource = "autoscaling", "v2", "horizontalpodautoscalers"
	if _, err := b.plane.KubectlInput(b.ctx, strings.Replace(scaler(metricCPU), "{name: web}", "{name: theirs}", 1), "-n", ns, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	b.scale(ns, "web", "kube-controller-manager", 6)
	b.settle()
	if n := replicasOf(b.get(deployments, ns, "web")); n != 6 {
		t.Fatalf("there are %d replicas", n)
	}
	if err := b.plane.Dynamic().Resource(hpas).Namespace(ns).Delete(b.ctx, "theirs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// It is looked at once a minute and stays as long, which is longer than the patience of
	// other tests.
	_, err := harness.WaitFor(b.ctx, b.plane.Dynamic(), deployments, ns, "web", func(u *unstructured.Unstructured) (bool, error) { return replicasOf(u) == 3, nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestANumberThatAnAutoscalerLeftIsTheRendersWhenThatSaysOne(t *testing.T) {
	inModes(t, testANumberThatAnAutoscalerLeftIsTheRendersWhenThatSaysOne)
}

func testANumberThatAnAutoscalerLeftIsTheRendersWhenThatSaysOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("scaler-left")
	b.apply("scaler-left", ns, web("replicas: 2", "example/app:1"))
	if _, err := b.plane.KubectlInput(b.ctx, strings.Replace(scaler(metricCPU), "{name: web}", "{name: theirs}", 1), "-n", ns, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	b.scale(ns, "web", "kube-controller-manager", 4)
	b.apply("scaler-left", ns, web("", "example/app:1"))
	hpas := deployments
	hpas.Group, hpas.Version, hpas.Resource = "autoscaling", "v2", "horizontalpodautoscalers"
	if err := b.plane.Dynamic().Resource(hpas).Namespace(ns).Delete(b.ctx, "theirs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.apply("scaler-left", ns, web("replicas: 3", "example/app:1"))
	if n := replicasOf(b.get(deployments, ns, "web")); n != 3 {
		t.Errorf("the render says 3 replicas, there are %d", n)
	}
	// What a person has scaled stays a conflict.
	b.apply("scaler-left", ns, web("", "example/app:1"))
	b.scale(ns, "web", "somebody", 5)
	o := b.accept(b.order("scaler-left", ns, web("replicas: 3", "example/app:1")))
	if r := b.settled(o); r.Applied.Reason != "Conflict" || !strings.Contains(r.Applied.Message, "somebody") {
		t.Errorf("Applied is %+v", r.Applied)
	}
}
