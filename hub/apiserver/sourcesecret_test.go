// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

func ref(name string) *sourcev1alpha1.SecretReference {
	return &sourcev1alpha1.SecretReference{Name: name}
}

func hook(secret string) *sourcev1alpha1.SourceWebhook {
	return &sourcev1alpha1.SourceWebhook{Type: "github", SecretRef: *ref(secret)}
}

func signedBy(secret string) *sourcev1alpha1.SourceVerify {
	return &sourcev1alpha1.SourceVerify{Provider: "cosign", SecretRef: *ref(secret)}
}

func TestNobodyCanHaveTheHubUseASecretOfASourceThatHeMayNotGet(t *testing.T) {
	t.Parallel()
	_, c, host := withRights(t, "get secrets theirs")
	meta := metav1.ObjectMeta{Namespace: "team", Name: "lure"}
	git := func(s sourcev1alpha1.GitRepositorySpec) client.Object {
		s.URL = "https://git.example/app"
		return &sourcev1alpha1.GitRepository{ObjectMeta: meta, Spec: s}
	}
	helm := func(s sourcev1alpha1.HelmRegistrySpec) client.Object {
		s.URL = "oci://registry.example/charts"
		return &sourcev1alpha1.HelmRegistry{ObjectMeta: meta, Spec: s}
	}
	oci := func(s sourcev1alpha1.OCIRegistrySpec) client.Object {
		s.URL = "oci://registry.example/app"
		return &sourcev1alpha1.OCIRegistry{ObjectMeta: meta, Spec: s}
	}
	for name, c2 := range map[string]struct {
		object client.Object
		field  string
	}{
		"webhook of a GitRepository":       {git(sourcev1alpha1.GitRepositorySpec{Webhook: hook("theirs")}), "spec.webhook.secretRef.name"},
		"credentials of a HelmRegistry":    {helm(sourcev1alpha1.HelmRegistrySpec{SecretRef: ref("theirs")}), "spec.secretRef.name"},
		"CA of a HelmRegistry":             {helm(sourcev1alpha1.HelmRegistrySpec{CASecretRef: ref("theirs")}), "spec.caSecretRef.name"},
		"public keys of a HelmRegistry":    {helm(sourcev1alpha1.HelmRegistrySpec{Verify: signedBy("theirs")}), "spec.verify.secretRef.name"},
		"credentials of an OCIRegistry":    {oci(sourcev1alpha1.OCIRegistrySpec{SecretRef: ref("theirs")}), "spec.secretRef.name"},
		"webhook of an OCIRegistry":        {oci(sourcev1alpha1.OCIRegistrySpec{Webhook: hook("theirs")}), "spec.webhook.secretRef.name"},
		"public keys of an OCIRegistry":    {oci(sourcev1alpha1.OCIRegistrySpec{Verify: signedBy("theirs")}), "spec.verify.secretRef.name"},
		"one of several of an OCIRegistry": {oci(sourcev1alpha1.OCIRegistrySpec{SecretRef: ref("mine"), CASecretRef: ref("theirs")}), "spec.caSecretRef.name"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.Create(t.Context(), c2.object)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c2.field+": user") || !strings.Contains(err.Error(), `cannot get Secret "theirs" in namespace "team"`) {
				t.Errorf("got %v, want Forbidden with %s and the Secret", err, c2.field)
			}
		})
	}

	good := &sourcev1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	good.Spec = sourcev1alpha1.OCIRegistrySpec{URL: "oci://registry.example/app", SecretRef: ref("mine"), CASecretRef: ref("mine"), Verify: signedBy("keys"), Webhook: hook("hook")}
	create(t, c, good)
	if diff := cmp.Diff([]string{"mine", "hook", "keys"}, good.Status.CheckedSecrets); diff != "" {
		t.Errorf("recorded, each once (-want +got):\n%s", diff)
	}
	t.Run("nobody adds a checked reference through the status", func(t *testing.T) {
		good.Status.CheckedSecrets = append(good.Status.CheckedSecrets, "theirs")
		if err := c.Status().Update(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine", "hook", "keys"}, good.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
	host.deny("get secrets mine")
	t.Run("the URL may not be changed by somebody who may not get the Secrets", func(t *testing.T) {
		good.Spec.URL = "oci://evil.example/app"
		if err := c.Update(t.Context(), good); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want Forbidden", err)
		}
	})
}

func TestNobodyCanHaveASecretRenderedThatHeMayNotGet(t *testing.T) {
	t.Parallel()
	_, c, host := withRights(t, "get secrets theirs")
	values := func(secret string) *corev1alpha1.HelmContent {
		return &corev1alpha1.HelmContent{ValuesFrom: []corev1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "theirs"}, {Kind: "Secret", Name: secret}}}
	}
	body := func(secret string) []corev1alpha1.Mutation {
		return []corev1alpha1.Mutation{
			{Type: "mergePatch", From: &corev1alpha1.MutationSource{Kind: "ConfigMap", Name: "theirs", Path: "p"}},
			{Type: "mergePatch", From: &corev1alpha1.MutationSource{Kind: "Secret", Name: secret, Path: "p"}},
		}
	}
	for name, c2 := range map[string]struct {
		change func(*corev1alpha1.ReleaseSpec)
		field  string
	}{
		"values":    {func(s *corev1alpha1.ReleaseSpec) { s.Content.Helm = values("theirs") }, "spec.content.helm.valuesFrom[1].name"},
		"mutations": {func(s *corev1alpha1.ReleaseSpec) { s.Mutations = body("theirs") }, "spec.mutations[1].from.name"},
		"images": {func(s *corev1alpha1.ReleaseSpec) {
			s.Images.SecretRefs = []corev1alpha1.ImageSecretReference{{Name: "mine"}, {Name: "theirs"}}
		}, "spec.images.secretRefs[1].name"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease("team", "lure", "edge")
			c2.change(&r.Spec)
			if err := c.Create(t.Context(), r); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c2.field+": user") {
				t.Errorf("got %v, want Forbidden with %s", err, c2.field)
			}
		})
	}

	r := newRelease("team", "web", "edge")
	r.Spec.Content.Helm, r.Spec.Mutations = values("mine"), body("patches")
	create(t, c, r)
	if diff := cmp.Diff([]string{"mine", "patches"}, r.Status.CheckedSecrets); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	host.deny("get secrets mine")
	update := func(change func(*corev1alpha1.Release)) error {
		r := get(t, c, &corev1alpha1.Release{}, "team", "web")
		change(r)
		err := c.Update(t.Context(), r)
		if err == nil {
			if diff := cmp.Diff([]string{"mine", "patches"}, r.Status.CheckedSecrets); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
		}
		return err
	}
	t.Run("how it is rolled out may be changed by somebody who may not get the Secrets", func(t *testing.T) {
		if err := update(func(r *corev1alpha1.Release) { r.Spec.SyncPolicy.Conflicts = "Force" }); err != nil {
			t.Error(err)
		}
		if err := update(func(r *corev1alpha1.Release) { r.Labels = map[string]string{"a": "b"} }); err != nil {
			t.Error(err)
		}
	})
	for name, change := range map[string]func(*corev1alpha1.Release){
		"the templates that see the values": func(r *corev1alpha1.Release) { r.Spec.Content.Path = "other" },
		"the source":                        func(r *corev1alpha1.Release) { r.Spec.Source.Name = "other" },
		"the namespace that they go to":     func(r *corev1alpha1.Release) { r.Spec.TargetNamespace = "other" },
		"the mutations":                     func(r *corev1alpha1.Release) { r.Spec.Mutations = r.Spec.Mutations[:1] },
	} {
		t.Run(name+" may not", func(t *testing.T) {
			if err := update(change); !apierrors.IsForbidden(err) {
				t.Errorf("got %v, want Forbidden", err)
			}
		})
	}
	t.Run("nobody adds a checked reference through the status", func(t *testing.T) {
		r := get(t, c, &corev1alpha1.Release{}, "team", "web")
		r.Status.CheckedSecrets = append(r.Status.CheckedSecrets, "theirs")
		if err := c.Status().Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"mine", "patches"}, r.Status.CheckedSecrets); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
}

func TestARegistryThatFollowsATagByDefaultCanBeGivenARange(t *testing.T) {
	t.Parallel()
	_, c, _ := withRights(t)
	o := &sourcev1alpha1.OCIRegistry{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}, Spec: sourcev1alpha1.OCIRegistrySpec{URL: "oci://registry.example/app"}}
	create(t, c, o)
	if o.Spec.Ref.Tag != "latest" || o.Spec.Interval == nil {
		t.Errorf("defaults: %+v", o.Spec)
	}
	// An apply of the range alone leaves the tag in place that stands there by default.
	o.Spec.Ref.Semver = ">=1.0"
	if err := c.Update(t.Context(), o); err != nil || o.Spec.Ref.Tag != "" || o.Generation != 2 {
		t.Errorf("got %+v, generation %d, %v", o.Spec.Ref, o.Generation, err)
	}
}
