// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
)

// other plays the files of a step as another kind of content, in a namespace of its own,
// as a case of its own.
func (p *played) other(kind string, s *Step, change func(files map[string]string)) *played {
	p.t.Helper()
	id := p.c.ID + "-" + kind
	namespace := "t-" + strings.ToLower(id)
	files, _, err := p.c.files(s)
	if err != nil {
		p.t.Fatal(err)
	}
	step := &Step{Name: "v1", Do: doFiles, Kind: kind, Tree: map[string]string{}}
	for path, text := range files {
		step.Tree[path] = strings.ReplaceAll(text, p.c.Namespace(), namespace)
	}
	change(step.Tree)
	out := newPlayed(p.t, shared, &Case{ID: id, File: id, Steps: []*Step{step}}, 5*time.Minute)
	out.start()
	return out
}

func kustomizationOf(names ...string) func(map[string]string) {
	return func(files map[string]string) {
		files["app/kustomization.yaml"] = "{apiVersion: kustomize.config.k8s.io/v1beta1, kind: Kustomization, resources: [" + strings.Join(names, ", ") + "]}\n"
	}
}

func TestYA01QuotedWordsAndOctalsAreLiveAsKubectlReadsThem(t *testing.T) {
	t.Parallel()
	p := play(t, "YA-01", 5*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	modes := p.live(p.targets[0], "deployment", "modes")
	annotations := map[string]string{"a": "yes", "b": "on", "c": "0123", "d": "1e3", "e": "null", "f": "~", "g": "0x1F", "h": "12:34", "i": "1_000", "j": ".5", "k": "y", "l": "2024-01-31", "m": ""}
	right := func(object *unstructured.Unstructured) {
		t.Helper()
		for key, want := range annotations {
			if got, there := object.GetAnnotations()[key]; got != want || !there {
				t.Errorf("annotation %s is %q, want %q", key, got, want)
			}
		}
		spec, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(spec["containers"])
		for _, want := range []string{"[yes no off 0755 1.0 = - x {a} #no-comment true]", "value:false", "value:007"} {
			if !strings.Contains(text, want) {
				t.Errorf("containers are %s, want %s", text, want)
			}
		}
		if got := strings.Count(fmt.Sprint(spec["volumes"]), "defaultMode:493"); got != 3 {
			t.Errorf("%d of 3 modes are 493: %v", got, spec["volumes"])
		}
	}
	right(modes)
	p.untouched(modes)
	for _, kind := range []string{kindKustomize, kindHelm} {
		way := p.other(kind, p.c.find("v1"), func(files map[string]string) {
			if kind == kindKustomize {
				kustomizationOf("pod.yaml")(files)
				return
			}
			files["app/Chart.yaml"] = "{apiVersion: v2, name: app, version: 0.0.1}\n"
			files["app/templates/pod.yaml"] = files["app/pod.yaml"]
			delete(files, "app/pod.yaml")
		})
		way.step("v1")
		way.inSync(defaultRelease)
		right(way.live(way.targets[0], "deployment", "modes"))
		// A patch of the hub touches the Deployment.
		r := way.releases[0]
		r.mutations = []corev1alpha1.Mutation{{Name: "label", Type: corev1alpha1.MutationMergePatch, Inline: []string{"metadata: {labels: {touched: \"on\"}}\n"}}}
		if err := way.mutated(way.ctx, r); err != nil {
			t.Fatal(err)
		}
		way.inSync(defaultRelease)
		touched := way.live(way.targets[0], "deployment", "modes")
		if touched.GetLabels()["touched"] != "on" {
			t.Errorf("labels %v", touched.GetLabels())
		}
		right(touched)
	}
	p.step("v2")
	p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "app/bad1.yaml", "data.port", "app/bad2.yaml", "flag", "app/bad3.yaml", "a key must be text")
	p.same(p.targets[0], modes)
}

