// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/harness"
)

// stateLabel is on the Secrets that an agent keeps its state in.
const stateLabel = "convoy.kumodo.io/state"

// apiServerRestarted stops and starts the API servers, several times if it is said.
func (p *Player) apiServerRestarted(ctx context.Context, m []string) (string, error) {
	times := max(1, slices.Index(counts, strings.ToLower(m[1])))
	if m[2] != "" {
		times = 2 // twice
	}
	for range times {
		if _, err := p.apiServerStopped(ctx, nil); err != nil {
			return "", err
		}
		if _, err := p.apiServerStarted(ctx, nil); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the API server of every cluster of the case was stopped and started, times: %d", times), nil
}

// compacted has etcd forget what was, and the API server what it has cached: a watch that
// goes on from before gets 410 Gone.
func (p *Player) compacted(ctx context.Context, _ []string) (string, error) {
	for _, t := range p.targets {
		if t.apiStopped {
			continue
		}
		if err := compact(ctx, t.cube.plane); err != nil {
			return "", err
		}
	}
	did, err := p.apiServerRestarted(ctx, []string{"", "", ""})
	return "etcd of every cluster of the case was compacted to its newest revision; " + did, err
}

func compact(ctx context.Context, plane *harness.Plane) error {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + plane.EtcdSocket()}, Context: ctx})
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	defer func() { _ = client.Close() }() // it was read from, or its error was told
	now, err := client.Get(ctx, "none")
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	if _, err := client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	return nil
}

// clusterSaved takes a snapshot of the first cluster.
func (p *Player) clusterSaved(ctx context.Context, _ []string) (string, error) {
	return "etcd of the cluster was stopped, its data folder copied, all started again", p.save(ctx, "")
}

// save keeps what etcd of the first cluster has, under a name.
func (p *Player) save(ctx context.Context, name string) error {
	if p.snapshots == "" {
		dir, err := os.MkdirTemp("", "convoy-snapshots-")
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		p.snapshots = dir
	}
	to := filepath.Join(p.snapshots, "of-"+name)
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return p.withoutEtcd(ctx, func(data string) error { return copyTree(ctx, data, to) })
}

// withoutEtcd does something with the data of the first cluster while nobody uses it.
func (p *Player) withoutEtcd(ctx context.Context, do func(data string) error) error {
	t := p.targets[0]
	plane := t.cube.plane
	if !t.apiStopped {
		if err := plane.StopAPIServer(ctx); err != nil {
			return err //nolint:wrapcheck // names the component
		}
		t.apiStopped = true
	}
	if err := plane.StopEtcd(ctx); err != nil {
		return err //nolint:wrapcheck // names the component
	}
	failed := do(filepath.Join(plane.Dir(), "etcd"))
	if err := plane.StartEtcd(ctx); err != nil {
		return err //nolint:wrapcheck // names the component
	}
	if err := plane.StartAPIServer(ctx); err != nil {
		return err //nolint:wrapcheck // names the component
	}
	t.apiStopped = false
	return failed
}

// clusterRestored puts the first cluster back to its snapshot. Of a case that tells of no
// snapshot there is one after each content: the event may name its step, else it is the
// last but one.
func (p *Player) clusterRestored(ctx context.Context, m []string) (string, error) {
	if p.snapshots == "" {
		return "", nil
	}
	name := ""
	if len(p.saved) > 0 {
		name = p.saved[max(0, len(p.saved)-2)]
		for _, word := range strings.FieldsFunc(m[0], func(r rune) bool { return strings.ContainsRune(" ,;.()'", r) }) {
			if slices.Contains(p.saved, word) {
				name = word
			}
		}
	}
	from := filepath.Join(p.snapshots, "of-"+name)
	err := p.withoutEtcd(ctx, func(data string) error {
		if err := os.RemoveAll(data); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		return copyTree(ctx, from, data)
	})
	if err != nil {
		return "", err
	}
	of := ""
	if name != "" {
		of = ", as it was after step " + name
	}
	return "etcd of the cluster has the data of the snapshot again" + of + "; its API server was started anew", p.stillAll(ctx)
}

// restores says whether a case has its cluster restored from a snapshot of which no event
// tells when it was taken.
func (c *Case) restores() bool {
	taken, restored := false, false
	for _, s := range c.Steps {
		taken = taken || s.Do == doEvent && snapshotTaken.MatchString(s.What)
		restored = restored || s.Do == doEvent && snapshotRestored.MatchString(s.What)
	}
	return restored && !taken
}

// agentStateLost deletes the Secrets that agents keep their state in, but for who they are.
func (p *Player) agentStateLost(ctx context.Context, _ []string) (string, error) {
	var names []string
	for _, t := range p.targets {
		client := t.cube.plane.Client().CoreV1().Secrets(t.agent.Namespace)
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: stateLabel + "," + stateLabel + "!=identity"})
		if err != nil {
			return "", fmt.Errorf("state of the agent: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				return "", fmt.Errorf("state of the agent: %w", err)
			}
			names = append(names, name)
		}
	}
	return fmt.Sprintf("%d Secrets of the agent's state deleted, all but its identity: %s", len(names), strings.Join(names, ", ")), p.stillAll(ctx)
}

// agentTwice starts one more agent with the same identity beside each.
func (p *Player) agentTwice(ctx context.Context, _ []string) (string, error) {
	for _, t := range p.targets {
		second, err := t.agent.On(ctx, t.cube.plane)
		if err != nil {
			return "", err
		}
		second.Env = append(slices.Clone(second.Env), "POD_NAME=convoy-agent-1")
		if err := second.Start(ctx); err != nil {
			return "", err
		}
		p.others = append(p.others, second)
	}
	if err := p.pass(ctx, 2*quiet); err != nil {
		return "", err
	}
	return "a second agent with the same identity was started beside each, and goes on until the case ends", p.stillAll(ctx)
}

// agentRevoked takes the identity of agents away.
func (p *Player) agentRevoked(ctx context.Context, _ []string) (string, error) {
	if !p.hubRuns() {
		return "", errHubStopped
	}
	for _, t := range p.targets {
		if _, err := p.world.Hub.Plugin(ctx, "-n", t.namespace, "revoke", t.cluster); err != nil {
			return "", err
		}
	}
	return "the identity of every agent of the case was revoked at the hub", p.stillAll(ctx)
}
