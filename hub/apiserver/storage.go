// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/clock"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/cluster"
	"kumodo.io/convoy/hub/apiserver/hub"
	"kumodo.io/convoy/hub/apiserver/internal/deletion"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/inventory"
	"kumodo.io/convoy/hub/apiserver/release"
	"kumodo.io/convoy/hub/apiserver/resource"
	"kumodo.io/convoy/hub/apiserver/source"
)

// Typed access in process to what is served.
type (
	Clusters        = resource.Store[*corev1alpha1.Cluster, *corev1alpha1.ClusterList]
	Releases        = resource.Store[*corev1alpha1.Release, *corev1alpha1.ReleaseList]
	Inventories     = resource.Store[*corev1alpha1.ReleaseInventory, *corev1alpha1.ReleaseInventoryList]
	GitRepositories = resource.Store[*sourcev1alpha1.GitRepository, *sourcev1alpha1.GitRepositoryList]
	HelmRegistries  = resource.Store[*sourcev1alpha1.HelmRegistry, *sourcev1alpha1.HelmRegistryList]
	OCIRegistries   = resource.Store[*sourcev1alpha1.OCIRegistry, *sourcev1alpha1.OCIRegistryList]

	HealthRuleSets       = resource.Store[*extensionsv1alpha1.HealthRuleSet, *extensionsv1alpha1.HealthRuleSetList]
	GlobalHealthRuleSets = resource.Store[*extensionsv1alpha1.GlobalHealthRuleSet, *extensionsv1alpha1.GlobalHealthRuleSetList]
)

// Storage is for the hub's other rooms, which read and write our objects in
// process. Everything goes through the strategies, nothing through admission.
type Storage struct {
	Clusters        *Clusters
	Releases        *Releases
	Inventories     *Inventories
	GitRepositories *GitRepositories
	HelmRegistries  *HelmRegistries
	OCIRegistries   *OCIRegistries

	HealthRuleSets       *HealthRuleSets
	GlobalHealthRuleSets *GlobalHealthRuleSets
}

// storageMap is one group's resources and subresources.
type storageMap = map[string]rest.Storage

type storageOptions struct {
	scheme       *scheme.Scheme
	rest         generic.RESTOptionsGetter
	shards       int
	clock        clock.PassiveClock
	join         cluster.JoinInfo
	hub          hub.Options
	authorizer   authorizer.UnconditionalAuthorizer
	gate         *deletion.Gate
	recording    *recording
	previews     release.Previews
	observations release.Observations
}

// newStorage builds all that is served: the maps are the API's table of contents.
func newStorage(o storageOptions) (core, sources storageMap, in Storage, err error) {
	clusters, err := cluster.NewStorage(cluster.Options{Typer: o.scheme, REST: o.rest, Shards: o.shards, Clock: o.clock, Authorizer: o.authorizer, Gate: o.gate, Join: o.join})
	if err != nil {
		return nil, nil, Storage{}, err
	}
	releases, err := release.NewStorage(release.Options{Typer: o.scheme, REST: o.rest, Shards: o.shards, Clock: o.clock, Authorizer: o.authorizer, Gate: o.gate, Previews: o.previews, Observations: o.observations})
	if err != nil {
		return nil, nil, Storage{}, err
	}
	inventories, err := inventory.NewREST(inventory.Options{Typer: o.scheme, REST: o.rest, Clock: o.clock})
	if err != nil {
		return nil, nil, Storage{}, err
	}
	sourceOptions := source.Options{Typer: o.scheme, REST: o.rest, Shards: o.shards, Clock: o.clock, Authorizer: o.authorizer}
	repositories, err := source.GitRepositories(sourceOptions)
	if err != nil {
		return nil, nil, Storage{}, err
	}
	charts, err := source.HelmRegistries(sourceOptions)
	if err != nil {
		return nil, nil, Storage{}, err
	}
	artifacts, err := source.OCIRegistries(sourceOptions)
	if err != nil {
		return nil, nil, Storage{}, err
	}

	core = storageMap{
		"clusters":           clusters.Cluster,
		"clusters/status":    clusters.Status,
		"clusters/join":      clusters.Join,
		"clusters/revoke":    clusters.Revoke,
		"clusters/confirm":   clusters.Confirm,
		"releases":           releases.Release,
		"releases/status":    releases.Status,
		"releases/sync":      releases.Sync,
		"releases/confirm":   releases.Confirm,
		"releases/preview":   releases.Preview,
		"releases/lifecycle": releases.Lifecycle,
		"releases/health":    releases.Health,
		"releases/diff":      releases.Diff,
		"releases/history":   releases.History,
		"releaseinventories": inventories,
		"hubs":               hub.NewREST(o.hub),
		"hubs/backup":        hub.NewBackupREST(o.hub),
		"hubs/restore":       hub.NewRestoreREST(o.hub),
	}
	sources = storageMap{
		"gitrepositories":        repositories.Main,
		"gitrepositories/status": repositories.Status,
		"helmregistries":         charts.Main,
		"helmregistries/status":  charts.Status,
		"ociregistries":          artifacts.Main,
		"ociregistries/status":   artifacts.Status,
	}
	in = Storage{
		Clusters:        resource.New[*corev1alpha1.Cluster, *corev1alpha1.ClusterList](clusters.Cluster.Store, clusters.Status.Store, o.scheme),
		Releases:        resource.New[*corev1alpha1.Release, *corev1alpha1.ReleaseList](releases.Release.Store, releases.Status.Store, o.scheme),
		Inventories:     resource.New[*corev1alpha1.ReleaseInventory, *corev1alpha1.ReleaseInventoryList](inventories.Store, nil, o.scheme),
		GitRepositories: resource.New[*sourcev1alpha1.GitRepository, *sourcev1alpha1.GitRepositoryList](repositories.Main.Store, repositories.Status.Store, o.scheme),
		HelmRegistries:  resource.New[*sourcev1alpha1.HelmRegistry, *sourcev1alpha1.HelmRegistryList](charts.Main.Store, charts.Status.Store, o.scheme),
		OCIRegistries:   resource.New[*sourcev1alpha1.OCIRegistry, *sourcev1alpha1.OCIRegistryList](artifacts.Main.Store, artifacts.Status.Store, o.scheme),
	}
	look := gated{releases: in.Releases, clusters: in.Clusters}
	o.recording.set(look)
	o.gate.Bind(look, o.recording.recorder)
	return core, sources, in, nil
}

// group makes what the library installs of one group.
func group(s *scheme.Scheme, name, version string, resources storageMap) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(name, s.Scheme, s.Parameters, s.Codecs)
	info.NegotiatedSerializer = scheme.JSONOnly(s.Codecs)
	info.VersionedResourcesStorageMap[version] = resources
	return &info
}

// APIServiceNames lists one APIService for each group and version served, and no
// other: one without a server behind it hangs every deletion of a namespace.
func APIServiceNames() []string {
	gvs := scheme.GroupVersions()
	names := make([]string, 0, len(gvs))
	for _, gv := range gvs {
		names = append(names, fmt.Sprintf("%s.%s", gv.Version, gv.Group))
	}
	return names
}
