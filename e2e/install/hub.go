// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/e2e/harness"
)

// Names of the manifests.
const (
	HubNamespace   = "convoy-system"
	HubDeployment  = "convoy-hub"
	HubImage       = "convoy-hub:dev"
	AgentNamespace = "convoy-agent"
	AgentName      = "convoy-agent"
	AgentImage     = "convoy-agent:dev"
)

// Resources of convoy and of the host that suites watch.
var (
	Clusters        = schema.GroupVersionResource{Group: "core.convoy.kumodo.io", Version: "v1alpha1", Resource: "clusters"}
	Releases        = schema.GroupVersionResource{Group: "core.convoy.kumodo.io", Version: "v1alpha1", Resource: "releases"}
	Inventories     = schema.GroupVersionResource{Group: "core.convoy.kumodo.io", Version: "v1alpha1", Resource: "releaseinventories"}
	GitRepositories = schema.GroupVersionResource{Group: "source.convoy.kumodo.io", Version: "v1alpha1", Resource: "gitrepositories"}
	HealthRuleSets  = schema.GroupVersionResource{Group: "extensions.convoy.kumodo.io", Version: "v1alpha1", Resource: "healthrulesets"}
	GlobalRuleSets  = schema.GroupVersionResource{Group: "extensions.convoy.kumodo.io", Version: "v1alpha1", Resource: "globalhealthrulesets"}
	apiServices     = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

// Programs are the binaries that stand for the images.
type Programs struct {
	Hub, Agent, Plugin string
}

// Built returns the programs of bin/, which `make build` makes.
func Built() (Programs, error) {
	root, err := harness.RepoRoot()
	if err != nil {
		return Programs{}, fmt.Errorf("programs: %w", err)
	}
	return programsIn(filepath.Join(root, "bin")), nil
}

func programsIn(bin string) Programs {
	return Programs{
		Hub:    filepath.Join(bin, "convoy-hub"),
		Agent:  filepath.Join(bin, "convoy-agent"),
		Plugin: filepath.Join(bin, "kubectl-convoy"),
	}
}

// Build builds the programs into bin/e2e/, so that a suite run alone tests what is in
// the tree. They name no version: those of bin/, which do, stay what `make build` made.
func Build(ctx context.Context) (Programs, error) {
	root, err := harness.RepoRoot()
	if err != nil {
		return Programs{}, fmt.Errorf("programs: %w", err)
	}
	p := programsIn(filepath.Join(root, "bin", "e2e"))
	for pkg, out := range map[string]string{"./hub": p.Hub, "./agent": p.Agent, "./kubectl-convoy": p.Plugin} {
		if err := harness.BuildProgram(ctx, pkg, out); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Hub is convoy installed on a control plane.
type Hub struct {
	Plane    *harness.Plane
	Pod      *harness.Pod
	Programs Programs
	// Ports on loopback.
	APIPort, GatewayPort, MetricsPort, ObserverPort int
	// Args that the hub got beside the manifest's.
	Args map[string]string
	// Network that it runs in, see harness.PodOptions.
	Network string
	// Manifests are applied in place of manifests/hub, if there are any.
	Manifests string
}

// StartHub applies manifests/hub to the plane, runs its Deployment, with what
// mods change of the Hub before, and returns when the host serves convoy's kinds.
func StartHub(ctx context.Context, plane *harness.Plane, programs Programs, mods ...func(*Hub)) (*Hub, error) {
	h := &Hub{Plane: plane, Programs: programs}
	for _, port := range []*int{&h.APIPort, &h.GatewayPort, &h.MetricsPort, &h.ObserverPort} {
		free, err := harness.FreePort(ctx)
		if err != nil {
			return nil, fmt.Errorf("install hub: %w", err)
		}
		*port = free
	}
	h.Args = map[string]string{
		"--bind-address":          "127.0.0.1",
		"--secure-port":           strconv.Itoa(h.APIPort),
		"--gateway-addr":          loopback(h.GatewayPort),
		"--gateway-url":           "wss://" + loopback(h.GatewayPort),
		"--metrics-addr":          loopback(h.MetricsPort),
		"--serve-addr":            loopback(h.ObserverPort),
		"--observer-url":          "http://" + loopback(h.ObserverPort),
		"--gateway-drain-timeout": "0s",
		"--source-allow-cidr":     "127.0.0.0/8",
		"--cluster-allow-cidr":    "127.0.0.0/8",
	}
	for _, mod := range mods {
		mod(h)
	}
	if err := h.Apply(ctx); err != nil {
		return nil, err
	}
	if err := h.Run(ctx); err != nil {
		return nil, err
	}
	return h, h.WaitServed(ctx)
}

// Apply applies the manifests and leads the Service to the hub's port.
func (h *Hub) Apply(ctx context.Context) error {
	root, err := harness.RepoRoot()
	if err != nil {
		return fmt.Errorf("install hub: %w", err)
	}
	if h.Manifests != "" {
		_, err = h.Plane.KubectlInput(ctx, h.Manifests, "apply", "-f", "-")
	} else {
		_, err = h.Plane.Kubectl(ctx, "apply", "-f", filepath.Join(root, "manifests", "hub"))
	}
	if err != nil {
		return fmt.Errorf("install hub: %w", err)
	}
	if err := h.Plane.RouteService(ctx, HubNamespace, "convoy-apiserver", h.APIPort); err != nil {
		return fmt.Errorf("install hub: %w", err)
	}
	return nil
}

// Run starts the hub's container; with it already running, that is an error of
// the caller.
func (h *Hub) Run(ctx context.Context) error {
	pod, err := h.Plane.RunPod(ctx, harness.PodOptions{
		Namespace: HubNamespace, Deployment: HubDeployment, Network: h.Network,
		Images:     map[string]string{HubImage: h.Programs.Hub},
		Files:      map[string]string{"/etc/ssl/certs/ca-certificates.crt": "/etc/ssl/certs/ca-certificates.crt"},
		Deviations: harness.Deviations{Args: h.Args},
	})
	if err != nil {
		return fmt.Errorf("install hub: %w", err)
	}
	h.Pod = pod
	return nil
}

// WaitServed returns when the host's aggregator and discovery show convoy.
func (h *Hub) WaitServed(ctx context.Context) error {
	for _, group := range []string{Clusters.Group, GitRepositories.Group, HealthRuleSets.Group} {
		name := Clusters.Version + "." + group
		available := func(u *unstructured.Unstructured) (bool, error) {
			return harness.HasCondition("Available", "True", "")(u)
		}
		if _, err := harness.WaitFor(ctx, h.Plane.Dynamic(), apiServices, "", name, available); err != nil {
			return fmt.Errorf("install hub: APIService %s: %w", name, err)
		}
	}
	return h.waitDiscovery(ctx)
}

// waitDiscovery waits until discovery, which the host refreshes on its own
// time, shows every kind.
func (h *Hub) waitDiscovery(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		missing := ""
		for _, gvr := range []schema.GroupVersionResource{Clusters, Releases, Inventories, GitRepositories, HealthRuleSets, GlobalRuleSets} {
			list, err := h.Plane.Client().Discovery().ServerResourcesForGroupVersion(gvr.GroupVersion().String())
			found := false
			if err == nil {
				for _, r := range list.APIResources {
					found = found || r.Name == gvr.Resource
				}
			}
			if !found {
				missing = gvr.String()
			}
		}
		if missing == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("install hub: discovery does not show %s: %w", missing, ctx.Err())
		case <-tick.C:
		}
	}
}

// WaitReady returns when /readyz of the hub's own listener answers 200.
func (h *Hub) WaitReady(ctx context.Context) error {
	return waitReady(ctx, h.MetricsPort)
}

// MetricsURL of the hub.
func (h *Hub) MetricsURL() string { return "http://" + loopback(h.MetricsPort) + "/metrics" }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func waitReady(ctx context.Context, port int) error {
	client := &http.Client{Timeout: 5 * time.Second}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(port)+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err == nil {
			code := response.StatusCode
			if err := response.Body.Close(); err != nil {
				return err
			}
			if code == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d is not ready: %w", port, ctx.Err())
		case <-tick.C:
		}
	}
}
