// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// partPoll is the pause between two looks at an object that cannot be watched yet.
const partPoll = 25 * time.Millisecond

// watchRollout prints what changes on the hub and on the edges, as it changes, until
// the Releases are Ready and the objects there.
func (s *stage) watchRollout(ctx context.Context, v *voice) error {
	watches, ctx := errgroup.WithContext(ctx)
	for _, edge := range s.edges {
		watches.Go(func() error { return s.watchRelease(ctx, v, shop+"-"+edge.Name) })
		for _, one := range parts {
			watches.Go(func() error { return watchPart(ctx, v, edge, one) })
		}
	}
	return watches.Wait()
}

// watchRelease prints a Release's conditions each time they say something else.
func (s *stage) watchRelease(ctx context.Context, v *voice, name string) error {
	var said string
	_, err := harness.WaitFor(ctx, s.hub.Plane.Dynamic(), install.Releases, team, name, func(object *unstructured.Unstructured) (bool, error) {
		release, err := harness.As[corev1alpha1.Release](object)
		if err != nil {
			return false, err
		}
		if text := summary(release); text != said {
			v.line("hub     Release %-12s %s", name, text)
			said = text
		}
		return isTrue(release.Status.Conditions, corev1alpha1.ConditionReady), nil
	})
	return err
}

// summary is one line about a Release: conditions, and what it waits for.
func summary(release *corev1alpha1.Release) string {
	if len(release.Status.Conditions) == 0 {
		return "created"
	}
	var words []string
	for _, kind := range []string{
		corev1alpha1.ConditionRendered, corev1alpha1.ConditionApplied, corev1alpha1.ConditionInSync,
		corev1alpha1.ConditionHealthy, corev1alpha1.ConditionReady,
	} {
		for _, condition := range release.Status.Conditions {
			switch {
			case condition.Type != kind:
			case condition.Status == metav1.ConditionTrue:
				words = append(words, kind)
			case kind == corev1alpha1.ConditionApplied, kind == corev1alpha1.ConditionRendered:
				words = append(words, fmt.Sprintf("(%s: %s)", condition.Reason, condition.Message))
			}
		}
	}
	return strings.Join(words, " ")
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return false
}

// watchPart prints when an object appears on an edge, and when a Deployment runs.
func watchPart(ctx context.Context, v *voice, edge *install.Edge, one part) error {
	if one.resource == offers {
		return pollPart(ctx, v, edge, one)
	}
	seen := false
	_, err := harness.WaitFor(ctx, edge.Plane.Dynamic(), one.resource, one.namespace, one.name, func(object *unstructured.Unstructured) (bool, error) {
		if !seen {
			v.line("%s  wave %d  %s %s", edge.Name, one.wave, one.kind, one.name)
			seen = true
		}
		if one.kind != "Deployment" {
			return true, nil
		}
		available, err := harness.HasCondition("Available", metav1.ConditionTrue, "")(object)
		if available {
			v.line("%s  wave %d  %s %s is available", edge.Name, one.wave, one.kind, one.name)
		}
		return available, err
	})
	return err
}

// pollPart is watchPart for a kind that the application brings: asked for a list of
// it, a server that is just making it says "in a second", and clients wait that
// second. A single object is answered at once.
func pollPart(ctx context.Context, v *voice, edge *install.Edge, one part) error {
	client := edge.Plane.Dynamic().Resource(one.resource).Namespace(one.namespace)
	err := wait.PollUntilContextCancel(ctx, partPoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.Get(ctx, one.name, metav1.GetOptions{})
		return err == nil, nil // whatever the error: until the story's deadline
	})
	if err != nil {
		return fmt.Errorf("waiting for %s %s on %s: %w", one.kind, one.name, edge.Name, err)
	}
	v.line("%s  wave %d  %s %s", edge.Name, one.wave, one.kind, one.name)
	return nil
}
