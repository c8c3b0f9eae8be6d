// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/apiserver/apiservertest"
	"kumodo.io/convoy/hub/apiserver/shard"
)

func TestWhatAUserLeavesOutIsFilledIn(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	r, cl, g := newRelease("team", "r", "edge"), newCluster("team", "edge"), newGitRepository("team", "app")
	create(t, c, r, cl, g)

	yes := true
	want := corev1alpha1.ReleaseSpec{
		ClusterRef: corev1alpha1.ClusterReference{Name: "edge"},
		Source:     corev1alpha1.SourceReference{Kind: "GitRepository", Name: "app"},
		Content:    corev1alpha1.ReleaseContent{Path: "."},
		Images:     corev1alpha1.ReleaseImages{Policy: corev1alpha1.ImagesAsIs},
		SyncPolicy: corev1alpha1.SyncPolicy{
			Automatic: &yes, Interval: &metav1.Duration{Duration: 5 * time.Minute}, Timeout: &metav1.Duration{Duration: 5 * time.Minute},
			Conflicts: corev1alpha1.ConflictsFail, Immutable: corev1alpha1.ImmutableReport, Prune: corev1alpha1.PrunePolicy{Orphaned: &yes},
		},
	}
	if diff := cmp.Diff(want, r.Spec); diff != "" {
		t.Errorf("Release (-want +got):\n%s", diff)
	}
	if cl.Spec.ConnectionMode != corev1alpha1.ConnectionModeAgent {
		t.Errorf("Cluster: connectionMode %q", cl.Spec.ConnectionMode)
	}
	if g.Spec.Ref != (sourcev1alpha1.GitRef{Branch: "main"}) || g.Spec.Interval.Duration != time.Minute {
		t.Errorf("GitRepository: ref %+v, interval %s", g.Spec.Ref, g.Spec.Interval.Duration)
	}
}

