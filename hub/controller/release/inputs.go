// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"maps"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/render"
	"kumodo.io/convoy/hub/render/content"
	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/source"
)

// targetNamespace is where the objects of a Release go that name no namespace.
func targetNamespace(release *corev1alpha1.Release) string {
	if release.Spec.TargetNamespace != "" {
		return release.Spec.TargetNamespace
	}
	return release.Namespace
}

// job is what a render of a Release would be made of now.
func (r *Reconciler) job(ctx context.Context, w *work) (render.Job, error) {
	release := w.release
	cluster, _ := r.Cache.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name})
	job := render.Job{Tenant: release.Namespace, Snapshot: w.snapshot, Fresh: w.request.force != ""}
	job.Content = content.Job{
		Content: release.Spec.Content, Namespace: targetNamespace(release),
		AllowEmpty: release.Spec.SyncPolicy.Prune.AllowEmpty,
		Pin:        release.Spec.Images.Policy == corev1alpha1.ImagesPin,
		World:      world(release, cluster, w.revision),
		Hooks:      content.LifecycleHooks(&release.Spec.Lifecycle),
	}
	job.Content.Content.Path = contentPath(release)
	var secrets []string
	for _, ref := range release.Spec.Images.SecretRefs {
		secrets = append(secrets, ref.Name)
	}
	others := r.Sources.Others(w.want, w.revision, secrets, release.Status.CheckedSecrets)
	if job.Content.Pin {
		job.Images = others
	}
	if release.Spec.Source.Kind != sourcev1alpha1.KindHelmRegistry {
		job.Charts = others // those of a registry come with the chart
	}
	reader := &reader{texts: r.Texts, release: release, cluster: job.Content.World.Cluster}
	var err error
	if job.Content.Values, err = reader.values(ctx); err != nil {
		return render.Job{}, err
	}
	job.Content.Mutations, err = reader.mutations(ctx)
	return job, err
}

// contentPath is the path in the source. Of a registry of charts it is the folder that
// the chart is in.
func contentPath(release *corev1alpha1.Release) string {
	clean := path.Clean("/" + release.Spec.Content.Path)[1:]
	if helm := release.Spec.Content.Helm; helm != nil && helm.Chart != nil && release.Spec.Source.Kind == sourcev1alpha1.KindHelmRegistry {
		return path.Join(path.Base(helm.Chart.Name), clean)
	}
	if clean == "" {
		return "."
	}
	return clean
}

// world is what a render may ask of. Of the Cluster that is what its owner wrote and
// what it serves, never how it is reached; of the Release nothing that the hub writes.
func world(release *corev1alpha1.Release, cluster *corev1alpha1.Cluster, revision source.Revision) facts.World {
	made := facts.World{
		Cluster: map[string]string{}, Revision: revision.Key,
		Self: facts.Self{
			Name: release.Name, Namespace: release.Namespace, TargetNamespace: targetNamespace(release),
			Labels: written(release.Labels), Annotations: written(release.Annotations), UID: string(release.UID),
		},
	}
	if cluster != nil {
		maps.Copy(made.Cluster, cluster.Spec.Metadata)
		made.KubeVersion, made.APIVersions = cluster.Status.KubernetesVersion, cluster.Status.APIVersions
	}
	made.Cluster["name"] = release.Spec.ClusterRef.Name
	return made
}

// written leaves out labels and annotations that say nothing of what is wanted.
func written(all map[string]string) map[string]string {
	kept := make(map[string]string, len(all))
	for key, value := range all {
		if !strings.HasPrefix(key, ownDomain) && key != lastApplied {
			kept[key] = value
		}
	}
	return kept
}

const (
	ownDomain   = "convoy.kumodo.io/"
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)
