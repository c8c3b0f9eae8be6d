// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// VerbConfirm is the RBAC verb on releases, and on clusters, that lets somebody
// confirm a deletion that was held, beside the right to create the subresource.
const VerbConfirm = "confirm"

// confirmation lets one deletion pass, as long as nothing else would be deleted.
type confirmation struct {
	digest  string
	expires time.Time
}

func (g *Gate) isConfirmed(p *plan) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.confirmed[p.object.GetUID()]
	return ok && c.digest == p.digest && g.clock.Now().Before(c.expires)
}

// spent ends a confirmation that was used.
func (g *Gate) spent(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.confirmed, uid)
}

// Checked is a confirmation that may be made.
type Checked struct {
	uid    types.UID
	digest string
}

// CheckRelease says whether a request confirms the deletion of a Release that was
// held, and whether its user may.
func (g *Gate) CheckRelease(ctx context.Context, r *v1alpha1.Release, c *v1alpha1.ConfirmRequest) (Checked, error) {
	p, err := g.planRelease(ctx, r)
	if err != nil {
		return Checked{}, err
	}
	return g.check(ctx, v1alpha1.Resource("releases"), r, r.Status.HeldDeletion, p, c)
}

// CheckCluster does the same for a Cluster.
func (g *Gate) CheckCluster(ctx context.Context, cluster *v1alpha1.Cluster, c *v1alpha1.ConfirmRequest) (Checked, error) {
	p, err := g.planCluster(ctx, cluster)
	if err != nil {
		return Checked{}, err
	}
	return g.check(ctx, v1alpha1.Resource("clusters"), cluster, cluster.Status.HeldDeletion, p, c)
}

func (g *Gate) check(ctx context.Context, resource schema.GroupResource, object metav1.Object, held *v1alpha1.HeldDeletion, p *plan, c *v1alpha1.ConfirmRequest) (Checked, error) {
	if err := g.mayConfirm(ctx, resource, object); err != nil {
		return Checked{}, err
	}
	switch {
	case object.GetDeletionTimestamp() != nil:
		return Checked{}, apierrors.NewConflict(resource, object.GetName(), errDeleting)
	case held == nil || p == nil:
		return Checked{}, apierrors.NewConflict(resource, object.GetName(), errNotHeld)
	case held.Sequence != c.Sequence || held.Digest != c.Digest || p.sequence != c.Sequence || p.digest != c.Digest:
		return Checked{}, apierrors.NewConflict(resource, object.GetName(), errStale)
	}
	return Checked{uid: object.GetUID(), digest: p.digest}, nil
}

// MayConfirm says whether the user of a request may confirm deletions of a Release.
func (g *Gate) MayConfirm(ctx context.Context, release *v1alpha1.Release) error {
	return g.mayConfirm(ctx, v1alpha1.Resource("releases"), release)
}

// mayConfirm asks for the verb itself: the right to create releases/confirm alone,
// which a wildcard over subresources gives, is not enough.
func (g *Gate) mayConfirm(ctx context.Context, resource schema.GroupResource, object metav1.Object) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewForbidden(resource, object.GetName(), errNoUser)
	}
	decision, reason, err := g.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            user,
		Verb:            VerbConfirm,
		APIGroup:        resource.Group,
		APIVersion:      v1alpha1.SchemeGroupVersion.Version,
		Resource:        resource.Resource,
		Namespace:       object.GetNamespace(),
		Name:            object.GetName(),
		ResourceRequest: true,
	})
	switch {
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may confirm: %w", user.GetName(), err))
	case decision == authorizer.DecisionAllow:
		return nil
	case reason != "":
		return apierrors.NewForbidden(resource, object.GetName(), fmt.Errorf("%w on %s: %s", errMayNot, resource.Resource, reason))
	}
	return apierrors.NewForbidden(resource, object.GetName(), fmt.Errorf("%w on %s", errMayNot, resource.Resource))
}

// Confirm lets one deletion pass until the time that it gives. A dry run only says
// until when it would.
func (g *Gate) Confirm(c Checked, dryRun bool) (metav1.Time, error) {
	now := g.clock.Now()
	expires := metav1.NewTime(now.Add(confirmedFor)).Rfc3339Copy()
	if dryRun {
		return expires, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.confirmed) >= maxConfirmed {
		for uid, old := range g.confirmed {
			if !now.Before(old.expires) {
				delete(g.confirmed, uid)
			}
		}
		if len(g.confirmed) >= maxConfirmed {
			return metav1.Time{}, apierrors.NewTooManyRequests(errTooMany.Error(), 60)
		}
	}
	g.confirmed[c.uid] = confirmation{digest: c.digest, expires: expires.Time}
	return expires, nil
}
