// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/secret"
)

// VerbInCluster is the RBAC verb on clusters that lets somebody make a Cluster of
// mode inCluster: its Releases are applied to the hub's own host, with the rights
// of the hub. Administrators of a namespace do not have it.
const VerbInCluster = "incluster"

var errInCluster = errors.New("spec.connectionMode: a Cluster of mode inCluster deploys to the hub's own host with the rights of the hub; that needs the verb " + VerbInCluster + " on clusters")

// redirected says whether the way to the cluster changed: then whoever changed it
// must be allowed to read the Secrets that it names.
func redirected(c, old *v1alpha1.Cluster) bool {
	return c.Spec.ConnectionMode != old.Spec.ConnectionMode || !equality.Semantic.DeepEqual(c.Spec.Agentless, old.Spec.Agentless)
}

// references of a Cluster to Secrets, each Secret once.
func references(c *v1alpha1.Cluster) []secret.Reference {
	var out []secret.Reference
	for _, name := range c.Spec.SecretNames() {
		out = append(out, secret.Reference{Secret: name, Field: fieldOf(c.Spec.Agentless, name)})
	}
	return out
}

func fieldOf(a *v1alpha1.AgentlessConnection, name string) string {
	if k := a.Auth.Kubeconfig; k != nil && k.SecretRef.Name == name {
		return "spec.agentless.auth.kubeconfig.secretRef.name"
	}
	return "spec.agentless.caPublicCertRef.name"
}

// guard asks what the validation cannot know: what the user may do.
type guard struct {
	secrets secret.Check[*v1alpha1.Cluster]
}

func (g guard) beginCreate(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (registry.FinishFunc, error) {
	if c, ok := obj.(*v1alpha1.Cluster); ok && c.Spec.ConnectionMode == v1alpha1.ConnectionModeInCluster {
		if err := g.mayUseHost(ctx, c); err != nil {
			return nil, err
		}
	}
	return g.secrets.BeginCreate(ctx, obj, options)
}

// mayUseHost asks whether the user may have the hub deploy to its own host. What
// the hub itself makes, in process, has no user and is not asked about.
func (g guard) mayUseHost(ctx context.Context, c *v1alpha1.Cluster) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	resource := v1alpha1.Resource("clusters")
	decision, reason, err := g.secrets.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            user,
		Verb:            VerbInCluster,
		APIGroup:        v1alpha1.SchemeGroupVersion.Group,
		APIVersion:      v1alpha1.SchemeGroupVersion.Version,
		Resource:        resource.Resource,
		Namespace:       request.NamespaceValue(ctx),
		Name:            c.Name,
		ResourceRequest: true,
	})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("ask whether user %q may %s: %w", user.GetName(), VerbInCluster, err))
	}
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if reason != "" {
		return apierrors.NewForbidden(resource, c.Name, fmt.Errorf("%w: %s", errInCluster, reason))
	}
	return apierrors.NewForbidden(resource, c.Name, errInCluster)
}
