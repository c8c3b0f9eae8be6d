// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"kumodo.io/convoy/hub/render/facts"
)

// DefaultKubeVersion is what a template sees when the cluster's version is not known.
const DefaultKubeVersion = "v1.37.0"

// DefaultAPIVersions are those that Helm takes for served when it knows no cluster.
func DefaultAPIVersions() []string {
	return slices.Clone(chartutil.DefaultVersionSet)
}

// capabilities is .Capabilities of templates: what Helm has there, but each part is
// asked for, and recorded, when a template comes to it. It is a func because a
// template may copy it deeply, and a copy must still ask.
type capabilities func() *asked

type asked struct {
	facts facts.Facts
	// singly: no template looks at the list of what is served as a list.
	singly bool
}

// versions is .Capabilities.APIVersions where templates only call Has.
type versions func(api string) bool

func newCapabilities(f facts.Facts, singly bool) capabilities {
	a := &asked{facts: f, singly: singly}
	return func() *asked { return a }
}

// KubeVersion of the cluster.
func (c capabilities) KubeVersion() *chartutil.KubeVersion { return kubeVersion(c().facts) }

// APIVersions answers Has; where a template wants it as a list it is one, and all of
// it counts as read.
func (c capabilities) APIVersions() any {
	a := c()
	if !a.singly {
		return a.list()
	}
	return versions(func(api string) bool {
		_, served := a.facts.Read(facts.API + api)
		return served
	})
}

// HelmVersion is that of the library.
func (c capabilities) HelmVersion() any { return chartutil.DefaultCapabilities.HelmVersion }

// Has says whether the cluster serves GROUP/VERSION or GROUP/VERSION/KIND.
func (v versions) Has(api string) bool { return v(api) }

// whole reads everything, for whoever prints it.
func (c capabilities) whole() *chartutil.Capabilities {
	return &chartutil.Capabilities{KubeVersion: *c.KubeVersion(), APIVersions: c().list(), HelmVersion: chartutil.DefaultCapabilities.HelmVersion}
}

// String is what {{ .Capabilities }} gives.
func (c capabilities) String() string { return fmt.Sprint(c.whole()) }

// MarshalJSON is for toJson and toYaml.
func (c capabilities) MarshalJSON() ([]byte, error) { return json.Marshal(c.whole()) }

// MarshalYAML is for toYamlPretty.
func (c capabilities) MarshalYAML() (any, error) { return c.whole(), nil }

func (a *asked) list() chartutil.VersionSet {
	var list chartutil.VersionSet
	for api := range a.facts.All(facts.APIs) {
		list = append(list, api)
	}
	slices.Sort(list)
	return list
}

var numbers = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)`)

// kubeVersion gives the version as the cluster says it, and its first two numbers.
func kubeVersion(f facts.Facts) *chartutil.KubeVersion {
	text, known := f.Read(facts.KubeVersion)
	if !known {
		text = DefaultKubeVersion
	}
	version := &chartutil.KubeVersion{Version: text}
	if parts := numbers.FindStringSubmatch(text); parts != nil {
		version.Major, version.Minor = parts[1], parts[2]
	}
	return version
}

// checkKubeVersion refuses a chart that is for other versions of Kubernetes.
func checkKubeVersion(c *chart.Chart, f facts.Facts) error {
	if c.Metadata.KubeVersion == "" {
		return nil
	}
	if version := kubeVersion(f).Version; !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, version) {
		return fmt.Errorf("chart %s: %w: it needs %s, and the cluster has %s", c.Name(), ErrKubeVersion, c.Metadata.KubeVersion, version)
	}
	return nil
}

// onlyAskedSingly reports that wherever templates, or texts that may be templates,
// come to .APIVersions, they call its Has. More texts are looked at than can be templates:
// to be wrong in that direction costs a render that could have been shared.
func onlyAskedSingly(c *chart.Chart, values map[string]any) bool {
	const list, call = ".APIVersions", ".Has"
	for text := range texts(c, values) {
		for {
			i := strings.Index(text, list)
			if i < 0 {
				break
			}
			text = text[i+len(list):]
			if !strings.HasPrefix(text, call) {
				return false
			}
		}
	}
	return true
}
