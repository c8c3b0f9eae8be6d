// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// TestHostileContentHarmsOnlyItsOwnRelease gives the hub a file of 1 GB, an
// alias bomb, a document that refers to itself and 100,000 brackets (YA-05),
// each to one Release, while 20 others are rolled out.
func TestHostileContentHarmsOnlyItsOwnRelease(t *testing.T) {
	ctx := deadline(t)
	const ns, others = "hostile", 20
	files := map[string]string{
		"bomb/bomb.yaml": aliasBomb,
		"self/self.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: self, namespace: hostile, annotations: *m}\n",
		"deep/deep.yaml": strings.Repeat("[", 100_000),
	}
	hostile := map[string]string{"bomb": "bomb.yaml", "self": "self.yaml", "deep": "deep.yaml", "huge": "huge.yaml"}
	for i := range others {
		files[fmt.Sprintf("good-%02d/cm.yaml", i)] = configMap(ns, fmt.Sprintf("good-%02d", i), "a", "1")
	}
	a := newApp(ctx, t, ns, files)
	// The file of 1 GB is in a repository of its own, since a snapshot is of
	// a whole commit. It is sparse, so that making it costs nothing.
	huge := newApp(ctx, t, ns+"-huge", map[string]string{"README": "a file of 1 GB comes next"})
	path := filepath.Join(huge.repo.Dir(), "huge", "huge.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	if _, err := huge.repo.Push(ctx, "a file of 1 GB"); err != nil {
		t.Fatal(err)
	}

	pid, restarts := shared.hub.Pod.PID(), shared.hub.Pod.Restarts()
	huge.release(ctx, t, ns+"-huge", "huge")
	for _, name := range []string{"bomb", "self", "deep"} {
		a.release(ctx, t, ns+"-"+name, name)
	}
	for i := range others {
		name := fmt.Sprintf("good-%02d", i)
		a.release(ctx, t, ns+"-"+name, name)
	}
	for i := range others {
		until(ctx, t, fmt.Sprintf("%s-good-%02d", ns, i), ready(""))
	}
	for name, file := range hostile {
		r := until(ctx, t, ns+"-"+name, func(r *corev1alpha1.Release) bool {
			return is(r, corev1alpha1.ConditionRendered, "False", "") &&
				strings.Contains(message(r, corev1alpha1.ConditionRendered), file)
		})
		if r.Status.Order != nil {
			t.Errorf("%s: an order was made", name)
		}
	}
	if shared.hub.Pod.PID() != pid || shared.hub.Pod.Restarts() != restarts {
		t.Errorf("the hub was %d and is %d, started again %d times", pid, shared.hub.Pod.PID(), shared.hub.Pod.Restarts()-restarts)
	}
}

const aliasBomb = `a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]
f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]
g: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f]
h: &h [*g, *g, *g, *g, *g, *g, *g, *g, *g]
apiVersion: v1
kind: ConfigMap
metadata: {name: bomb, namespace: hostile}
data: {k: v}
`

// TestBrokenYAMLNamesFileAndLineAndKeepsWhatRuns also heals what runs while
// the newest commit cannot be rendered.
func TestBrokenYAMLNamesFileAndLineAndKeepsWhatRuns(t *testing.T) {
	ctx := deadline(t)
	const ns = "broken"
	a := newApp(ctx, t, ns, map[string]string{"app/cm.yaml": configMap(ns, "settings", "a", "1")})
	a.release(ctx, t, ns, "app")
	good := until(ctx, t, ns, ready(""))

	a.commit(ctx, t, map[string]string{"app/cm.yaml": configMap(ns, "settings", "a", "1") + "---\napiVersion: v1\nkind: [ConfigMap\n"})
	a.sync(ctx, t, ns)
	bad := until(ctx, t, ns, func(r *corev1alpha1.Release) bool {
		return is(r, corev1alpha1.ConditionRendered, "False", corev1alpha1.ReasonRenderFailed)
	})
	text := message(bad, corev1alpha1.ConditionRendered)
	for _, want := range []string{"app/cm.yaml", "line"} {
		if !strings.Contains(text, want) {
			t.Errorf("the message does not say %q: %q", want, text)
		}
	}
	if bad.Status.Sequence != good.Status.Sequence || bad.Status.RenderRef != good.Status.RenderRef {
		t.Errorf("a render that failed made an order: %d %s", bad.Status.Sequence, bad.Status.RenderRef)
	}
	if is(bad, corev1alpha1.ConditionReady, "True", "") {
		t.Error("Ready is True although the newest commit cannot be rendered")
	}
	edit(ctx, t, ns, "settings", `{"data":{"a":"x"}}`)
	onEdge(ctx, t, configMaps, ns, "settings", data("a", "1"))
}

// TestARejectedRenderNamesEveryObjectAndAppliesNothing.
func TestARejectedRenderNamesEveryObjectAndAppliesNothing(t *testing.T) {
	ctx := deadline(t)
	const ns = "rejected"
	a := newApp(ctx, t, ns, map[string]string{"app/cm.yaml": configMap(ns, "settings", "a", "1")})
	a.release(ctx, t, ns, "app")
	good := until(ctx, t, ns, ready(""))

	service := "apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: " + ns + "}\nspec: {ports: [{port: 99999}]}\n"
	a.commit(ctx, t, map[string]string{
		"app/cm.yaml": configMap(ns, "settings", "a", "2"),
		"app/s1.yaml": fmt.Sprintf(service, "wrong-one"),
		"app/s2.yaml": fmt.Sprintf(service, "wrong-two"),
	})
	a.sync(ctx, t, ns)
	r := until(ctx, t, ns, func(r *corev1alpha1.Release) bool {
		return is(r, corev1alpha1.ConditionApplied, "False", corev1alpha1.ReasonDryRunFailed)
	})
	named := map[string]bool{}
	for _, e := range r.Status.Exceptions {
		named[e.Name] = true
	}
	if !named["wrong-one"] || !named["wrong-two"] || named["settings"] {
		t.Errorf("exceptions name %v, want wrong-one and wrong-two", named)
	}
	if r.Status.AppliedRef != good.Status.AppliedRef {
		t.Errorf("appliedRef moved to %s", r.Status.AppliedRef)
	}
	onEdge(ctx, t, configMaps, ns, "settings", data("a", "1"))
	edit(ctx, t, ns, "settings", `{"data":{"a":"x"}}`)
	onEdge(ctx, t, configMaps, ns, "settings", data("a", "1"))
}
