// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"slices"
	"strings"
)

// Names of facts, and what the names of others begin with.
const (
	// Cluster begins the keys of the Cluster's metadata: cluster.region. cluster.name is
	// always the Cluster's name.
	Cluster = "cluster."
	// SelfName, SelfNamespace and SelfTargetNamespace are those of the Release.
	SelfName            = "self.name"
	SelfNamespace       = "self.namespace"
	SelfTargetNamespace = "self.targetNamespace"
	// SelfReleaseName is the name that a chart is rendered under where its content
	// names none.
	SelfReleaseName = "self.releaseName"
	// SelfLabels and SelfAnnotations begin the keys of the Release's labels and
	// annotations.
	SelfLabels      = "self.labels."
	SelfAnnotations = "self.annotations."
	// KubeVersion of the cluster, as in v1.37.2.
	KubeVersion = "capabilities.kubeVersion"
	// API begins what the cluster serves, GROUP/VERSION or GROUP/VERSION/KIND. The
	// fact is there when it is served.
	API = "capabilities.api:"
	// APIs is the list of all that the cluster serves.
	APIs = "capabilities.apis"
	// Random: a template asked for something random, or for the time. Its answer is the
	// Release's UID, so that what came of it is kept, and is shared with no other.
	Random = "random"
	// Image begins references of images: the fact is the digest. Of very many, image:*
	// stands for all: they are those of one revision of the source.
	Image = "image:"
	// Path begins paths of the source: the fact is the digest of all below it. The
	// hub alone has these.
	Path = "path:"
	// Charts: charts were fetched that the source lacks; the fact is their digest. The hub
	// alone has it.
	Charts = "charts"
	// whole ends the name of all keys of a class: cluster.*.
	whole = "*"
)

// Facts is what a render asks.
type Facts interface {
	// Read gives one fact by its name; ok says whether it is there.
	Read(name string) (value string, ok bool)
	// All gives all facts of a class (Cluster, SelfLabels, SelfAnnotations) by their
	// keys, and of APIs the list, as keys. The map is the caller's.
	All(class string) map[string]string
	// Note remembers that a fact counts, as Random, without asking for it.
	Note(name string)
}

// World is all there is to ask. It is read only once it is in use.
type World struct {
	// Cluster: the metadata, and the name under "name".
	Cluster map[string]string `json:"cluster,omitempty"`
	// Self is the Release.
	Self Self `json:"self"`
	// KubeVersion of the cluster, as in v1.37.2.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// APIVersions that the cluster serves: GROUP/VERSION, and GROUP/VERSION/KIND where
	// the kinds are known. For a group and version without any kind in the list, every
	// kind counts as served.
	APIVersions []string `json:"apiVersions,omitempty"`
	// Images: reference -> sha256:<hex>.
	Images map[string]string `json:"images,omitempty"`
	// Revision of the source, for which each image is looked up once.
	Revision string `json:"revision,omitempty"`
}

// Self is what a render may know of its Release.
type Self struct {
	Name            string            `json:"name"`
	Namespace       string            `json:"namespace"`
	TargetNamespace string            `json:"targetNamespace"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	UID             string            `json:"uid,omitempty"`
	// ReleaseName of a chart where it is another than the name.
	ReleaseName string `json:"releaseName,omitempty"`
}

// Value gives one fact by its name.
func (w *World) Value(name string) (value string, ok bool) {
	switch name {
	case SelfName:
		return w.Self.Name, true
	case SelfNamespace:
		return w.Self.Namespace, true
	case SelfTargetNamespace:
		return w.Self.TargetNamespace, true
	case SelfReleaseName:
		if w.Self.ReleaseName != "" {
			return w.Self.ReleaseName, true
		}
		return w.Self.Name, true
	case Image + whole:
		return w.Revision, true
	case KubeVersion:
		return w.KubeVersion, w.KubeVersion != ""
	case APIs:
		return strings.Join(w.APIVersions, " "), true
	case Random:
		return w.Self.UID, true
	}
	if api, found := strings.CutPrefix(name, API); found {
		if w.serves(api) {
			return "served", true
		}
		return "", false
	}
	if reference, found := strings.CutPrefix(name, Image); found {
		value, ok = w.Images[reference]
		return value, ok
	}
	for _, class := range []string{Cluster, SelfLabels, SelfAnnotations} {
		key, found := strings.CutPrefix(name, class)
		if !found {
			continue
		}
		if key == whole {
			text, err := json.Marshal(w.class(class)) // of texts; keys are sorted
			return string(text), err == nil
		}
		value, ok = w.class(class)[key]
		return value, ok
	}
	return "", false
}

func (w *World) class(name string) map[string]string {
	switch name {
	case Cluster:
		return w.Cluster
	case SelfLabels:
		return w.Self.Labels
	case SelfAnnotations:
		return w.Self.Annotations
	default:
		return nil
	}
}

// serves says whether the cluster has GROUP/VERSION or GROUP/VERSION/KIND.
func (w *World) serves(api string) bool {
	if slices.Contains(w.APIVersions, api) {
		return true
	}
	i := strings.LastIndexByte(api, '/')
	if i < 0 || !slices.Contains(w.APIVersions, api[:i]) {
		return false
	}
	kinds := func(have string) bool { return strings.HasPrefix(have, api[:i+1]) }
	return !slices.ContainsFunc(w.APIVersions, kinds)
}
