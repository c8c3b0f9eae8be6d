// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// errStillThere means that the hub was stopped in vain.
var errStillThere = errors.New("the hub was stopped and still answers")

// greeting is what the application's ConfigMap says in Git.
const greeting = "Good morning"

func (s *stage) breakAndHeal(ctx context.Context, v *voice) error {
	v.step("Somebody edits an object on edge-1")
	edge := s.edges[0]
	if err := breakConfig(ctx, v, edge); err != nil {
		return err
	}
	release, err := harness.WaitFor(ctx, s.hub.Plane.Dynamic(), install.Releases, team, shop+"-"+edge.Name, func(object *unstructured.Unstructured) (bool, error) {
		release, err := harness.As[corev1alpha1.Release](object)
		if err != nil || release.Status.LastOperation == nil {
			return false, err
		}
		last := release.Status.LastOperation
		return last.Type == corev1alpha1.OperationHeal && last.Phase == corev1alpha1.PhaseSucceeded, nil
	})
	if err != nil {
		return err
	}
	healed, err := harness.As[corev1alpha1.Release](release)
	if err != nil {
		return err
	}
	v.line("the hub has it on record: %s", healed.Status.LastOperation.Message)
	return nil
}

// breakConfig edits the ConfigMap and waits until it says again what Git says.
func breakConfig(ctx context.Context, v *voice, edge *install.Edge) error {
	const patch = `{"data":{"greeting":"changed by hand"}}`
	if _, err := edge.Plane.Kubectl(ctx, "-n", shop, "patch", "configmap", web, "--type=merge", "-p", patch); err != nil {
		return err
	}
	broken := time.Now()
	v.line("kubectl --context %s -n %s patch configmap %s -p '%s'", edge.Name, shop, web, patch)
	_, err := harness.WaitFor(ctx, edge.Plane.Dynamic(), configMaps, shop, web, func(object *unstructured.Unstructured) (bool, error) {
		value, _, err := unstructured.NestedString(object.Object, "data", "greeting")
		return value == greeting, err
	})
	if err != nil {
		return err
	}
	v.line("repaired by the agent, %d ms after kubectl returned", time.Since(broken).Milliseconds())
	return nil
}

func (s *stage) hubAway(ctx context.Context, v *voice) error {
	v.step("The hub is stopped, and the agent of edge-1 restarted")
	edge := s.edges[0]
	running := s.hub.Pod.Process()
	if err := s.scaleHub(ctx, 0); err != nil {
		return err
	}
	if _, err := running.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for the hub to end: %w", err)
	}
	v.line("kubectl --context hub -n %s scale deployment %s --replicas=0", install.HubNamespace, install.HubDeployment)
	if _, err := s.hub.Plane.Kubectl(ctx, "-n", team, "get", "releases"); err == nil {
		return errStillThere
	}
	v.line("kubectl get releases fails, as it must: nobody serves them now")
	if err := restartAgent(ctx, edge); err != nil {
		return err
	}
	if err := edge.WaitReady(ctx); err != nil {
		return err
	}
	v.line("the agent is back, with its orders and renders from Secrets of its own cluster")
	return s.deleteAndHeal(ctx, v, edge)
}

// restartAgent deletes the agent's pod and returns when the next one runs.
func restartAgent(ctx context.Context, edge *install.Edge) error {
	old := edge.Pod.Process()
	if _, err := edge.Plane.Kubectl(ctx, "-n", install.AgentNamespace, "delete", "pod", edge.Pod.Name().Name, "--wait=false"); err != nil {
		return err
	}
	if _, err := old.Wait(ctx); err != nil {
		return fmt.Errorf("waiting for the agent to end: %w", err)
	}
	return edge.Pod.WaitRunning(ctx)
}

// deleteAndHeal deletes the Deployment and waits for another one that runs.
func (s *stage) deleteAndHeal(ctx context.Context, v *voice, edge *install.Edge) error {
	before, err := edge.Plane.Dynamic().Resource(deployments).Namespace(shop).Get(ctx, web, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Deployment: %w", err)
	}
	if _, err := edge.Plane.Kubectl(ctx, "-n", shop, "delete", "deployment", web, "--wait=false"); err != nil {
		return err
	}
	broken := time.Now()
	v.line("kubectl --context %s -n %s delete deployment %s", edge.Name, shop, web)
	another := func(object *unstructured.Unstructured) (bool, error) { return object.GetUID() != before.GetUID(), nil }
	if _, err := harness.WaitFor(ctx, edge.Plane.Dynamic(), deployments, shop, web, another); err != nil {
		return err
	}
	v.line("made again by the agent, %d ms after kubectl returned, without the hub", time.Since(broken).Milliseconds())
	return nil
}

func (s *stage) scaleHub(ctx context.Context, replicas int) error {
	_, err := s.hub.Plane.Kubectl(ctx, "-n", install.HubNamespace, "scale", "deployment", install.HubDeployment, fmt.Sprintf("--replicas=%d", replicas))
	return err
}

func (s *stage) hubBack(ctx context.Context, v *voice) error {
	v.step("The hub comes back")
	if err := s.scaleHub(ctx, 1); err != nil {
		return err
	}
	if err := s.hub.WaitReady(ctx); err != nil {
		return err
	}
	v.line("kubectl --context hub -n %s scale deployment %s --replicas=1", install.HubNamespace, install.HubDeployment)
	v.line("the hub is ready again")
	if err := s.hub.WaitServed(ctx); err != nil {
		return err
	}
	v.line("the host serves its kinds again")
	for _, edge := range s.edges {
		if err := s.hub.WaitCluster(ctx, team, edge.Name); err != nil {
			return err
		}
		ready := harness.HasCondition(corev1alpha1.ConditionReady, metav1.ConditionTrue, "")
		if _, err := harness.WaitFor(ctx, s.hub.Plane.Dynamic(), install.Releases, team, shop+"-"+edge.Name, ready); err != nil {
			return err
		}
	}
	if err := s.preview(ctx, v); err != nil {
		return err
	}
	table, err := s.hub.Plane.Kubectl(ctx, "-n", team, "get", "clusters,releases")
	if err != nil {
		return err
	}
	v.plain("\n" + strings.TrimSpace(table))
	return nil
}

// farewell says how to go on.
func (s *stage) farewell(v *voice) error {
	work := s.dir + "/git/" + shop + ".work"
	fmt.Fprintf(v.out, `
All of it goes on running. To look around:

  export KUBECONFIG=%[1]s/kubeconfig PATH=%[2]s:$PATH
  kubectl --context hub -n %[3]s get clusters,releases -o wide
  kubectl --context hub -n %[3]s describe release %[4]s-edge-1
  kubectl convoy --context hub -n %[3]s preview %[4]s-edge-1
  kubectl --context edge-2 -n %[4]s delete service %[5]s       # and look again

A new version: commit to %[6]s, git push origin main, then

  kubectl convoy --context hub -n %[3]s sync %[4]s-edge-1 --wait

make demo-down ends it.
`, s.dir, programPath(s.dir), team, shop, web, work)
	return nil
}
