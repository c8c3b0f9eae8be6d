// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"os"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/e2e/install"
)

// End stops what the case started and leaves the objects, but for those that would be in
// the way of other cases on the cluster. The hub forgets the case.
func (p *Player) End(ctx context.Context) error {
	var errs []error
	for _, agent := range p.others {
		if agent.Process().Running() {
			errs = append(errs, agent.Stop(ctx))
		}
	}
	// What later cases are played on is left as it was found.
	for _, plane := range slices.Clone(p.stopped) {
		errs = append(errs, p.startPlane(ctx, plane))
	}
	for _, t := range p.targets {
		if t.apiStopped {
			errs = append(errs, t.cube.plane.StartAPIServer(ctx))
			t.apiStopped = false
		}
	}
	if !p.hubRuns() {
		errs = append(errs, p.world.Hub.Up(ctx))
	}
	for _, t := range p.targets {
		if !t.agentAway() {
			errs = append(errs, t.agent.Stop(ctx))
		}
		if t.link != nil {
			errs = append(errs, t.link.close())
		}
		for _, r := range p.releases {
			// The agent is away, so that the deletion takes nothing from the cluster.
			errs = append(errs, p.keepAndDelete(ctx, t, r))
		}
		err := p.world.Hub.Plane.Dynamic().Resource(install.Clusters).Namespace(t.namespace).Delete(ctx, t.cluster, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, s := range p.seen {
		errs = append(errs, p.clear(ctx, s))
	}
	if p.backup != "" {
		errs = append(errs, os.RemoveAll(p.backup))
	}
	if p.snapshots != "" {
		errs = append(errs, os.RemoveAll(p.snapshots))
	}
	p.world.Git.Before(nil)
	if p.server != nil {
		errs = append(errs, p.server.Close())
	}
	return errors.Join(errs...)
}

// clear deletes an object that all of a cluster suffers from: an API without a server,
// which holds up the deletion of every namespace, or what is asked about every write.
func (p *Player) clear(ctx context.Context, s *seen) error {
	if group := s.gvk.Group; group != "apiregistration.k8s.io" && group != "admissionregistration.k8s.io" || s.cube.answers() != nil {
		return nil
	}
	resource, err := s.cube.resource(s.cube.dynamic, s.gvk, s.namespace)
	if err == nil {
		err = resource.Delete(ctx, s.name, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err //nolint:wrapcheck // names the object
}

func (p *Player) keepAndDelete(ctx context.Context, t *target, r *release) error {
	client := p.world.Hub.Plane.Dynamic().Resource(install.Releases).Namespace(t.namespace)
	_, err := client.Patch(ctx, r.name, types.MergePatchType, []byte(`{"spec":{"deletionPolicy":{"keepWorkloads":true}}}`), metav1.PatchOptions{})
	if err == nil {
		err = client.Delete(ctx, r.name, metav1.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err //nolint:wrapcheck // names the Release
}
