// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// previewer answers previews and remembers what was asked.
type previewer struct {
	mu       sync.Mutex
	paths    []string
	releases []corev1alpha1.Release
}

func (p *previewer) answer(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths = append(p.paths, r.Method+" "+r.URL.RequestURI())
	name := strings.Split(r.URL.Path, "/")[7]
	if r.Method == http.MethodPost {
		p.releases = append(p.releases, decodeBody[corev1alpha1.Release](r))
	} else if name == "none" {
		fail(w, apierrors.NewNotFound(corev1alpha1.Resource("releases"), name))
		return
	} else if name == "endless" {
		fail(w, apierrors.NewTimeoutError("request did not complete within requested timeout", 0))
		return
	}
	write(w, http.StatusOK, corev1alpha1.Preview{
		TypeMeta: ofKind("Preview"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"},
		RenderRef: "sha256:12", SourceRevision: "main@sha1:34", Count: 2, Warnings: []string{"hooks were left out"},
		Objects: []runtime.RawExtension{
			{Raw: []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login"},"data":{"password":"<sealed:` + strings.Repeat("0", 64) + `>"}}`)},
			{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2}}`)},
		},
	})
}

func newPreviewer(t *testing.T) (*fakeHub, *previewer) {
	t.Helper()
	hub, p := newFakeHub(t), &previewer{}
	hub.answerAll(p.answer)
	return hub, p
}

const shopFile = `# a file with its source beside it
apiVersion: source.convoy.kumodo.io/v1alpha1
kind: GitRepository
metadata: {name: app}
---
apiVersion: core.convoy.kumodo.io/v1alpha1
kind: Release
metadata: {name: shop}
spec:
  clusterRef: {name: edge}
  source: {kind: GitRepository, name: app}
  content: {path: deploy}
`

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "release.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestPreviewShowsWhatTheHubRenders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		file string
		path string
	}{
		"of a Release":                   {args: []string{"shop"}, path: "GET " + group + "/releases/shop/preview"},
		"of another revision":            {args: []string{"shop", "--revision", "feature/x"}, path: "GET " + group + "/releases/shop/preview?revision=feature%2Fx"},
		"of a file":                      {file: shopFile, path: "POST " + group + "/releases/shop/preview?fieldValidation=Strict"},
		"of a file, by its name":         {args: []string{"shop"}, file: shopFile + "---\n" + strings.ReplaceAll(shopFile[strings.Index(shopFile, "apiVersion: core"):], "shop", "other"), path: "POST " + group + "/releases/shop/preview?fieldValidation=Strict"},
		"of a file of its own namespace": {file: strings.Replace(shopFile, "{name: shop}", "{name: shop, namespace: team-a}", 1), path: "POST " + group + "/releases/shop/preview?fieldValidation=Strict"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, p := newPreviewer(t)
			args := append([]string{"preview", "-o", "names"}, test.args...)
			if test.file != "" {
				args = append(args, "-f", file(t, test.file))
			}
			out, problems, err := hub.run(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("secret/login\ndeployment.apps/web\n", out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff("warning: hooks were left out\nrelease/shop sha256:12 of main@sha1:34: 2 objects\n", problems); diff != "" {
				t.Errorf("beside it (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{test.path}, p.paths); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if test.file != "" && (len(p.releases) != 1 || p.releases[0].Spec.Content.Path != "deploy" || p.releases[0].Namespace != "team-a") {
				t.Errorf("sent %+v", p.releases)
			}
		})
	}
}

func TestPreviewAsYAMLIsWhatIsAppliedWithoutSecrets(t *testing.T) {
	t.Parallel()
	hub, _ := newPreviewer(t)
	out, _, err := hub.run(t, "preview", "shop")
	if err != nil || !strings.HasPrefix(out, "---\napiVersion: v1\ndata:\n  password: <sealed:0000") || !strings.Contains(out, "---\napiVersion: apps/v1\nkind: Deployment\n") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWhatPreviewDoesNotTake(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		file string
		want error
		says string
	}{
		"nothing":                         {want: errNothingToPreview},
		"a revision of a file":            {args: []string{"--revision", "x"}, file: shopFile, want: errRevisionOfFile},
		"an output that there is not":     {args: []string{"shop", "-o", "wide"}, says: "yaml, json or names"},
		"a Release that is not there":     {args: []string{"none"}, want: errNoRelease, says: "-f previews one of a file"},
		"a chart without an end":          {args: []string{"endless"}, want: errTooLong, says: "took too long"},
		"a file without a Release":        {file: "apiVersion: v1\nkind: ConfigMap\n", want: errNoReleaseThere},
		"a file without that Release":     {args: []string{"else"}, file: shopFile, want: errNoReleaseThere, says: `"else"`},
		"a file with several Releases":    {file: shopFile + "---\n" + shopFile, want: errWhichRelease},
		"a Release of another namespace":  {args: []string{"-n", "team-b"}, file: strings.Replace(shopFile, "{name: shop}", "{name: shop, namespace: team-a}", 1), want: errOtherNamespace},
		"a misspelt field, with its line": {file: strings.Replace(shopFile, "content:", "contents:", 1), says: "release.yaml, line 5: "},
		"a file that is no YAML":          {file: "a: [", says: "line 1"},
		"a file that is not there":        {args: []string{"-f", "/nowhere/release.yaml"}, want: os.ErrNotExist},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, _ := newPreviewer(t)
			args := append([]string{"preview"}, test.args...)
			if test.file != "" {
				args = append(args, "-f", file(t, test.file))
			}
			_, _, err := hub.run(t, args...)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.says)
			}
		})
	}
}
