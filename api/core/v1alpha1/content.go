// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// Kinds of sources that a Release can take content from.
const (
	SourceKindGitRepository = "GitRepository"
	SourceKindHelmRegistry  = "HelmRegistry"
	SourceKindOCIRegistry   = "OCIRegistry"
)

// ReleaseContent says what of a source is deployed. At most one of manifests, helm
// and kustomize is given; when none is, the path decides: a folder with a
// Chart.yaml is a chart, one with a kustomization a kustomization, all else
// manifests.
type ReleaseContent struct {
	// path of a file or folder in the source, relative, with slashes; default ".".
	// +optional
	Path string `json:"path,omitempty"`
	// manifests: the YAML and JSON files under path are the objects.
	// +optional
	Manifests *ManifestsContent `json:"manifests,omitempty"`
	// helm: the folder or archive at path is a chart; of a HelmRegistry the chart is
	// named here.
	// +optional
	Helm *HelmContent `json:"helm,omitempty"`
	// kustomize: the folder at path has a kustomization.
	// +optional
	Kustomize *KustomizeContent `json:"kustomize,omitempty"`
}

// ManifestsContent has no fields: every .yaml, .yml and .json file under the path is
// read, in the order of their paths.
type ManifestsContent struct{}

// KustomizeContent has no fields: what a kustomization does stands in its files.
type KustomizeContent struct{}

// CRDPolicy says what becomes of a chart's crds folder.
type CRDPolicy string

// Policies of a chart's crds folder.
const (
	// CRDsApply: part of the render, in the first wave, never pruned.
	CRDsApply CRDPolicy = "Apply"
	// CRDsSkip: left out.
	CRDsSkip CRDPolicy = "Skip"
)

// HelmContent says how a chart is rendered.
type HelmContent struct {
	// chart in a HelmRegistry; refused with other sources.
	// +optional
	Chart *HelmChart `json:"chart,omitempty"`
	// releaseName that templates see; default: the Release's own name. At most 53
	// characters, as Helm has it.
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// valuesFiles of the source, relative to the chart, in order; one that leaves the
	// source is refused, one that is missing is an error. At most 32.
	// +optional
	// +listType=atomic
	ValuesFiles []string `json:"valuesFiles,omitempty"`
	// valuesFrom takes values from ConfigMaps and Secrets of the Release's namespace,
	// in order, over those of valuesFiles. At most 32.
	// +optional
	// +listType=atomic
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`
	// values are put over all others. A field that is null removes a default.
	// +optional
	Values *runtime.RawExtension `json:"values,omitempty"`
	// crds: Apply (default) or Skip, for the chart's crds folder.
	// +optional
	CRDs CRDPolicy `json:"crds,omitempty"`
	// skipSchemaValidation leaves values.schema.json out of account; default false.
	// +optional
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`
}

// HelmChart names a chart of a HelmRegistry.
type HelmChart struct {
	// name of the chart, as in the index; of an oci:// registry the path below its URL.
	Name string `json:"name"`
	// version or semver range; default: the highest that is no pre-release. The
	// source's revision, if given, is used instead. sha256:<hex> pins a digest.
	// +optional
	Version string `json:"version,omitempty"`
}

// Kinds that values and mutation bodies are taken from.
const (
	ReferenceConfigMap = "ConfigMap"
	ReferenceSecret    = "Secret"
	// ReferenceSource: a file of the Release's own source; only in mutations.
	ReferenceSource = "Source"
)

// DefaultValuesKey is the key of valuesFrom that is read when none is given.
const DefaultValuesKey = "values.yaml"

