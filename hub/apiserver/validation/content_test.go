// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// helmRelease is a good Release of a chart in a HelmRegistry.
func helmRelease() *v1alpha1.Release {
	r := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	r.Spec.ClusterRef.Name = "edge-1"
	r.Spec.Source = v1alpha1.SourceReference{Kind: "HelmRegistry", Name: "charts"}
	r.Spec.Content.Helm = &v1alpha1.HelmContent{Chart: &v1alpha1.HelmChart{Name: "nginx", Version: ">=1.0 <2"}}
	v1alpha1.SetReleaseDefaults(r)
	return r
}

// gitRelease is a good Release of a chart in a repository.
func gitRelease() *v1alpha1.Release {
	r := helmRelease()
	r.Spec.Source = v1alpha1.SourceReference{Kind: "GitRepository", Name: "app"}
	r.Spec.Content.Helm.Chart = nil
	r.Spec.Content.Path = "charts/web"
	return r
}

func TestContentOfReleases(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		start  func() *v1alpha1.Release
		change func(*v1alpha1.Release)
		want   []string
	}{
		"a chart of a registry is good":         {helmRelease, func(*v1alpha1.Release) {}, nil},
		"a chart below an oci:// path is good":  {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart.Name = "team/nginx" }, nil},
		"a chart by its digest is good":         {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart.Version = digest }, nil},
		"a revision that is a version is good":  {helmRelease, func(r *v1alpha1.Release) { r.Spec.Source.Revision = "1.2.3" }, nil},
		"a revision that is a range is good":    {helmRelease, func(r *v1alpha1.Release) { r.Spec.Source.Revision = "~1.2" }, nil},
		"a revision that is a branch":           {helmRelease, func(r *v1alpha1.Release) { r.Spec.Source.Revision = "main" }, []string{"spec.source.revision"}},
		"a version that is half a digest":       {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart.Version = digest[:20] }, []string{"spec.content.helm.chart.version"}},
		"a registry without a chart":            {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm = nil }, []string{"spec.content.helm.chart"}},
		"a chart without a name":                {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart.Name = "" }, []string{"spec.content.helm.chart.name"}},
		"a chart that would be another place":   {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart.Name = "../other" }, []string{"spec.content.helm.chart.name"}},
		"a chart with a query":                  {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart.Name = "a?b" }, []string{"spec.content.helm.chart.name"}},
		"a path in a registry of charts":        {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Path = "sub" }, []string{"spec.content.path"}},
		"manifests of a registry of charts":     {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Manifests = &v1alpha1.ManifestsContent{} }, []string{"spec.content", "spec.content.manifests"}},
		"a chart in a repository is good":       {gitRelease, func(*v1alpha1.Release) {}, nil},
		"a chart that is named in a repository": {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Chart = &v1alpha1.HelmChart{Name: "x"} }, []string{"spec.content.helm.chart"}},
		"a chart and a kustomization at once":   {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Kustomize = &v1alpha1.KustomizeContent{} }, []string{"spec.content"}},
		"values beside the chart are good": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.ValuesFiles = []string{"../../env/eu.yaml", "values-eu.yaml"}
		}, nil},
		"values outside of the source": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.ValuesFiles = []string{"a.yaml", "../../../x.yaml", "/etc/x"}
		}, []string{"spec.content.helm.valuesFiles[1]", "spec.content.helm.valuesFiles[2]"}},
		"values outside of a chart of a registry": {helmRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.ValuesFiles = []string{"../x.yaml"} }, []string{"spec.content.helm.valuesFiles[0]"}},
		"too many files of values": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.ValuesFiles = strings.Fields(strings.Repeat("v.yaml ", 33))
		}, []string{"spec.content.helm.valuesFiles"}},
		"values from a ConfigMap and a Secret are good": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "a", Key: "values.yaml"}, {Kind: "Secret", Name: "b", Key: "password", TargetPath: "db.password"}}
		}, nil},
		"values from elsewhere": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Source", Name: "A", Key: "a/b"}}
		}, []string{"spec.content.helm.valuesFrom[0].kind", "spec.content.helm.valuesFrom[0].name", "spec.content.helm.valuesFrom[0].key"}},
		"values that are an object are good": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.Values = &runtime.RawExtension{Raw: []byte(` {"a": {"b": 1}}`)}
		}, nil},
		"values that are a list": {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Values = &runtime.RawExtension{Raw: []byte(`[1]`)} }, []string{"spec.content.helm.values"}},
		"values that are blank":  {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.Values = &runtime.RawExtension{Raw: []byte(` `)} }, []string{"spec.content.helm.values"}},
		"values that are too large": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Content.Helm.Values = &runtime.RawExtension{Raw: make([]byte, MaxValues+1)}
		}, []string{"spec.content.helm.values"}},
		"a release name of 53 is good":    {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.ReleaseName = strings.Repeat("a", 53) }, nil},
		"a release name of 54":            {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.ReleaseName = strings.Repeat("a", 54) }, []string{"spec.content.helm.releaseName"}},
		"a release name in large letters": {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.ReleaseName = "Web" }, []string{"spec.content.helm.releaseName"}},
		"a long name and no release name": {gitRelease, func(r *v1alpha1.Release) { r.Name = strings.Repeat("a", 54) }, []string{"spec.content.helm.releaseName"}},
		"a policy for CRDs that is none":  {gitRelease, func(r *v1alpha1.Release) { r.Spec.Content.Helm.CRDs = "Replace" }, []string{"spec.content.helm.crds"}},
		"a tag of an artifact is good": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Source = v1alpha1.SourceReference{Kind: "OCIRegistry", Name: "a", Revision: "v1.0_x"}
		}, nil},
		"a digest of an artifact is good": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Source = v1alpha1.SourceReference{Kind: "OCIRegistry", Name: "a", Revision: digest}
		}, nil},
		"a range of an artifact": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Source = v1alpha1.SourceReference{Kind: "OCIRegistry", Name: "a", Revision: ">=1"}
		}, []string{"spec.source.revision"}},
		"a full ref of a pull request":    {gitRelease, func(r *v1alpha1.Release) { r.Spec.Source.Revision = "refs/pull/7/head" }, nil},
		"a target namespace is good":      {gitRelease, func(r *v1alpha1.Release) { r.Spec.TargetNamespace = "web" }, nil},
		"a target namespace that is none": {gitRelease, func(r *v1alpha1.Release) { r.Spec.TargetNamespace = "web.eu" }, []string{"spec.targetNamespace"}},
		"images that are pinned are good": {gitRelease, func(r *v1alpha1.Release) {
			r.Spec.Images = v1alpha1.ReleaseImages{Policy: "Pin", SecretRefs: []v1alpha1.ImageSecretReference{{Name: "pull"}}}
		}, nil},
		"a policy for images that is none": {gitRelease, func(r *v1alpha1.Release) { r.Spec.Images.Policy = "Latest" }, []string{"spec.images.policy"}},
		"too many Secrets for images, one without a name": {gitRelease, func(r *v1alpha1.Release) {
			for range 9 {
				r.Spec.Images.SecretRefs = append(r.Spec.Images.SecretRefs, v1alpha1.ImageSecretReference{Name: "pull"})
			}
			r.Spec.Images.SecretRefs[3].Name = ""
		}, []string{"spec.images.secretRefs", "spec.images.secretRefs[3].name"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.start()
			c.change(r)
			check(t, Release(r), c.want...)
		})
	}
}

