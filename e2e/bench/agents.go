// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
	"kumodo.io/convoy/pkg/tunnel"
)

const (
	fleetSize      = 1000
	fleetNamespace = "fleet"
	// rest is how long memory is left alone before it is read.
	rest = 30 * time.Second
)

// idleAgents: what the hub's process grows by when simulated agents connect
// and then have nothing to do.
func idleAgents(ctx context.Context, b *bed) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	root, err := harness.RepoRoot()
	if err != nil {
		return err
	}
	program := filepath.Join(root, "bin", "simagent")
	if err := harness.BuildProgram(ctx, "./e2e/simagent", program); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "convoy-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder of a benchmark
	tokens, err := fleetTokens(ctx, b)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "tokens")
	if err := os.WriteFile(file, []byte(strings.Join(tokens, "\n")), 0o600); err != nil {
		return err
	}
	if err := pause(ctx, rest); err != nil {
		return err
	}
	pid := b.hub.Pod.PID()
	before, err := memory(pid, "RssAnon")
	if err != nil {
		return err
	}
	log := filepath.Join(dir, "simagent.log")
	process, err := b.hub.Plane.Run(ctx, harness.Program{
		Name: "simagent", Path: program, Log: log,
		Args: []string{"--tokens", file, "--spread"},
	})
	if err != nil {
		return err
	}
	start := time.Now()
	for {
		connected, err := lastConnected(log)
		if err != nil {
			return err
		}
		if connected == fleetSize {
			break
		}
		if !process.Running() {
			return fmt.Errorf("simagent ended")
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d agents are connected: %w", connected, fleetSize, err)
		}
	}
	joined := time.Since(start)
	if err := pause(ctx, 2*rest); err != nil {
		return err
	}
	after, err := memory(pid, "RssAnon")
	if err != nil {
		return err
	}
	b.out.add(fmt.Sprintf("hub memory per idle agent (private), %d agents, two TLS layers, joined in %.0f s", fleetSize, joined.Seconds()),
		"<= 40 KiB", "%.1f KiB", float64(after-before)/fleetSize)
	_, err = process.Stop(ctx)
	return err
}

// fleetTokens makes Clusters and a token for each.
func fleetTokens(ctx context.Context, b *bed) ([]string, error) {
	if _, err := b.hub.Plane.Kubectl(ctx, "create", "namespace", fleetNamespace); err != nil {
		return nil, err
	}
	clusters := b.hub.Plane.Dynamic().Resource(install.Clusters).Namespace(fleetNamespace)
	tokens := make([]string, fleetSize)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range tokens {
		group.Go(func() error {
			name := fmt.Sprintf("sim-%04d", i)
			cluster := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": corev1alpha1.SchemeGroupVersion.String(), "kind": "Cluster",
				"metadata": map[string]any{"name": name},
			}}
			if _, err := clusters.Create(ctx, cluster, metav1.CreateOptions{}); err != nil {
				return err
			}
			seed, err := tunnel.NewSeed()
			if err != nil {
				return err
			}
			public, ok := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
			if !ok {
				return fmt.Errorf("not an Ed25519 key")
			}
			u, err := clusters.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": corev1alpha1.SchemeGroupVersion.String(), "kind": "JoinRequest",
				"metadata": map[string]any{"name": name},
				"spec":     map[string]any{"publicKey": base64.StdEncoding.EncodeToString(public)},
			}}, metav1.CreateOptions{}, "join")
			if err != nil {
				return err
			}
			answer, err := harness.As[corev1alpha1.JoinRequest](u)
			if err != nil {
				return err
			}
			tokens[i], err = tunnel.EncodeToken(tunnel.Token{
				Gateway: answer.Status.GatewayURL, Hub: answer.Status.HubID, ClusterUID: answer.Status.ClusterUID,
				CAPin: answer.Status.CAPin, Seed: seed,
			})
			return err
		})
	}
	return tokens, group.Wait()
}

// lastConnected reads simagent's newest line.
func lastConnected(log string) (int, error) {
	raw, err := os.ReadFile(log)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	var line struct {
		Connected int `json:"connected"`
	}
	// The newest line may be half written; then the next look finds it whole.
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		return 0, nil
	}
	return line.Connected, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
