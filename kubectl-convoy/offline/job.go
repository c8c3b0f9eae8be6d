// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"strings"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
)

// clusterKey is what a mutation's from.name and from.path may hold.
var clusterKey = regexp.MustCompile(`\{\{\s*\.cluster\.([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*\}\}`)

// job says what the hub would say to its render worker.
func (o *Options) job() (content.Job, error) {
	release := o.Release
	namespace := release.Spec.TargetNamespace
	if namespace == "" {
		namespace = release.Namespace
	}
	job := content.Job{
		Content: release.Spec.Content, Namespace: namespace, AllowEmpty: release.Spec.SyncPolicy.Prune.AllowEmpty,
		World: facts.World{
			Cluster: o.cluster(), KubeVersion: o.KubeVersion, APIVersions: o.APIVersions, Images: o.Images,
			Self: facts.Self{
				Name: release.Name, Namespace: release.Namespace, TargetNamespace: namespace,
				Labels: written(release.Labels), Annotations: written(release.Annotations), UID: string(release.UID),
			},
		},
		Pin:   release.Spec.Images.Policy == v1alpha1.ImagesPin && !o.ImagesAsIs,
		Hooks: content.LifecycleHooks(&release.Spec.Lifecycle),
	}
	if err := o.values(&job); err != nil {
		return job, err
	}
	for i, mutation := range release.Spec.Mutations {
		made, err := o.mutation(&job, mutation, i)
		if err != nil {
			return job, err
		}
		job.Mutations = append(job.Mutations, made)
	}
	return job, nil
}

// written leaves out labels and annotations that the hub leaves out too: its own, and
// what kubectl apply writes.
func written(all map[string]string) map[string]string {
	kept := make(map[string]string, len(all))
	for key, value := range all {
		if !strings.HasPrefix(key, "convoy.kumodo.io/") && key != "kubectl.kubernetes.io/last-applied-configuration" {
			kept[key] = value
		}
	}
	return kept
}

// cluster is what templates see: cluster.name always wins.
func (o *Options) cluster() map[string]string {
	out := maps.Clone(o.Cluster)
	if out == nil {
		out = map[string]string{}
	}
	out["name"] = o.ClusterName
	if o.ClusterName == "" {
		out["name"] = o.Release.Spec.ClusterRef.Name
	}
	return out
}

func (o *Options) values(job *content.Job) error {
	helm := o.Release.Spec.Content.Helm
	if helm == nil {
		return nil
	}
	for i, from := range helm.ValuesFrom {
		key := from.Key
		if key == "" {
			key = v1alpha1.DefaultValuesKey
		}
		text, err := o.Given.text(from.Kind, from.Name, key)
		if err != nil && from.Optional {
			continue
		}
		if err != nil {
			return fmt.Errorf("spec.content.helm.valuesFrom[%d]: %w", i, err)
		}
		job.Values = append(job.Values, content.Values{
			Origin: fmt.Sprintf("%s %s, key %s", from.Kind, from.Name, key), Text: text, TargetPath: from.TargetPath, Secret: from.Kind == v1alpha1.ReferenceSecret,
		})
	}
	if helm.Values != nil && len(helm.Values.Raw) > 0 {
		job.Values = append(job.Values, content.Values{Origin: "spec.content.helm.values", Text: string(helm.Values.Raw)})
	}
	return nil
}

func (o *Options) mutation(job *content.Job, m v1alpha1.Mutation, i int) (content.Mutation, error) {
	out := content.Mutation{Name: m.Name, If: m.If, Type: m.Type, Target: m.Target, Bodies: m.Inline}
	if m.From == nil {
		return out, nil
	}
	fail := func(err error) (content.Mutation, error) {
		return out, fmt.Errorf("spec.mutations[%d].from: %w", i, err)
	}
	key, err := expand(m.From.Path, job.World.Cluster)
	if err != nil {
		return fail(err)
	}
	kind := m.From.Kind
	switch kind {
	case v1alpha1.ReferenceSource:
		out.File = path.Clean(key)
		return out, nil
	case "":
		kind = v1alpha1.ReferenceConfigMap
	}
	name, err := expand(m.From.Name, job.World.Cluster)
	if err != nil {
		return fail(err)
	}
	text, err := o.Given.text(kind, name, key)
	if err != nil {
		return fail(err)
	}
	out.Bodies, out.Origin, out.Secret = []string{text}, fmt.Sprintf("%s %s, key %s", kind, name, key), kind == v1alpha1.ReferenceSecret
	return out, nil
}

// expand puts the cluster's values in.
func expand(text string, cluster map[string]string) (string, error) {
	var err error
	out := clusterKey.ReplaceAllStringFunc(text, func(found string) string {
		key := clusterKey.FindStringSubmatch(found)[1]
		value, there := cluster[key]
		if !there && err == nil {
			err = fmt.Errorf("%w: cluster.%s", ErrKey, key)
		}
		return value
	})
	return out, err
}
