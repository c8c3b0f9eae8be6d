// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/install"
)

func TestPreviewOfAHub(t *testing.T) {
	changed := func(path string, mods ...func(*corev1alpha1.Release)) *corev1alpha1.Release {
		return install.Release(team, "shop", edge, "shop", path, mods...)
	}
	tests := map[string]struct {
		args []string
		file *corev1alpha1.Release
		says []string
		not  string
	}{
		"of what is":                         {args: []string{"shop"}, says: []string{"color: red", "kind: Secret", "password: <sealed:"}},
		"of another revision":                {args: []string{"shop", "--revision", shared.old}, says: []string{"color: grey"}, not: "kind: Secret"},
		"of a chart with values of a Secret": {args: []string{"chart"}, says: []string{"name: chart-app", "currency: EUR", "url: <sealed:", "coded: <sealed:"}},
		"of a change that is not made":       {file: changed("other"), says: []string{"name: other"}, not: "settings"},
		"of a Release that is not there":     {file: install.Release(team, "new", edge, "shop", "chart", chart), says: []string{"name: new-app", "url: <sealed:"}},
		"of a change, at another revision":   {file: changed("deploy", func(r *corev1alpha1.Release) { r.Spec.Source.Revision = shared.old }), says: []string{"color: grey"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"preview"}, test.args...)
			if test.file != nil {
				args = append(args, "-f", file(t, test.file))
			}
			got := admin(t, args...)
			if got.code != 0 || !strings.Contains(got.problems, "sha256:") {
				t.Fatalf("exit code %d: %s", got.code, got.problems)
			}
			for _, says := range test.says {
				if !strings.Contains(got.out, says) {
					t.Errorf("it does not show %q:\n%s", says, got.out)
				}
			}
			if test.not != "" && strings.Contains(got.out, test.not) {
				t.Errorf("it shows %q:\n%s", test.not, got.out)
			}
		})
	}
	t.Run("of content that does not render, which says where", func(t *testing.T) {
		t.Parallel()
		got := admin(t, "preview", "-f", file(t, changed("broken")))
		if got.code == 0 || !strings.Contains(got.problems, "RenderFailed: broken/app.yaml, document 2") {
			t.Errorf("exit code %d: %s", got.code, got.problems)
		}
	})
	t.Run("of what a create would refuse", func(t *testing.T) {
		t.Parallel()
		got := admin(t, "preview", "-f", file(t, changed("../x")))
		if got.code == 0 || !strings.Contains(got.problems, "spec.content.path") {
			t.Errorf("exit code %d: %s", got.code, got.problems)
		}
	})
}

// Nothing that a preview was asked of is written: neither the Release of the file nor a
// status.
func TestAPreviewLeavesNoTrace(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	if got := admin(t, "preview", "-f", file(t, install.Release(team, "unsaved", edge, "shop", "deploy"))); got.code != 0 {
		t.Fatal(got.problems)
	}
	if _, err := shared.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).Get(ctx, "unsaved", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Release of a file is there: %v", err)
	}
	stored, err := shared.hub.Plane.Dynamic().Resource(install.Releases).Namespace(team).Get(ctx, "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := stored.Object["status"].(map[string]any); status["renderRef"] != nil {
		t.Errorf("a Release whose Cluster never came has a render: %v", status)
	}
}

func TestWhoMayPreview(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	_, err := shared.hub.Plane.Client().RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "previews-without-secrets"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{corev1alpha1.GroupName}, Resources: []string{"releases/preview"}, Verbs: []string{"get", "create"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	viewer, editor := user(ctx, t, "viewer", "view"), user(ctx, t, "editor", "edit")
	stranger := user(ctx, t, "no-secrets", "previews-without-secrets")
	// A reference to the Secret in a file of one's own is no way around.
	own := file(t, install.Release(team, "own", edge, "shop", "chart", chart))
	tests := map[string]struct {
		as   string
		args []string
		says string // empty: it is allowed
	}{
		"an editor may":                                      {editor, []string{"shop"}, ""},
		"an editor may of a file":                            {editor, []string{"-f", own}, ""},
		"a viewer may not":                                   {viewer, []string{"shop"}, `cannot get resource "releases/preview"`},
		"a viewer may not of a file":                         {viewer, []string{"-f", own}, `cannot create resource "releases/preview"`},
		"who may not get a Secret may where none is named":   {stranger, []string{"shop"}, ""},
		"who may not get a Secret may not where it is named": {stranger, []string{"chart"}, `cannot get Secret "db"`},
		"nor at a revision of his own":                       {stranger, []string{"chart", "--revision", shared.old}, `cannot get Secret "db"`},
		"nor with a file of his own":                         {stranger, []string{"-f", own}, `cannot get Secret "db"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := plugin(t, test.as, append([]string{"preview"}, test.args...)...)
			if (got.code == 0) != (test.says == "") || !strings.Contains(got.problems, test.says) {
				t.Errorf("exit code %d, want %q: %s", got.code, test.says, got.problems)
			}
		})
	}
}

// A network without policies lets everybody at the observer: it answers nobody.
func TestTheObserverAnswersTheHubAlone(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/preview/%s/shop", shared.hub.ObserverPort, team), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s, %v", answer.StatusCode, text, err)
	}
}

// What a laptop renders from a checkout is what the hub renders from its source.
func TestALaptopRendersWhatTheHubRenders(t *testing.T) {
	t.Parallel()
	given := t.TempDir()
	values := "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {values.yaml: 'password: " + secret + "'}\n"
	if err := os.WriteFile(filepath.Join(given, "db.yaml"), []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, release := range map[string]*corev1alpha1.Release{
		"manifests":                          install.Release(team, "shop", edge, "shop", "deploy"),
		"a chart with values and a mutation": install.Release(team, "chart", edge, "shop", "chart", chart),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := admin(t, "preview", release.Name)
			if shown.code != 0 {
				t.Fatal(shown.problems)
			}
			hub := filepath.Join(t.TempDir(), "hub.yaml")
			if err := os.WriteFile(hub, []byte(shown.out), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"render", "-f", file(t, release), "--source", shared.repo.Dir(), "--values-from-dir", given, "--diff-against", hub}
			if got := admin(t, append(args, "--cluster", "region=eu")...); got.code != 0 || got.out != "" {
				t.Errorf("exit code %d: %s%s", got.code, got.out, got.problems)
			}
			if name == "manifests" {
				return
			}
			if got := admin(t, append(args, "--cluster", "region=us")...); got.code != 1 || !strings.Contains(got.out, "-  currency: EUR") {
				t.Errorf("for another cluster: exit code %d: %s%s", got.code, got.out, got.problems)
			}
		})
	}
}
