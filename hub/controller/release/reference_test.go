// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/controller"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/source"
)

// shelf has one key in each object, and counts who asks.
type shelf struct{ asked []string }

func (s *shelf) ConfigMap(_ context.Context, _, name string) (map[string]string, error) {
	s.asked = append(s.asked, "ConfigMap "+name)
	if name == "missing" {
		return nil, ErrNotThere
	}
	return map[string]string{"values.yaml": "map: " + name, "big": strings.Repeat("x", maxTextBytes+1)}, nil
}

func (s *shelf) Secret(_ context.Context, _, name string) (map[string]string, error) {
	s.asked = append(s.asked, "Secret "+name)
	return map[string]string{"values.yaml": "secret: " + name}, nil
}

func TestTextsAreReadOnceAndSecretsOnlyWhenTheirUseWasChecked(t *testing.T) {
	release := &v1alpha1.Release{}
	release.Status.CheckedSecrets = []string{"db"}
	release.Spec.Content.Helm = &v1alpha1.HelmContent{
		ValuesFrom: []v1alpha1.ValuesReference{
			{Kind: "ConfigMap", Name: "web"}, {Kind: "Secret", Name: "db", TargetPath: "db.url"}, {Kind: "ConfigMap", Name: "missing", Optional: true},
		},
		Values: &runtime.RawExtension{Raw: []byte(`{"a":1}`)},
	}
	host := &shelf{}
	r := &reader{texts: host, release: release}
	got, err := r.values(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []content.Values{
		{Origin: "ConfigMap web, key values.yaml", Text: "map: web"},
		{Origin: "Secret db, key values.yaml", Text: "secret: db", TargetPath: "db.url", Secret: true},
		{Origin: "spec.content.helm.values", Text: `{"a":1}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := r.values(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap web", "Secret db", "ConfigMap missing", "ConfigMap missing"}, host.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReferencesThatCannotBeReadNameTheirReason(t *testing.T) {
	tests := []struct {
		name   string
		from   v1alpha1.MutationSource
		texts  Texts
		reason string
		err    error
		says   string
	}{
		{"a Secret whose use was not checked", v1alpha1.MutationSource{Kind: "Secret", Name: "other", Path: "a"}, &shelf{}, "SourceNotChecked", source.ErrNotChecked, "Secret other"},
		{"no host", v1alpha1.MutationSource{Name: "web", Path: "a"}, nil, "NoHostCluster", source.ErrNoHostCluster, "ConfigMap web"},
		{"a ConfigMap that does not exist", v1alpha1.MutationSource{Name: "missing", Path: "a"}, &shelf{}, "ValuesNotFound", ErrNotThere, "ConfigMap missing"},
		{"a key that does not exist", v1alpha1.MutationSource{Name: "web", Path: "a"}, &shelf{}, "ValuesNotFound", ErrNotThere, "key a"},
		{"a text that is too large", v1alpha1.MutationSource{Name: "web", Path: "big"}, &shelf{}, "RenderFailed", errTextTooLarge, "key big"},
		{"MU-01: a key of the Cluster that is missing", v1alpha1.MutationSource{Name: "web-{{ .cluster.zone }}", Path: "a"}, &shelf{}, "RenderFailed", errNoKey, "cluster.zone"},
		{"MU-01: other things between braces", v1alpha1.MutationSource{Name: "web-{{ .self.name }}", Path: "a"}, &shelf{}, "RenderFailed", errTemplate, "from.name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			release := &v1alpha1.Release{}
			release.Spec.Mutations = []v1alpha1.Mutation{{Name: "m", From: &test.from}}
			_, err := (&reader{texts: test.texts, release: release, cluster: map[string]string{"region": "eu"}}).mutations(t.Context())
			var named controller.Reasoned
			if !errors.As(err, &named) || named.Reason() != test.reason || !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestMU01NamesOfReferencesTakeKeysOfTheCluster(t *testing.T) {
	r := &reader{cluster: map[string]string{"region": "eu", "name": "edge-1"}}
	for text, want := range map[string]string{
		"plain": "plain", "a-{{ .cluster.region }}": "a-eu", "{{.cluster.name}}/{{- .cluster.region -}}.yaml": "edge-1/eu.yaml", "${X} $Y": "${X} $Y",
	} {
		if got, err := r.expand(text); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

func TestProvenanceShowsNoCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"https://user:pass@git.example/app.git?token=x#y": "https://git.example/app.git",
		"ssh://git:pass@git.example/app.git":              "ssh://git@git.example/app.git",
		"oci://registry.example/charts":                   "oci://registry.example/charts",
		"https://%zz":                                     "",
	} {
		if got := withoutCredentials(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}
