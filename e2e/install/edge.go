// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"

	"kumodo.io/convoy/e2e/harness"
)

// redialWithin of agents of the suites: nothing is gained by waiting longer.
const redialWithin = "2s"

// Edge is a cluster with an agent that joined the hub.
type Edge struct {
	Plane *harness.Plane
	Pod   *harness.Pod
	// Namespace and Name of the Cluster on the hub.
	Namespace, Name string
	MetricsPort     int
	// Network that the agent runs in, see harness.PodOptions, and arguments that it
	// gets beside the manifest's.
	Network string
	Args    map[string]string
	agent   string
}

// Join makes a Cluster on the hub, prints the agent's manifests with `kubectl
// convoy join` and flags, applies them on the edge, runs the agent and waits until
// the hub says that the Cluster is Ready.
func (h *Hub) Join(ctx context.Context, plane *harness.Plane, namespace, name string, flags ...string) (*Edge, error) {
	manifests, err := h.Plugin(ctx, append([]string{"-n", namespace, "join", name, "--create"}, flags...)...)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", name, err)
	}
	e, err := Agent(ctx, plane, h.Programs, manifests)
	if err != nil {
		return nil, fmt.Errorf("join %s: %w", name, err)
	}
	e.Namespace, e.Name = namespace, name
	return e, h.WaitCluster(ctx, namespace, name)
}

// Agent applies the agent's manifests and runs its Deployment, with what mods
// change of the Edge before.
func Agent(ctx context.Context, plane *harness.Plane, programs Programs, manifests string, mods ...func(*Edge)) (*Edge, error) {
	if _, err := plane.KubectlInput(ctx, manifests, "apply", "-f", "-"); err != nil {
		return nil, fmt.Errorf("install agent: %w", err)
	}
	port, err := harness.FreePort(ctx)
	if err != nil {
		return nil, fmt.Errorf("install agent: %w", err)
	}
	e := &Edge{Plane: plane, MetricsPort: port, agent: programs.Agent}
	for _, mod := range mods {
		mod(e)
	}
	return e, e.Run(ctx)
}

// Run starts the agent's container.
func (e *Edge) Run(ctx context.Context) error {
	args := map[string]string{"--metrics-addr": loopback(e.MetricsPort), "--redial-within": redialWithin}
	maps.Copy(args, e.Args)
	pod, err := e.Plane.RunPod(ctx, harness.PodOptions{
		Namespace: AgentNamespace, Deployment: AgentName, Network: e.Network,
		Images:     map[string]string{AgentImage: e.agent},
		Files:      map[string]string{"/etc/ssl/certs/ca-certificates.crt": "/etc/ssl/certs/ca-certificates.crt"},
		Deviations: harness.Deviations{Args: args},
	})
	if err != nil {
		return fmt.Errorf("agent of %s: %w", e.Name, err)
	}
	e.Pod = pod
	return nil
}

// WaitReady returns when the agent's own /readyz answers 200.
func (e *Edge) WaitReady(ctx context.Context) error { return waitReady(ctx, e.MetricsPort) }

// MetricsURL of the agent.
func (e *Edge) MetricsURL() string { return "http://" + loopback(e.MetricsPort) + "/metrics" }

// WaitCluster returns when the Cluster is Ready.
func (h *Hub) WaitCluster(ctx context.Context, namespace, name string) error {
	_, err := harness.WaitFor(ctx, h.Plane.Dynamic(), Clusters, namespace, name, harness.HasCondition("Ready", "True", ""))
	if err != nil {
		return fmt.Errorf("cluster %s is not ready: %w", name, err)
	}
	return nil
}

// Plugin runs `kubectl convoy` against the hub and returns what it printed.
func (h *Hub) Plugin(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, h.Programs.Plugin, append([]string{"--kubeconfig", h.Plane.Kubeconfig()}, args...)...)
	command.Env = h.Plane.Env(filepath.Dir(h.Programs.Plugin))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl convoy %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}
