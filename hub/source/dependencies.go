// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/go-logr/logr"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/source/endpoint"
	"kumodo.io/convoy/hub/source/registry"
)

// Dependencies gives the charts that the chart at a path of a revision needs and does
// not have, as a snapshot in which they stand where the source should have them:
// PATH/charts/.... They are fetched once for a revision: a range of versions leads to
// the same ones for all who render it.
//
// The credentials of a HelmRegistry or OCIRegistry of the namespace go to dependencies
// from its scheme, host and port, and to no others.
func (c *Coordinator) Dependencies(ctx context.Context, w Want, revision Revision, path string) (*Snapshot, error) {
	in, err := c.Snapshot(ctx, w, revision)
	if err != nil {
		return nil, err
	}
	of := snapshotName(w.Object, revision.Key)
	found, err := c.fetchOnce(ctx, of+"-"+sourceKey("dependencies", path), w.Object.GetNamespace(), nil, func(ctx context.Context) (fetchJob, error) {
		return fetchJob{Registry: &registry.Job{
			Remote:       endpoint.Remote{Policy: c.policy},
			Dependencies: &registry.Dependencies{Snapshot: c.cache.path(of), Path: path, Remotes: c.registriesOf(ctx, w.Object.GetNamespace())},
		}}, nil
	})
	if in.Corrupt() {
		c.cache.get(of) // takes it out, so that the next who wants it fetches it again
	}
	return found, err
}

// registriesOf are a namespace's registries that can be used. One that cannot says so
// in its own status; what would need its credentials is asked for without.
func (c *Coordinator) registriesOf(ctx context.Context, namespace string) []endpoint.Remote {
	if c.registries == nil {
		return nil
	}
	var remotes []endpoint.Remote
	for _, object := range c.registries(namespace) {
		var remote endpoint.Remote
		var err error
		switch o := object.(type) {
		case *v1alpha1.HelmRegistry:
			remote, err = c.chartRemote(ctx, o)
		case *v1alpha1.OCIRegistry:
			remote, err = c.artifactRemote(ctx, o)
		default:
			continue
		}
		if err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("A registry's credentials cannot be used for dependencies", "kind", object.SourceKind(), "source", object.GetName(), "cause", err.Error())
			continue
		}
		if remotes = append(remotes, remote); len(remotes) == maxRegistries {
			break
		}
	}
	return remotes
}