func TestMutationsOfReleases(t *testing.T) {
	good := v1alpha1.Mutation{Type: "mergePatch", Inline: []string{"a: 1"}}
	with := func(change func(*v1alpha1.Mutation)) []v1alpha1.Mutation {
		m := *good.DeepCopy()
		change(&m)
		return []v1alpha1.Mutation{m}
	}
	from := func(s v1alpha1.MutationSource) []v1alpha1.Mutation {
		return with(func(m *v1alpha1.Mutation) { m.Inline, m.From = nil, &s })
	}
	for name, c := range map[string]struct {
		list []v1alpha1.Mutation
		want []string
	}{
		"one inline is good": {with(func(*v1alpha1.Mutation) {}), nil},
		"a target is good": {with(func(m *v1alpha1.Mutation) {
			m.Target = &v1alpha1.MutationTarget{Kind: "Deployment", LabelSelector: "app in (a,b),!x"}
		}), nil},
		"a type that is none":          {with(func(m *v1alpha1.Mutation) { m.Type = "starlark" }), []string{"spec.mutations[0].type"}},
		"no body":                      {with(func(m *v1alpha1.Mutation) { m.Inline = nil }), []string{"spec.mutations[0]"}},
		"a blank body":                 {with(func(m *v1alpha1.Mutation) { m.Inline = []string{"a: 1", " \n"} }), []string{"spec.mutations[0].inline[1]"}},
		"bodies from both":             {with(func(m *v1alpha1.Mutation) { m.From = &v1alpha1.MutationSource{Kind: "ConfigMap", Name: "a", Path: "b"} }), []string{"spec.mutations[0].from"}},
		"a body that is too large":     {with(func(m *v1alpha1.Mutation) { m.Inline = []string{strings.Repeat("x", 64<<10+1)} }), []string{"spec.mutations[0].inline[0]"}},
		"bodies too large together":    {with(func(m *v1alpha1.Mutation) { m.Inline = repeated(strings.Repeat("x", 64<<10), 9) }), []string{"spec.mutations"}},
		"too many bodies":              {with(func(m *v1alpha1.Mutation) { m.Inline = repeated("x", 65) }), []string{"spec.mutations[0].inline"}},
		"too many of them":             {tooMany(good), []string{"spec.mutations"}},
		"an expression that is long":   {with(func(m *v1alpha1.Mutation) { m.If = strings.Repeat("x", 4<<10+1) }), []string{"spec.mutations[0].if"}},
		"a selector that cannot be":    {with(func(m *v1alpha1.Mutation) { m.Target = &v1alpha1.MutationTarget{LabelSelector: "a in b"} }), []string{"spec.mutations[0].target.labelSelector"}},
		"a ConfigMap by template":      {from(v1alpha1.MutationSource{Kind: "ConfigMap", Name: "site-{{ .cluster.region }}", Path: "{{ .cluster.name }}.yaml"}), nil},
		"a Secret by its name":         {from(v1alpha1.MutationSource{Kind: "Secret", Name: "site", Path: "patch"}), nil},
		"a Secret by template":         {from(v1alpha1.MutationSource{Kind: "Secret", Name: "site-{{ .cluster.region }}", Path: "patch"}), []string{"spec.mutations[0].from.name"}},
		"a file of the source":         {from(v1alpha1.MutationSource{Kind: "Source", Path: "patches/{{ .cluster.region }}.yaml"}), nil},
		"a file outside of the source": {from(v1alpha1.MutationSource{Kind: "Source", Path: "../x"}), []string{"spec.mutations[0].from.path"}},
		"a file of a named source":     {from(v1alpha1.MutationSource{Kind: "Source", Name: "other", Path: "x"}), []string{"spec.mutations[0].from.name"}},
		"a kind that is none":          {from(v1alpha1.MutationSource{Kind: "Bucket", Name: "a", Path: "b"}), []string{"spec.mutations[0].from.kind"}},
		"a ConfigMap without a key":    {from(v1alpha1.MutationSource{Kind: "ConfigMap", Name: "a"}), []string{"spec.mutations[0].from.path"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := gitRelease()
			r.Spec.Mutations = c.list
			check(t, Release(r), c.want...)
		})
	}
}

func repeated(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}

func tooMany(m v1alpha1.Mutation) []v1alpha1.Mutation {
	out := make([]v1alpha1.Mutation, MaxMutations+1)
	for i := range out {
		out[i] = m
	}
	return out
}
