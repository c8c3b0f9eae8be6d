// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// data of a ConfigMap that has to be live.
func (p *played) data(name string) map[string]string {
	p.t.Helper()
	data, _, err := unstructured.NestedStringMap(p.live(p.targets[0], "ConfigMap", name).Object, "data")
	if err != nil {
		p.t.Fatal(err)
	}
	return data
}

// inSync says that all is applied and stays as it is.
func (p *played) inSync(name string) {
	p.t.Helper()
	p.is(p.targets[0], name, corev1alpha1.ConditionInSync, "True", "")
	p.is(p.targets[0], name, corev1alpha1.ConditionReady, "True", "")
}

// untouched says that nobody writes to an object over three looks.
func (p *played) untouched(object *unstructured.Unstructured) {
	p.t.Helper()
	for range polls {
		if err := p.pass(p.ctx, pollGap); err != nil {
			p.t.Fatal(err)
		}
		if now := p.live(p.targets[0], object.GetKind(), object.GetName()); now.GetResourceVersion() != object.GetResourceVersion() {
			p.t.Errorf("%s %s is written to", object.GetKind(), object.GetName())
			return
		}
	}
}

// fails says that a Release does not render, and what the message has to name.
func (p *played) fails(name, reason string, says ...string) string {
	p.t.Helper()
	p.is(p.targets[0], name, corev1alpha1.ConditionRendered, "False", reason)
	c := condition(p.status(p.targets[0], name), corev1alpha1.ConditionRendered)
	if c == nil {
		return ""
	}
	for _, word := range says {
		if !strings.Contains(c.Message, word) {
			p.t.Errorf("Release %s: %q does not name %q", name, c.Message, word)
		}
	}
	return c.Message
}

// carriedOut says that the player left out nothing of a step's event.
func (p *played) carriedOut(but ...string) {
	p.t.Helper()
	for line := range strings.Lines(p.out.String()) {
		if left, ok := strings.CutPrefix(line, "# NOT CARRIED OUT: "); ok && !slices.Contains(but, strings.TrimSpace(left)) {
			p.t.Errorf("not carried out: %s", left)
		}
	}
}

func (p *played) digest(name string) string {
	p.t.Helper()
	return p.status(p.targets[0], name).Status.RenderRef
}

func TestHE01NumbersAreThoseOfHelmHoweverTheyCame(t *testing.T) {
	t.Parallel()
	p := play(t, "HE-01", 5*time.Minute)
	p.step("a")
	numbers := p.data("numbers")
	for key, want := range map[string]string{"bare": "1e+06", "build": "2.0240131e+07", "fixed": "20240131", "long": "1234567890123", "kind": "float64", "same": "true", "text": "0123", "exp": "12e3"} {
		if numbers[key] != want {
			t.Errorf("%s is %s, want %s", key, numbers[key], want)
		}
	}
	// The digest is that of the bytes of the render.
	digest := p.digest(defaultRelease)
	for _, step := range []string{"b", "c"} {
		p.step(step)
		p.inSync(defaultRelease)
		if got := p.digest(defaultRelease); got != digest {
			t.Errorf("the render of step %s is %s, want that of step a, %s", step, got, digest)
		}
		if diff := cmp.Diff(numbers, p.data("numbers")); diff != "" {
			t.Errorf("step %s (-a +%s):\n%s", step, step, diff)
		}
	}
	p.carriedOut()
}

func TestHE02NullsOfAReleaseRemoveDefaultsThroughTheHub(t *testing.T) {
	t.Parallel()
	p := play(t, "HE-02", 5*time.Minute)
	p.step("v1")
	parent, child := p.data("parent"), p.data("child")
	if parent["has"] != "false" || strings.Contains(parent["strategy"], "rollingUpdate") {
		t.Errorf("parent %v", parent)
	}
	if strings.Contains(child["probe"], "httpGet") || !strings.Contains(child["probe"], "exec") || strings.Contains(child["tls"], "issuer") || !strings.Contains(child["tls"], "true") {
		t.Errorf("child %v", child)
	}
	release := p.status(p.targets[0], defaultRelease)
	if values := string(release.Spec.Content.Helm.Values.Raw); strings.Count(values, "null") != 3 {
		t.Errorf("values as they are read back: %s", values)
	}
	if made := release.Status.Render; made == nil || made.Provenance == nil || made.Provenance.Chart != "app" || made.Provenance.ChartVersion != "0.0.1" {
		t.Errorf("provenance %+v", made)
	}
	// The same values in a file give the same bytes.
	digest := p.digest(defaultRelease)
	r := p.releases[0]
	files := map[string]string{"app/theirs.yaml": p.c.values(p.c.Steps[0])}
	for path, text := range r.files {
		files[path] = text
	}
	if _, err := p.replaced(p.ctx, r, files, corev1alpha1.ReleaseContent{Path: "app", Helm: &corev1alpha1.HelmContent{ValuesFiles: []string{"theirs.yaml"}}}); err != nil {
		t.Fatal(err)
	}
	if got := p.digest(defaultRelease); got != digest {
		t.Errorf("with the values in a file the render is %s, want %s", got, digest)
	}
}

