// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/e2e/harness"
)

// DirectAgent is an agent that runs as a plain process of this machine, from the
// printed manifests but for the Deployment, in a namespace of its own: so that
// several share a plane, and each is killed and started in milliseconds. It has
// the rights of the manifests' ServiceAccount.
type DirectAgent struct {
	Plane *harness.Plane
	// HubNamespace and Cluster say what it is to the hub.
	HubNamespace, Cluster string
	// Namespace of the agent on its cluster.
	Namespace string
	// Kubeconfig that the next start uses.
	Kubeconfig string
	// Env is added to the environment of the next start.
	Env []string
	// Args are added to the arguments of the next start.
	Args []string
	// MetricsPort of all starts.
	MetricsPort int

	path    string
	process *harness.Process
}

// JoinDirect makes a Cluster on the hub, with its join token, and installs the
// agent in a namespace of its own. It starts nothing.
func (h *Hub) JoinDirect(ctx context.Context, plane *harness.Plane, hubNamespace, cluster, namespace string) (*DirectAgent, error) {
	manifests, err := h.Plugin(ctx, "-n", hubNamespace, "join", cluster, "--create")
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", cluster, err)
	}
	return InstallDirect(ctx, plane, h.Programs, manifests, hubNamespace, cluster, namespace)
}

// InstallDirect installs printed manifests in a namespace of its own.
func InstallDirect(ctx context.Context, plane *harness.Plane, programs Programs, manifests, hubNamespace, cluster, namespace string) (*DirectAgent, error) {
	moved, err := moveManifests(manifests, namespace)
	if err != nil {
		return nil, fmt.Errorf("install agent: %w", err)
	}
	if _, err := plane.KubectlInput(ctx, moved, "apply", "-f", "-"); err != nil {
		return nil, fmt.Errorf("install agent: %w", err)
	}
	a := &DirectAgent{Plane: plane, HubNamespace: hubNamespace, Cluster: cluster, Namespace: namespace, path: programs.Agent}
	if a.MetricsPort, err = harness.FreePort(ctx); err != nil {
		return nil, fmt.Errorf("install agent: %w", err)
	}
	a.Kubeconfig, err = plane.UserKubeconfig("system:serviceaccount:"+namespace+":"+AgentName,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		return nil, fmt.Errorf("install agent: %w", err)
	}
	return a, nil
}

// On gives the same agent, by its identity, on another plane, where its namespace
// has to be there already.
func (a *DirectAgent) On(ctx context.Context, plane *harness.Plane) (*DirectAgent, error) {
	b := *a
	b.Plane, b.process = plane, nil
	var err error
	if b.MetricsPort, err = harness.FreePort(ctx); err != nil {
		return nil, fmt.Errorf("move agent: %w", err)
	}
	b.Kubeconfig, err = plane.UserKubeconfig("system:serviceaccount:"+b.Namespace+":"+AgentName,
		"system:serviceaccounts", "system:serviceaccounts:"+b.Namespace)
	return &b, err
}

// Start starts the agent and returns when it is forked.
func (a *DirectAgent) Start(ctx context.Context) error {
	process, err := a.Plane.Run(ctx, harness.Program{
		Name: a.Namespace, Path: a.path, Log: a.Log(),
		Args: append([]string{"--kubeconfig=" + a.Kubeconfig, "--namespace=" + a.Namespace, "--metrics-addr=" + loopback(a.MetricsPort), "--redial-within=" + redialWithin}, a.Args...),
		Env:  append(append(os.Environ(), "POD_NAMESPACE="+a.Namespace, "POD_NAME="+AgentName+"-0"), a.Env...),
	})
	if err != nil {
		return fmt.Errorf("agent %s: %w", a.Namespace, err)
	}
	a.process = process
	return nil
}

// Process is the newest start; nil before the first.
func (a *DirectAgent) Process() *harness.Process { return a.process }

// Log is one file for all starts on a plane.
func (a *DirectAgent) Log() string { return filepath.Join(a.Plane.Dir(), a.Namespace+".log") }

// Stop ends the agent in order.
func (a *DirectAgent) Stop(ctx context.Context) error {
	_, err := a.process.Stop(ctx)
	return err
}

// Kill9 kills the agent and waits for its end.
func (a *DirectAgent) Kill9(ctx context.Context) error { return a.process.Kill9(ctx) }

// WaitReady returns when the agent's own /readyz answers 200.
func (a *DirectAgent) WaitReady(ctx context.Context) error { return waitReady(ctx, a.MetricsPort) }

// moveManifests puts an agent's manifests into another namespace and leaves out
// the Deployment. Names without a namespace get it as a suffix.
func moveManifests(manifests, namespace string) (string, error) {
	var out strings.Builder
	for _, text := range strings.Split("\n"+manifests, "\n---") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			return "", fmt.Errorf("read manifests: %w", err)
		}
		if len(object.Object) == 0 || object.GetKind() == "Deployment" {
			continue
		}
		switch {
		case object.GetKind() == "Namespace":
			object.SetName(namespace)
		case object.GetNamespace() == AgentNamespace:
			object.SetNamespace(namespace)
		case object.GetNamespace() == "":
			object.SetName(object.GetName() + "-" + namespace)
		}
		subjects, found, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			return "", fmt.Errorf("read manifests: %w", err)
		}
		for _, subject := range subjects {
			if m, ok := subject.(map[string]any); ok && m["namespace"] == AgentNamespace {
				m["namespace"] = namespace
			}
		}
		if found {
			object.Object["subjects"] = subjects
		}
		role, _, err := unstructured.NestedString(object.Object, "roleRef", "name")
		if err != nil {
			return "", fmt.Errorf("read manifests: %w", err)
		}
		if object.GetKind() == "ClusterRoleBinding" && strings.HasPrefix(role, AgentName) {
			if err := unstructured.SetNestedField(object.Object, role+"-"+namespace, "roleRef", "name"); err != nil {
				return "", fmt.Errorf("move manifests: %w", err)
			}
		}
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("move manifests: %w", err)
		}
		out.Write(raw)
		out.WriteString("\n")
	}
	return out.String(), nil
}
