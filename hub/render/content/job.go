// SPDX-License-Identifier: Apache-2.0

package content

import (
	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/pkg/manifest"
)

// Job is all that a render is made of, beside the tree of the source. Each of its
// fields decides about the render's bytes, the World as far as it is read.
type Job struct {
	// Content says what of the tree is rendered and as what. Of a HelmRegistry the path
	// is the chart's folder. valuesFrom and values are not read here: they are Values.
	Content v1alpha1.ReleaseContent `json:"content"`
	// Namespace for namespaced objects that name none.
	Namespace string `json:"namespace"`
	// AllowEmpty: no objects are a render of nothing, and no failure.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
	// Values over those of the chart and its files, in order; later ones win.
	Values []Values `json:"values,omitempty"`
	// Mutations with their bodies, in order.
	Mutations []Mutation `json:"mutations,omitempty"`
	// Hooks of the Release itself.
	Hooks []Hook `json:"hooks,omitempty"`
	// AskCharts: charts that the chart lacks can be fetched; that they are missing is a
	// need, and no failure.
	AskCharts bool `json:"askCharts,omitempty"`
	// Pin: images go by digest. Those that World.Images lacks are needed.
	Pin bool `json:"pin,omitempty"`
	// World is what may be asked.
	World facts.World `json:"world"`
	// Secrets are the texts that came in through Secrets; what shows one is sealed.
	Secrets []string `json:"secrets,omitempty"`
}

// Values are one text of values.
type Values struct {
	// Origin for messages: "Secret db, key values.yaml".
	Origin string `json:"origin"`
	// Text in YAML or JSON; with a TargetPath the value itself.
	Text string `json:"text"`
	// TargetPath puts the text at one place, as in a.b.c.
	TargetPath string `json:"targetPath,omitempty"`
	// Secret: the text is a Secret's.
	Secret bool `json:"secret,omitempty"`
}

// Mutation changes objects.
type Mutation struct {
	Name   string                   `json:"name,omitempty"`
	If     string                   `json:"if,omitempty"`
	Type   v1alpha1.MutationType    `json:"type"`
	Target *v1alpha1.MutationTarget `json:"target,omitempty"`
	// Bodies in order; of a file of the source there is none, but its path.
	Bodies []string `json:"bodies,omitempty"`
	// Origin of the one body that stands elsewhere, for messages.
	Origin string `json:"origin,omitempty"`
	// File of the source that has the body.
	File string `json:"file,omitempty"`
	// Secret: the body is a Secret's.
	Secret bool `json:"secret,omitempty"`
}

// Result is a render and what is known of how it came about.
type Result struct {
	// Set of all objects.
	Set *manifest.Set
	// Kind of content that was found: Manifests, Helm or Kustomize.
	Kind string
	// Reads are the names of the facts that were asked for (package facts), those of
	// the tree beyond the content's path among them.
	Reads []string
	// Chart, its version and appVersion, of a chart.
	Chart, ChartVersion, AppVersion string
	// Hooks counts the objects that are hooks.
	Hooks int
	// Warnings are for people: what was left out, and why.
	Warnings []string
	// Needs is what the render lacks, with ErrIncomplete.
	Needs Needs
}

// Needs is what a render lacks.
type Needs struct {
	// Paths of the source, outside of what the tree was made of.
	Paths []string `json:"paths,omitempty"`
	// Charts that the chart lacks.
	Charts bool `json:"charts,omitempty"`
	// Images whose digest is not known.
	Images []string `json:"images,omitempty"`
}

// Kinds of content.
const (
	Manifests = "manifests"
	Helm      = "helm"
	Kustomize = "kustomize"
)