func TestHE04DocumentsOfAChartAreThoseThatHelmSees(t *testing.T) {
	t.Parallel()
	p := play(t, "HE-04", 5*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	if got := p.status(p.targets[0], defaultRelease).Status.Objects.Total; got != 5 {
		t.Errorf("%d objects, want 5", got)
	}
	rulers := p.data("rulers")
	if lines := strings.Split(strings.TrimSuffix(rulers["script.sh"], "\n"), "\n"); len(lines) != 5 || lines[3] != "------" {
		t.Errorf("script.sh is %q", rulers["script.sh"])
	}
	if nested := rulers["nested.yaml"]; !strings.HasPrefix(nested, "---\n") || !strings.HasSuffix(nested, "...\n") || rulers["quoted"] != "a --- b" {
		t.Errorf("rulers are %q", rulers)
	}
	if got := p.data("second")["k"]; got != "---" {
		t.Errorf("second has %q", got)
	}
	p.data("third")
	p.data("fourth")
	if got := p.data("fifth")["k"]; got != "v" {
		t.Errorf("fifth has %q", got)
	}
}

func TestHE05WhatIsEmptyIsNoObjectAndWhatIsBrokenIsNamed(t *testing.T) {
	t.Parallel()
	p := play(t, "HE-05", 5*time.Minute)
	p.step("v1", "one")
	p.inSync(defaultRelease)
	real := p.live(p.targets[0], "configmap", "real")
	if got := p.status(p.targets[0], defaultRelease).Status.Objects.Total; got != 1 {
		t.Errorf("%d objects, want 1", got)
	}
	p.step("v2")
	message := p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "kind: is missing", "metadata: is missing", "document 3")
	if got := strings.Count(message, "app/templates/half.yaml"); got != 3 {
		t.Errorf("the file is named %d times: %s", got, message)
	}
	p.same(p.targets[0], real)
}

// rendersElsewhere says that the Release renders for another Cluster, which has a key that
// this one lacks. There it waits for a sync: it is the same place.
func (p *played) rendersElsewhere(key string) {
	p.t.Helper()
	r := p.releases[0]
	other, err := p.join(p.ctx, p.edge, p.c.Namespace()+"-other", "other")
	if other != nil {
		p.targets = append(p.targets, other)
	}
	if err == nil {
		err = p.described(p.ctx, other, key, "here")
	}
	if err == nil {
		err = p.described(p.ctx, other, "note", hardText)
	}
	if err == nil {
		err = p.world.Hub.Source(p.ctx, p.world.Git, other.namespace, p.source(r), metav1.Duration{Duration: 10 * time.Second})
	}
	if err == nil {
		err = p.world.Hub.Create(p.ctx, install.Release(other.namespace, r.name, other.cluster, p.source(r), r.path, func(out *corev1alpha1.Release) {
			out.Spec.Content, out.Spec.Mutations = r.content, r.mutations
			out.Spec.SyncPolicy.Automatic = new(bool)
		}))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := harness.WaitFor(ctx, p.world.Hub.Plane.Dynamic(), install.Releases, other.namespace, r.name, harness.HasCondition(corev1alpha1.ConditionRendered, "True", "")); err != nil {
		p.t.Errorf("for Cluster other: %v", err)
	}
}

func TestMU01BracesAndDollarsOfManifestsAreData(t *testing.T) {
	t.Parallel()
	p := play(t, "MU-01", 5*time.Minute)
	p.step("v1")
	written := p.data("text")
	if !strings.Contains(written["rule"], `{{ $labels.instance }} is {{ printf "%.2f" $value }}`) || written["pct"] != "100%d %s %!v(MISSING)" || written["tpl"] != `{{- if false }}gone{{ end -}} {{ "{{" }}` {
		t.Errorf("not as it is written: %q", written)
	}
	p.step("patch", "exact")
	p.inSync(defaultRelease)
	object := p.live(p.targets[0], "configmap", "text")
	if diff := cmp.Diff(written, p.data("text")); diff != "" {
		t.Errorf("data (-before +after):\n%s", diff)
	}
	ours := func(all map[string]string) map[string]string {
		out := map[string]string{}
		for key, value := range all {
			if !strings.HasPrefix(key, "convoy.kumodo.io/") {
				out[key] = value
			}
		}
		return out
	}
	if diff := cmp.Diff(map[string]string{"site": defaultCluster}, ours(object.GetLabels())); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"note": hardText}, ours(object.GetAnnotations())); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	p.step("unknown")
	p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "site", "unheardOf", defaultCluster)
	p.rendersElsewhere("unheardOf")
	if now := p.live(p.targets[0], "configmap", "text"); now.GetResourceVersion() != object.GetResourceVersion() {
		t.Error("the last render is not kept")
	}
	p.carriedOut()
}

func TestSS06LargeObjectsArriveAndOneTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	p := play(t, "SS-06", 5*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	big := p.live(p.targets[0], "configmap", "big")
	if got := p.status(p.targets[0], defaultRelease).Status.Objects; got.Total != 42 || got.Applied != 42 {
		t.Errorf("%+v, want 42 objects", got)
	}
	docs, err := p.c.render(p.c.find("v1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if doc.Kind() != "ConfigMap" {
			continue
		}
		live := p.live(p.targets[0], "configmap", doc.Name())
		if got := p.data(doc.Name())["blob"]; got != doc.text("data", "blob") {
			t.Errorf("ConfigMap %s has %d bytes, want %d", doc.Name(), len(got), len(doc.text("data", "blob")))
		}
		for key, value := range live.GetAnnotations() {
			if len(value) > 1000 {
				t.Errorf("ConfigMap %s has an annotation %s of %d bytes", doc.Name(), key, len(value))
			}
		}
	}
	p.step("v2")
	c := condition(p.status(p.targets[0], defaultRelease), corev1alpha1.ConditionApplied)
	if c == nil || c.Status != "False" || !strings.Contains(c.Message, "big") || len(c.Message) > 2000 {
		t.Errorf("Applied is %+v", c)
	}
	p.same(p.targets[0], big)
	if got := len(p.data("big")["blob"]); got != 900_000 {
		t.Errorf("big has %d bytes, want the 900000 that it had", got)
	}
}

func TestSS03TheStatusOfARefusedRenderStaysSmallAndNamesEachField(t *testing.T) {
	t.Parallel()
	p := play(t, "SS-03", 5*time.Minute)
	edge := p.targets[0]
	p.step("v1")
	p.is(edge, defaultRelease, corev1alpha1.ConditionReady, "True", "")
	job, free := p.live(edge, "job", "migrate"), p.live(edge, "configmap", "free")
	p.step("v2")
	status := p.status(edge, defaultRelease).Status
	raw, err := json.Marshal(status)
	if err != nil || len(raw) >= 16<<10 {
		t.Errorf("the status has %d bytes, %v", len(raw), err)
	}
	fields := map[string]string{"Job": "spec.template", "Deployment": "spec.selector", "Service": "spec.clusterIP", "Secret": "type", "ConfigMap": "data"}
	for _, e := range status.Exceptions {
		if field := fields[e.Kind]; field == "" || !strings.Contains(e.Message, field) || len(e.Message) > 300 {
			t.Errorf("exception %+v", e)
		}
		delete(fields, e.Kind)
	}
	c := condition(p.status(edge, defaultRelease), corev1alpha1.ConditionApplied)
	if len(fields) > 0 || c == nil || !strings.HasPrefix(c.Message, "5 of 6 objects refused, nothing applied: ") {
		t.Errorf("not named: %v; Applied is %+v", fields, c)
	}
	p.same(edge, job)
	if now := p.live(edge, "configmap", "free"); now.GetResourceVersion() != free.GetResourceVersion() {
		t.Error("an object of a refused render was written")
	}
	p.step("back")
	p.is(edge, defaultRelease, corev1alpha1.ConditionInSync, "True", "")
	if left := p.status(edge, defaultRelease).Status.Exceptions; len(left) > 0 {
		t.Errorf("left in the status: %+v", left)
	}
}
