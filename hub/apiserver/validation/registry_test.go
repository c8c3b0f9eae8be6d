// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/source/v1alpha1"
)

func TestHelmRegistries(t *testing.T) {
	url := func(url string) func(*v1alpha1.HelmRegistry) {
		return func(h *v1alpha1.HelmRegistry) { h.Spec.URL = url }
	}
	keys := &v1alpha1.SourceVerify{Provider: "cosign", SecretRef: v1alpha1.SecretReference{Name: "keys"}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.HelmRegistry)
		want   []string
	}{
		"the smallest one is good":          {func(*v1alpha1.HelmRegistry) {}, nil},
		"a host alone is good":              {url("https://charts.example"), nil},
		"http is good: the dialler decides": {url("http://10.0.0.1/charts"), nil},
		"oci:// is good":                    {url("oci://registry.example/charts"), nil},
		"oci:// with a tag":                 {url("oci://registry.example/charts:1"), []string{"spec.url"}},
		"oci:// in large letters":           {url("oci://registry.example/Charts"), []string{"spec.url"}},
		"a password":                        {url("https://me:hunter2@charts.example"), []string{"spec.url"}},
		"another scheme":                    {url("ftp://charts.example"), []string{"spec.url"}},
		"no URL":                            {url(""), []string{"spec.url"}},
		"an interval of a second":           {func(h *v1alpha1.HelmRegistry) { h.Spec.Interval.Duration = time.Second }, []string{"spec.interval"}},
		"a webhook is good": {func(h *v1alpha1.HelmRegistry) {
			h.Spec.Webhook = &v1alpha1.SourceWebhook{Type: "generic", SecretRef: v1alpha1.SecretReference{Name: "hook"}}
		}, nil},
		"a webhook of no kind and no Secret": {func(h *v1alpha1.HelmRegistry) { h.Spec.Webhook = &v1alpha1.SourceWebhook{} }, []string{"spec.webhook.type", "spec.webhook.secretRef.name"}},
		"signatures in an OCI registry are good": {func(h *v1alpha1.HelmRegistry) {
			h.Spec.URL, h.Spec.Verify = "oci://registry.example/charts", keys
		}, nil},
		"signatures of an index": {func(h *v1alpha1.HelmRegistry) { h.Spec.Verify = keys }, []string{"spec.verify"}},
		"credentials for other hosts of an OCI registry": {func(h *v1alpha1.HelmRegistry) {
			h.Spec.URL, h.Spec.PassCredentials = "oci://registry.example/charts", true
		}, []string{"spec.passCredentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &v1alpha1.HelmRegistry{ObjectMeta: metav1.ObjectMeta{Name: "charts"}, Spec: v1alpha1.HelmRegistrySpec{URL: "https://charts.example/stable"}}
			v1alpha1.SetHelmRegistryDefaults(h)
			if h.Spec.Interval.Duration != 5*time.Minute {
				t.Errorf("interval %s", h.Spec.Interval.Duration)
			}
			c.change(h)
			errs := HelmRegistry(h)
			check(t, errs, c.want...)
			if len(errs) > 0 && strings.Contains(errs.ToAggregate().Error(), "hunter2") {
				t.Error("the error repeats the password")
			}
		})
	}
}

func TestOCIRegistries(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.OCIRegistry)
		want   []string
	}{
		"the smallest one is good":        {func(*v1alpha1.OCIRegistry) {}, nil},
		"a port and a deep path are good": {func(o *v1alpha1.OCIRegistry) { o.Spec.URL = "oci://registry.example:5000/team/app__x/deploy" }, nil},
		"https":                           {func(o *v1alpha1.OCIRegistry) { o.Spec.URL = "https://registry.example/app" }, []string{"spec.url"}},
		"no path":                         {func(o *v1alpha1.OCIRegistry) { o.Spec.URL = "oci://registry.example/" }, []string{"spec.url"}},
		"a tag in the URL":                {func(o *v1alpha1.OCIRegistry) { o.Spec.URL = "oci://registry.example/app:1" }, []string{"spec.url"}},
		"a digest in the URL":             {func(o *v1alpha1.OCIRegistry) { o.Spec.URL = "oci://registry.example/app@sha256:00" }, []string{"spec.url"}},
		"a range is good":                 {func(o *v1alpha1.OCIRegistry) { o.Spec.Ref = v1alpha1.OCIRef{Semver: ">=1.0"} }, nil},
		"a range that is none":            {func(o *v1alpha1.OCIRegistry) { o.Spec.Ref = v1alpha1.OCIRef{Semver: "newest"} }, []string{"spec.ref.semver"}},
		"a digest that is short":          {func(o *v1alpha1.OCIRegistry) { o.Spec.Ref = v1alpha1.OCIRef{Digest: "sha256:00"} }, []string{"spec.ref.digest"}},
		"a tag with a slash":              {func(o *v1alpha1.OCIRegistry) { o.Spec.Ref = v1alpha1.OCIRef{Tag: "a/b"} }, []string{"spec.ref.tag"}},
		"two at once":                     {func(o *v1alpha1.OCIRegistry) { o.Spec.Ref.Semver = "1" }, []string{"spec.ref"}},
		"signatures of another kind": {func(o *v1alpha1.OCIRegistry) {
			o.Spec.Verify = &v1alpha1.SourceVerify{Provider: "notation", SecretRef: v1alpha1.SecretReference{Name: "k"}}
		}, []string{"spec.verify.provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.OCIRegistrySpec{URL: "oci://registry.example/app"}}
			v1alpha1.SetOCIRegistryDefaults(o)
			if o.Spec.Ref.Tag != "latest" {
				t.Errorf("ref %+v", o.Spec.Ref)
			}
			c.change(o)
			check(t, OCIRegistry(o), c.want...)
		})
	}
}

func TestFullRefsOfGitRepositories(t *testing.T) {
	for ref, want := range map[string][]string{"refs/heads/main": nil, "refs/pull/7/head": nil, "main": {"spec.ref.name"}, "refs/heads/../x": {"spec.ref.name"}} {
		g := &v1alpha1.GitRepository{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: v1alpha1.GitRepositorySpec{URL: "https://git.example/app", Ref: v1alpha1.GitRef{Name: ref}}}
		v1alpha1.SetGitRepositoryDefaults(g)
		t.Run(ref, func(t *testing.T) { check(t, GitRepository(g), want...) })
	}
}
