// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/engine"
)

// probe asks a cluster what it is. A Cluster that was reachable is asked twice
// before it is said not to be.
func (c *cell) probe(ctx context.Context, conn *connection, wasReachable bool) (engine.Cluster, error) {
	m := c.manager
	select {
	case m.probes <- struct{}{}:
	case <-ctx.Done():
		return engine.Cluster{}, context.Cause(ctx)
	}
	defer func() { <-m.probes }()
	start := m.clock.Now()
	found, err := describe(ctx, conn)
	if err != nil && wasReachable && ctx.Err() == nil {
		select {
		case <-m.clock.After(confirmAfter):
			found, err = describe(ctx, conn)
		case <-ctx.Done():
		}
	}
	m.metrics.probed(err == nil, m.clock.Since(start))
	return found, err
}

func describe(ctx context.Context, conn *connection) (engine.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	found, err := engine.Describe(ctx, conn.config)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", probeTimeout, context.DeadlineExceeded)
	}
	return found, err
}

// probeFault turns the error of a call into what the Cluster's owner can read.
func (c *cell) probeFault(ctx context.Context, mode v1alpha1.ConnectionMode, err error) *fault {
	const account = DeployerNamespace + "/" + DeployerName
	switch {
	case mode == v1alpha1.ConnectionModeInCluster && apierrors.IsForbidden(err):
		if !c.manager.mayImpersonate(ctx) {
			return away(err, "the hub may not impersonate the ServiceAccount %s: apply manifests/hub/overlays/in-cluster", account)
		}
		return away(err, "the ServiceAccount %s lacks rights: apply manifests/hub/overlays/in-cluster (%s)", account, plain(err))
	case apierrors.IsUnauthorized(err):
		return away(err, "the cluster does not accept the credentials")
	case apierrors.IsForbidden(err):
		return away(err, "the credentials lack rights: %s", plain(err))
	case errors.Is(err, ErrAddress):
		return away(err, "%s", ErrAddress)
	case errors.Is(err, context.DeadlineExceeded):
		return away(err, "the cluster gave no answer within %s", probeTimeout)
	}
	return away(err, "the cluster cannot be reached: %s", plain(err))
}

// mayImpersonate asks whether the hub's own account may act as the deployer: that a
// call was forbidden does not tell which of the two lacks rights. When that cannot
// be told, it may.
func (m *Manager) mayImpersonate(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client, err := typedauthorizationv1.NewForConfig(m.opts.Host)
	if err != nil {
		return true
	}
	review, err := client.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "impersonate", Resource: "serviceaccounts", Namespace: DeployerNamespace, Name: DeployerName,
		}},
	}, metav1.CreateOptions{})
	return err != nil || review.Status.Allowed
}

// reached is the status of a Cluster whose probe succeeded. That a Cluster is
// reachable and in no conflict is said by who writes the conditions.
func reached(status *v1alpha1.ClusterStatus, found engine.Cluster) {
	versions := slices.DeleteFunc(slices.Clone(found.APIVersions), func(v string) bool { return len(v) > maxWord })
	slices.Sort(versions)
	versions = slices.Compact(versions)
	status.Reachable = true
	status.KubernetesVersion = clipWord(found.KubernetesVersion)
	status.APIVersions = versions[:min(len(versions), maxAPIVersions)]
	if status.ClusterUID != "" && status.ClusterUID != found.UID {
		former := slices.DeleteFunc(slices.Clone(status.FormerClusterUIDs), func(uid string) bool { return uid == found.UID })
		former = append([]string{status.ClusterUID}, former...)
		status.FormerClusterUIDs = former[:min(len(former), maxFormer)]
	}
	status.ClusterUID = clipWord(found.UID)
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.Reason != v1alpha1.ReasonConnected
	})
}

// notReached is the status of one that is not served.
func notReached(status *v1alpha1.ClusterStatus, f *fault) {
	status.Reachable = false
	said := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: f.reason, Message: clip(f.message)}
	for _, c := range status.Conditions {
		if c.Type == said.Type && c.Status == said.Status && c.Reason == said.Reason && c.Message == said.Message {
			return
		}
	}
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool { return c.Type == said.Type })
	status.Conditions = append(status.Conditions, said)
}