func TestYA02MarksAndLineEndsAreFineAndBrokenBytesAreNamed(t *testing.T) {
	t.Parallel()
	p := play(t, "YA-02", 5*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	p.data("bom")
	p.data("bom2")
	if diff := cmp.Diff(map[string]string{"k": "v", "block": "one\ntwo\n"}, p.data("crlf")); diff != "" {
		t.Errorf("crlf (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"k": "ß 日本 🚀 é", "nbsp": "a\u00a0b", "del": "a\tb"}, p.data("text")); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	text := p.live(p.targets[0], "configmap", "text")
	p.step("v2")
	p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "app/latin1.yaml, line 4", "app/tab.yaml", "line 4", "app/control.yaml, line 4")
	p.same(p.targets[0], text)
	if !p.world.Hub.Process().Running() {
		t.Error("the hub is gone")
	}
}

func TestYA04NoDocumentIsLostBetweenSeparators(t *testing.T) {
	t.Parallel()
	p := play(t, "YA-04", 5*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	for i := range 9 {
		p.data(fmt.Sprintf("c%d", i+1))
	}
	if text := p.data("c7")["text"]; !strings.HasPrefix(text, "---\n") || strings.Count(strings.TrimSuffix(text, "\n"), "\n") != 1 {
		t.Errorf("c7 has %q", text)
	}
	// Through a kustomization each is there too, or its file is named.
	way := p.other(kindKustomize, p.c.find("v1"), kustomizationOf("1.yaml", "2.yml", "3.json", "4.yaml", "sub/5.yaml"))
	way.step("v1")
	release := way.status(way.targets[0], defaultRelease)
	if met(release, corev1alpha1.ConditionReady) {
		for i := range 9 {
			way.data(fmt.Sprintf("c%d", i+1))
		}
	} else {
		way.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "app/")
	}
}

func TestYA05BombsAreRefusedAndHarmNobody(t *testing.T) {
	t.Parallel()
	p := play(t, "YA-05", 6*time.Minute)
	p.step("v1")
	p.inSync(defaultRelease)
	anchored := p.live(p.targets[0], "deployment", "anchored")
	labels, _, err := unstructured.NestedStringMap(anchored.Object, "spec", "template", "metadata", "labels")
	if diff := cmp.Diff(map[string]string{"app": "anchored", "tier": "two"}, labels); diff != "" || err != nil {
		t.Errorf("labels (-want +got):\n%s %v", diff, err)
	}
	containers, _, err := unstructured.NestedSlice(anchored.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 2 {
		t.Fatalf("%v, %v", containers, err)
	}
	for _, field := range []string{"image", "resources"} {
		first, _ := containers[0].(map[string]any)
		second, _ := containers[1].(map[string]any)
		if diff := cmp.Diff(first[field], second[field]); diff != "" {
			t.Errorf("%s (-a +b):\n%s", field, diff)
		}
	}
	pid := p.world.Hub.Process().PID()
	before, err := harness.UsageOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	for step, file := range map[string]string{"v2": "app/b.yaml", "v3": "app/bomb.yaml", "v4": "app/self.yaml"} {
		p.step(step)
		p.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, file)
		way := p.other(kindKustomize+step, p.c.find(step), kustomizationOf(strings.TrimPrefix(file, "app/")))
		way.c.Steps[0].Kind = kindKustomize
		way.step("v1")
		way.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, file)
	}
	// The notes of v4: the same as values, as a template, and 100,000 brackets.
	bomb := p.c.find("v3").Tree["app/bomb.yaml"]
	for name, files := range map[string]map[string]string{
		"values":   {"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.0.1}\n", "app/values.yaml": bomb, "app/templates/cm.yaml": "{}\n"},
		"template": {"app/Chart.yaml": "{apiVersion: v2, name: app, version: 0.0.1}\n", "app/templates/bomb.yaml": bomb},
		"brackets": {"app/deep.yaml": strings.Repeat("[", 100_000) + "\n"},
	} {
		kind := kindHelm
		if name == "brackets" {
			kind = kindRaw
		}
		way := p.other(name, p.c.find("v4"), func(tree map[string]string) {
			clear(tree)
			for path, text := range files {
				tree[path] = text
			}
		})
		way.c.Steps[0].Kind = kind
		way.step("v1")
		way.fails(defaultRelease, corev1alpha1.ReasonRenderFailed)
	}
	after, err := harness.UsageOf(pid)
	if err != nil || p.world.Hub.Process().PID() != pid {
		t.Fatalf("the hub is another process: %v", err)
	}
	// Other cases are played at the same time, so that this is a bound and no measure.
	if grown := after.Private - before.Private; after.Private > before.Private && grown > 64<<20 {
		t.Logf("the hub grew by %d MiB, beside the other cases", grown>>20)
	}
	p.same(p.targets[0], anchored)
}
