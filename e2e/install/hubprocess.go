// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"kumodo.io/convoy/e2e/harness"
)

// startPatience bounds the wait for a program's first answer.
const startPatience = 5 * time.Minute

// HubProcess is a hub that runs as a plain process of this machine beside its host,
// so that it is killed and started in milliseconds, its store can be put back in
// time, and it can have an etcd of its own. It has the rights of the manifests.
type HubProcess struct {
	*Hub
	// Dir is --data-dir.
	Dir string
	// Etcd, if set, is --etcd-servers; otherwise the hub embeds its etcd.
	Etcd string
	// Flags are added last, so that they win.
	Flags []string

	kubeconfig string
	starts     int
	process    *harness.Process
}

// NewHubProcess applies manifests/hub to the plane and starts nothing.
func NewHubProcess(ctx context.Context, plane *harness.Plane, programs Programs, dir string) (*HubProcess, error) {
	h := &HubProcess{Hub: &Hub{Plane: plane, Programs: programs}, Dir: dir}
	for _, port := range []*int{&h.APIPort, &h.GatewayPort, &h.MetricsPort, &h.ObserverPort} {
		free, err := harness.FreePort(ctx)
		if err != nil {
			return nil, fmt.Errorf("install hub: %w", err)
		}
		*port = free
	}
	if err := h.Apply(ctx); err != nil {
		return nil, err
	}
	var err error
	h.kubeconfig, err = plane.UserKubeconfig("system:serviceaccount:"+HubNamespace+":"+HubDeployment,
		"system:serviceaccounts", "system:serviceaccounts:"+HubNamespace)
	if err != nil {
		return nil, fmt.Errorf("install hub: %w", err)
	}
	return h, nil
}

// Start starts the hub and returns when its forked; WaitReady and WaitServed wait
// for more.
func (h *HubProcess) Start(ctx context.Context) error {
	h.starts++
	args := []string{
		"--kubeconfig=" + h.kubeconfig, "--data-dir=" + h.Dir, "--agent-image=" + AgentImage, "--log-format=json",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(h.APIPort),
		"--gateway-addr=" + loopback(h.GatewayPort), "--gateway-url=wss://" + loopback(h.GatewayPort),
		"--gateway-drain-timeout=0s",
		"--serve-addr=" + loopback(h.ObserverPort), "--observer-url=http://" + loopback(h.ObserverPort), "--metrics-addr=" + loopback(h.MetricsPort), "--source-allow-cidr=127.0.0.0/8",
	}
	if h.Etcd == "" {
		args = append(args, "--embedded-etcd")
	} else {
		args = append(args, "--etcd-servers="+h.Etcd)
	}
	process, err := h.Plane.Run(ctx, harness.Program{
		Name: "convoy-hub", Path: h.Programs.Hub, Args: append(args, h.Flags...), Log: h.Log(),
	})
	if err != nil {
		return fmt.Errorf("hub: %w", err)
	}
	h.process = process
	return nil
}

// Up starts the hub and returns when the host serves convoy's kinds.
func (h *HubProcess) Up(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, errors.New("the hub is not up"))
	defer cancel()
	if err := h.Start(ctx); err != nil {
		return err
	}
	if err := h.WaitReady(ctx); err != nil {
		return fmt.Errorf("%w: %s", err, Tail(h.Log()))
	}
	return h.WaitServed(ctx)
}

// Process is the newest start.
func (h *HubProcess) Process() *harness.Process { return h.process }

// Log is one file for all starts.
func (h *HubProcess) Log() string { return filepath.Join(h.Plane.Dir(), "convoy-hub.log") }

// Stop ends the hub in order.
func (h *HubProcess) Stop(ctx context.Context) error {
	_, err := h.process.Stop(ctx)
	return err
}

// Kill9 kills the hub and waits for its end.
func (h *HubProcess) Kill9(ctx context.Context) error { return h.process.Kill9(ctx) }

// maxTail of a log that goes into an error.
const maxTail = 6000

// Tail gives the end of a log, or why it cannot be read.
func Tail(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-maxTail):])
}
