// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

func TestKU01TheNamespaceOfAKustomizationMovesWhatUpstreamMoves(t *testing.T) {
	t.Parallel()
	p := play(t, "KU-01", 5*time.Minute)
	p.step("v1")
	// Nobody serves kind Global, so that the render is all there is to see.
	p.is(p.targets[0], defaultRelease, corev1alpha1.ConditionRendered, "True", "")
	objects, err := p.preview(p.ctx, p.targets[0], p.releases[0])
	if err != nil {
		t.Fatal(err)
	}
	namespaces, subjects := map[string]string{}, map[string]string{}
	for _, object := range objects {
		u := unstructured.Unstructured{Object: object}
		namespaces[u.GetKind()] = u.GetNamespace()
		listed, _, err := unstructured.NestedSlice(object, "subjects")
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range listed {
			if s, ok := item.(map[string]any); ok {
				subjects[u.GetKind()+" "+fmt.Sprint(s["name"])] = fmt.Sprint(s["namespace"])
			}
		}
	}
	want := map[string]string{"ServiceAccount": "t-ku-01", "ClusterRole": "", "ClusterRoleBinding": "", "RoleBinding": "t-ku-01", "Global": "t-ku-01"}
	if diff := cmp.Diff(want, namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	want = map[string]string{
		"ClusterRoleBinding mine": "t-ku-01", "ClusterRoleBinding default": "t-ku-01",
		"ClusterRoleBinding stranger": "elsewhere", "RoleBinding stranger": "elsewhere",
	}
	if diff := cmp.Diff(want, subjects); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
	p.step("rendered")
	if !strings.Contains(p.out.String(), "name: unknown-scope") {
		t.Error("the player does not show what is rendered and not applied")
	}
}

func TestKU02AConfigMapIsKeptUntilTheRolloutThatReplacesItIsDone(t *testing.T) {
	t.Parallel()
	p := play(t, "KU-02", 6*time.Minute)
	p.opts.Rest = 6 * time.Second // a rollout that cannot end is not at rest
	edge := p.targets[0]
	pods := func() map[string]bool {
		listed, err := edge.cube.plane.Client().CoreV1().Pods(p.c.Namespace()).List(p.ctx, metav1.ListOptions{LabelSelector: "app=app"})
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for i := range listed.Items {
			if listed.Items[i].DeletionTimestamp == nil {
				names[listed.Items[i].Name] = true
			}
		}
		return names
	}
	maps := func() []string {
		listed, err := edge.cube.plane.Client().CoreV1().ConfigMaps(p.c.Namespace()).List(p.ctx, metav1.ListOptions{LabelSelector: corev1alpha1.LabelManaged})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range listed.Items {
			names = append(names, listed.Items[i].Name)
		}
		return names
	}
	p.step("v1")
	p.inSync(defaultRelease)
	p.step("v2")
	if got := maps(); len(got) != 2 {
		t.Errorf("ConfigMaps %v, want two", got)
	}
	if met(p.status(edge, defaultRelease), corev1alpha1.ConditionReady) {
		t.Error("the Release is Ready, and its rollout has not ended")
	}
	before := pods()
	for name := range before {
		if err := edge.cube.plane.Client().CoreV1().Pods(p.c.Namespace()).Delete(p.ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		break
	}
	deadline := time.Now().Add(patience)
	for len(pods()) < len(before) {
		if time.Now().After(deadline) {
			t.Fatalf("pods %v, of %v", pods(), before)
		}
		if err := p.pass(p.ctx, pollPause); err != nil {
			t.Fatal(err)
		}
	}
	p.opts.Rest = patience
	p.step("v3")
	p.inSync(defaultRelease)
	if got := maps(); len(got) != 1 {
		t.Errorf("ConfigMaps %v, want one", got)
	}
	p.carriedOut()
}

func TestKU04FoldersOfOneSourceAreReadAndNothingOutsideOfIt(t *testing.T) {
	t.Parallel()
	p := play(t, "KU-04", 8*time.Minute)
	p.step("fine")
	if data := p.data("base"); data["k"] != "v" {
		t.Errorf("base %v", data)
	}
	for _, name := range []string{"over", "over2"} {
		p.is(p.targets[0], name, corev1alpha1.ConditionRendered, "True", "")
	}
	// As the docs say: links inside the source are followed.
	p.inSync("linked")
	if data := p.data("env"); data["A"] != "1" {
		t.Errorf("env %v", data)
	}
	p.step("escape")
	secret := p.world.secretFile()
	for name, says := range map[string]string{
		"one": "one/secret.env", "two": "two/dir", "three": "three/secret.env", "four": "leads out of the source", "five": "nothing is fetched",
	} {
		message := p.fails(name, corev1alpha1.ReasonRenderFailed, says)
		if strings.Contains(message, secret) || strings.Contains(message, "exist") {
			t.Errorf("%s tells of what is outside: %s", name, message)
		}
	}
	p.step("refused")
	// The same links in a folder of manifests and in a chart.
	for name, text := range map[string]string{
		"raw":    "step: v1\ndo: files\nkind: raw\nsymlinks: {app/cm.yaml: " + secret + "}\ntree: {app/other.yaml: \"# nothing\\n\"}\n",
		"up":     "step: v1\ndo: files\nkind: raw\nsymlinks: {app/cm.yaml: ../../outside.yaml}\ntree: {app/other.yaml: \"# nothing\\n\"}\n",
		"values": "step: v1\ndo: files\nkind: helm\nsymlinks: {app/values.yaml: " + secret + "}\ntree: {app/Chart.yaml: \"{apiVersion: v2, name: app, version: 0.0.1}\\n\", app/templates/cm.yaml: \"{}\\n\"}\n",
		"file":   "step: v1\ndo: files\nkind: helm\nsymlinks: {app/leak.txt: ../../outside/secret.env}\ntree: {app/Chart.yaml: \"{apiVersion: v2, name: app, version: 0.0.1}\\n\", app/templates/cm.yaml: \"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {x: {{ .Files.Get \\\"leak.txt\\\" | quote }}}}\\n\"}\n",
	} {
		t.Run("and in "+name, func(t *testing.T) {
			links := playText(t, shared, "# id: LINK-"+name+"\n---\n"+text)
			links.step("v1")
			message := links.fails(defaultRelease, corev1alpha1.ReasonRenderFailed, "symbolic link")
			if strings.Contains(message, secret) || strings.Contains(message, "exist") {
				t.Errorf("it tells of what is outside: %s", message)
			}
		})
	}
}