func TestErrorsNameTheFieldAndNothingIsSkipped(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	release := func(spec string) string {
		return `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"Release","metadata":{"name":"r"},"spec":` + spec + `}`
	}
	repository := func(spec string) string {
		return `{"apiVersion":"source.convoy.kumodo.io/v1alpha1","kind":"GitRepository","metadata":{"name":"g"},"spec":` + spec + `}`
	}
	const good = `"clusterRef":{"name":"c"},"source":{"kind":"GitRepository","name":"s"}`
	for name, c := range map[string]struct {
		path, body string
		code       int
		want       []string
	}{
		"a field of a later version is refused, not ignored": {
			path: corePath + "/namespaces/team/releases", body: release(`{` + good + `,"clusterOrder":1}`), code: http.StatusBadRequest, want: []string{`unknown field \"spec.clusterOrder\"`},
		},
		"a misspelt field deep inside": {
			path: corePath + "/namespaces/team/releases", body: release(`{` + good + `,"syncPolicy":{"prune":{"orphan":true}}}`), code: http.StatusBadRequest, want: []string{`unknown field \"spec.syncPolicy.prune.orphan\"`},
		},
		"a field given twice": {
			path: corePath + "/namespaces/team/releases", body: release(`{"content":{"path":"a","path":"b"},` + good + `}`), code: http.StatusBadRequest, want: []string{`duplicate field \"spec.content.path\"`},
		},
		"nothing that is required": {
			path: corePath + "/namespaces/team/releases", body: release(`{}`), code: http.StatusUnprocessableEntity, want: []string{"spec.clusterRef.name: Required", "spec.source.kind: Required", "spec.source.name: Required"},
		},
		"several values that cannot be": {
			path: corePath + "/namespaces/team/releases", body: release(`{` + good + `,"content":{"path":"../x"},"syncPolicy":{"interval":"1s","timeout":"48h","conflicts":"Maybe"}}`), code: http.StatusUnprocessableEntity,
			want: []string{"spec.content.path", "spec.syncPolicy.interval", "spec.syncPolicy.timeout", `spec.syncPolicy.conflicts: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Force\"`},
		},
		"a source of a kind that this build has not": {
			path: corePath + "/namespaces/team/releases", body: release(`{"clusterRef":{"name":"c"},"source":{"kind":"Bucket","name":"s"}}`), code: http.StatusUnprocessableEntity, want: []string{"spec.source.kind: Unsupported value", "GitRepository", "HelmRegistry", "OCIRegistry"},
		},
		"a password in a URL, which the answer does not repeat": {
			path: sourcePath + "/namespaces/team/gitrepositories", body: repository(`{"url":"https://me:hunter2@git.example/app"}`), code: http.StatusUnprocessableEntity, want: []string{"spec.url", "must not hold credentials"},
		},
		"two refs at once": {
			path: sourcePath + "/namespaces/team/gitrepositories", body: repository(`{"url":"https://git.example/app","ref":{"branch":"a","tag":"b"}}`), code: http.StatusUnprocessableEntity, want: []string{"spec.ref", "at most one"},
		},
		"a chart registry without a chart": {
			path: corePath + "/namespaces/team/releases", body: release(`{"clusterRef":{"name":"c"},"source":{"kind":"HelmRegistry","name":"s"}}`), code: http.StatusUnprocessableEntity, want: []string{"spec.content.helm.chart: Required"},
		},
		"a tag in the URL of an artifact": {
			path: sourcePath + "/namespaces/team/ociregistries", code: http.StatusUnprocessableEntity, want: []string{"spec.url", "without tag or digest"},
			body: `{"apiVersion":"source.convoy.kumodo.io/v1alpha1","kind":"OCIRegistry","metadata":{"name":"o"},"spec":{"url":"oci://registry.example/app:1.0"}}`,
		},
		"a password in the URL of charts, which the answer does not repeat": {
			path: sourcePath + "/namespaces/team/helmregistries", code: http.StatusUnprocessableEntity, want: []string{"spec.url", "must not hold credentials"},
			body: `{"apiVersion":"source.convoy.kumodo.io/v1alpha1","kind":"HelmRegistry","metadata":{"name":"h"},"spec":{"url":"https://me:hunter2@charts.example"}}`,
		},
		"a cluster of a mode that there is not": {
			path: corePath + "/namespaces/team/clusters", body: `{"apiVersion":"core.convoy.kumodo.io/v1alpha1","kind":"Cluster","metadata":{"name":"c"},"spec":{"connectionMode":"remote"}}`, code: http.StatusUnprocessableEntity, want: []string{"spec.connectionMode: Unsupported value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := raw(t, s, http.MethodPost, c.path+"?fieldValidation=Strict", c.body)
			if a.code != c.code {
				t.Errorf("code %d, want %d", a.code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(a.body, want) {
					t.Errorf("the answer does not contain %q:\n%s", want, a.body)
				}
			}
			if strings.Contains(a.body, "hunter2") {
				t.Error("the answer repeats the password")
			}
		})
	}
}

func TestTheGenerationCountsChangesOfTheSpecAndNothingElse(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	r, cl, g := newRelease("team", "r", "edge"), newCluster("team", "edge"), newGitRepository("team", "app")
	create(t, c, r, cl, g)
	for name, o := range map[string]struct {
		object client.Object
		change func()
	}{
		"Release":       {r, func() { r.Spec.Content.Path = "other" }},
		"Cluster":       {cl, func() { cl.Spec.Metadata = map[string]string{"a": "b"} }},
		"GitRepository": {g, func() { g.Spec.URL = "https://git.example/other" }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := o.object.GetGeneration(); got != 1 {
				t.Errorf("generation %d when new, want 1", got)
			}
			o.object.SetLabels(map[string]string{"new": "label"})
			if err := c.Update(t.Context(), o.object); err != nil {
				t.Fatal(err)
			}
			if got := o.object.GetGeneration(); got != 1 {
				t.Errorf("generation %d after a new label, want 1", got)
			}
			o.change()
			o.object.SetGeneration(99) // a user's own idea of it is ignored
			if err := c.Update(t.Context(), o.object); err != nil {
				t.Fatal(err)
			}
			if got := o.object.GetGeneration(); got != 2 {
				t.Errorf("generation %d after a change of the spec, want 2", got)
			}
		})
	}
}