// ValuesReference takes values from one key of a ConfigMap or Secret of the
// Release's namespace. Whoever writes one with a Secret must be allowed to get it.
type ValuesReference struct {
	// kind: ConfigMap or Secret.
	Kind string `json:"kind"`
	// name of it.
	Name string `json:"name"`
	// key in its data, default values.yaml. Its text is YAML.
	// +optional
	Key string `json:"key,omitempty"`
	// targetPath puts the text, as it is, at this place of the values, as in
	// `helm --set-string`: a.b.c. Default: the text is values itself.
	// +optional
	TargetPath string `json:"targetPath,omitempty"`
	// optional: one that is missing counts as empty; default false: it is an error.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// ImagePolicy says what becomes of the tags of images.
type ImagePolicy string

// Policies of images.
const (
	// ImagesAsIs leaves them.
	ImagesAsIs ImagePolicy = "AsIs"
	// ImagesPin resolves each tag to the digest that it has at render time, once for
	// each revision of the source.
	ImagesPin ImagePolicy = "Pin"
)

// ReleaseImages says what becomes of the images of containers.
type ReleaseImages struct {
	// policy: AsIs (default) or Pin.
	// +optional
	Policy ImagePolicy `json:"policy,omitempty"`
	// secretRefs name Secrets of type kubernetes.io/dockerconfigjson with which
	// registries are asked. Whoever writes one must be allowed to get it. At most 8.
	// +optional
	// +listType=atomic
	SecretRefs []ImageSecretReference `json:"secretRefs,omitempty"`
}

// ImageSecretReference names a Secret of the same namespace.
type ImageSecretReference struct {
	// name of the Secret.
	Name string `json:"name"`
}

// MutationType says what the bodies of a mutation are.
type MutationType string

// Types of mutations.
const (
	// MutationGoTemplate: a template of a partial object, merged into each target.
	MutationGoTemplate MutationType = "goTemplate"
	// MutationJSONPatch: a list of RFC 6902 operations.
	MutationJSONPatch MutationType = "jsonPatch"
	// MutationMergePatch: an RFC 7386 merge patch.
	MutationMergePatch MutationType = "mergePatch"
)

// Mutation changes objects of the render, in the order of the list.
type Mutation struct {
	// name for messages; default: its place in the list.
	// +optional
	Name string `json:"name,omitempty"`
	// if is a CEL expression over cluster, self and object; a mutation is left out
	// where it is false. Default: true.
	// +optional
	If string `json:"if,omitempty"`
	// type: goTemplate, jsonPatch or mergePatch. Only a goTemplate body is a template.
	Type MutationType `json:"type"`
	// target selects objects; default: all.
	// +optional
	Target *MutationTarget `json:"target,omitempty"`
	// inline bodies, YAML or JSON, applied in order. Exactly one of inline and from is
	// given. At most 64.
	// +optional
	// +listType=atomic
	Inline []string `json:"inline,omitempty"`
	// from takes the one body from elsewhere.
	// +optional
	From *MutationSource `json:"from,omitempty"`
}

// MutationTarget selects objects; all that is given has to hold.
type MutationTarget struct {
	// group of the objects; unset: any, "" cannot be told from it: use kind.
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the objects.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the objects, as rendered.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the objects; * and ? stand for any text and any character.
	// +optional
	Name string `json:"name,omitempty"`
	// labelSelector over the objects' labels, in the form of kubectl's -l.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
}

// MutationSource says where a body is.
type MutationSource struct {
	// kind: ConfigMap (default), Secret, or Source for a file of the Release's own
	// source.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name of the ConfigMap or Secret. May hold {{ .cluster.KEY }}.
	// +optional
	Name string `json:"name,omitempty"`
	// path: the key in its data, or the file in the source. May hold {{ .cluster.KEY }}.
	Path string `json:"path"`
}

// Provenance says what a render was made of. It decides about nothing.
type Provenance struct {
	// url of the source, without credentials.
	// +optional
	URL string `json:"url,omitempty"`
	// chart, its version and appVersion, where it was one.
	// +optional
	Chart string `json:"chart,omitempty"`
	// +optional
	ChartVersion string `json:"chartVersion,omitempty"`
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
	// signer: the key that the source's signature was verified with.
	// +optional
	Signer string `json:"signer,omitempty"`
	// renderer is the version of the hub that rendered.
	// +optional
	Renderer string `json:"renderer,omitempty"`
}