func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	r := newRelease("team", "r", "edge")
	r.Status.Sequence = 7
	create(t, c, r)
	if r.Status.Sequence != 0 {
		t.Error("a user set a status at create")
	}

	r.Status.Sequence, r.Spec.Content.Path, r.Labels = 8, "from-status", map[string]string{"from": "status"}
	if err := c.Status().Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got := get(t, c, &corev1alpha1.Release{}, "team", "r")
	if got.Status.Sequence != 8 {
		t.Errorf("status.sequence %d, want 8", got.Status.Sequence)
	}
	if got.Spec.Content.Path != "." || got.Labels["from"] != "" || got.Generation != 1 {
		t.Errorf("a status update changed path %q, labels %v, generation %d", got.Spec.Content.Path, got.Labels, got.Generation)
	}

	got.Status.Sequence, got.Spec.Content.Path = 9, "from-main"
	if err := c.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	got = get(t, c, &corev1alpha1.Release{}, "team", "r")
	if got.Status.Sequence != 8 || got.Spec.Content.Path != "from-main" {
		t.Errorf("an update gave sequence %d and path %q, want 8 and from-main", got.Status.Sequence, got.Spec.Content.Path)
	}
}

func TestTheClusterOfAReleaseCannotChange(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	r := newRelease("team", "r", "edge-1")
	create(t, c, r)
	r.Spec.ClusterRef.Name = "edge-2"
	err := c.Update(t.Context(), r)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.clusterRef.name") {
		t.Errorf("got %v, want Invalid with the field's path", err)
	}
}

func TestTheShardLabelIsTheServersOwn(t *testing.T) {
	t.Parallel()
	const shards = 16
	s := apiservertest.Start(t, func(c *apiserver.Config) { c.Options.Shards = shards })
	c := newClient(t, s)
	r, cl, g := newRelease("team", "r", "edge"), newCluster("team", "edge"), newGitRepository("team", "app")
	for _, o := range []client.Object{r, cl, g} {
		o.SetLabels(map[string]string{corev1alpha1.LabelShard: "mine", "other": "stays"})
	}
	create(t, c, r, cl, g)
	want := shard.Of("team", "edge", shards)
	if cl.Labels[corev1alpha1.LabelShard] != want || r.Labels[corev1alpha1.LabelShard] != want {
		t.Errorf("Cluster %v and Release %v, want both in shard %s", cl.Labels, r.Labels, want)
	}
	if g.Labels[corev1alpha1.LabelShard] != shard.Of("team", "app", shards) {
		t.Errorf("GitRepository: %v", g.Labels)
	}
	r.Labels[corev1alpha1.LabelShard] = "again"
	if err := c.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if r.Labels[corev1alpha1.LabelShard] != want || r.Labels["other"] != "stays" {
		t.Errorf("labels after an update: %v", r.Labels)
	}
}

func TestFinalizersAreSetAndCannotBeForgotten(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := newClient(t, s)
	r, cl := newRelease("team", "r", "edge"), newCluster("team", "edge")
	create(t, c, r, cl)
	for want, o := range map[string]client.Object{corev1alpha1.FinalizerRelease: r, corev1alpha1.FinalizerCluster: cl} {
		if !slices.Contains(o.GetFinalizers(), want) {
			t.Fatalf("%T has finalizers %v, want %s", o, o.GetFinalizers(), want)
		}
		// A manifest that is put over the object knows nothing of it.
		o.SetFinalizers(nil)
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(o.GetFinalizers(), want) {
			t.Errorf("a PUT took the finalizer of %T away", o)
		}
	}
	// The documented way out: delete, then take the finalizer off.
	if err := c.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r = get(t, c, &corev1alpha1.Release{}, "team", "r")
	r.SetFinalizers(nil)
	if err := c.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(r), r); !apierrors.IsNotFound(err) {
		t.Errorf("after the finalizer went: %v, want NotFound", err)
	}
}

func TestSomebodyWhoNeverChoseABranchCanChooseATag(t *testing.T) {
	t.Parallel()
	s := apiservertest.Start(t)
	c := dynamicClient(t, s)
	r := c.Resource(userKinds["GitRepository"].resource).Namespace("team")
	if _, err := r.Apply(t.Context(), "applied", manifestOf("GitRepository"), metav1.ApplyOptions{FieldManager: "alice"}); err != nil {
		t.Fatal(err)
	}
	m := manifestOf("GitRepository")
	m.Object["spec"].(map[string]any)["ref"] = map[string]any{"tag": "v1"}
	got, err := r.Apply(t.Context(), "applied", m, metav1.ApplyOptions{FieldManager: "alice"})
	if err != nil {
		t.Fatalf("apply a tag over the default branch: %v", err)
	}
	want := map[string]any{"tag": "v1"}
	if diff := cmp.Diff(want, got.Object["spec"].(map[string]any)["ref"]); diff != "" {
		t.Errorf("ref (-want +got):\n%s", diff)
	}
}
