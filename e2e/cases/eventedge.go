// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// resetPatience: the hub takes another cluster for one that was made anew only when
// the old one has been silent for a while.
const resetPatience = 4 * time.Minute

var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// clustersRegister makes the clusters that an event names, in place of the default one.
func (p *Player) clustersRegister(ctx context.Context, m []string) (string, error) {
	var names []string
	for _, name := range regexp.MustCompile(`,| and `).Split(m[1], -1) {
		name = strings.TrimSpace(name)
		if !clusterName.MatchString(name) {
			return "", nil
		}
		names = append(names, name)
	}
	for _, name := range names {
		if name == p.targets[0].cluster {
			continue
		}
		plane, err := p.world.NewEdge(ctx, name)
		if err != nil {
			return "", err
		}
		t, err := p.join(ctx, plane, p.c.Namespace()+"-"+name, name)
		if t != nil {
			p.targets = append(p.targets, t)
		}
		if err != nil {
			return "", err
		}
		if err := p.namespaceOn(ctx, t); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("clusters %s are there, each in a namespace of its own on the hub; Releases are made for each", strings.Join(names, ", ")), nil
}

// clusterRemade puts a new, empty cluster in the place of the first one: its agent gets
// the old one's Secrets.
func (p *Player) clusterRemade(ctx context.Context, _ []string) (string, error) {
	t := p.targets[0]
	plane, err := p.world.NewEdge(ctx, t.cluster+"-remade")
	if err != nil {
		return "", err
	}
	agent, err := CopyAgent(ctx, t.agent, plane)
	if err != nil {
		return "", err
	}
	if err := t.agent.Kill9(ctx); err != nil {
		return "", err
	}
	p.stopped = append(p.stopped, t.cube.plane)
	for _, component := range []harness.Component{harness.Kwok, harness.Scheduler, harness.ControllerManager, harness.APIServer} {
		if err := t.cube.plane.StopComponent(ctx, component); err != nil {
			return "", err
		}
	}
	q, err := newCube(plane)
	if err != nil {
		return "", err
	}
	t.former, t.cube, t.agent = append(t.former, t.cube), q, agent
	if err := p.namespaceOn(ctx, t); err != nil {
		return "", err
	}
	if err := agent.Start(ctx); err != nil {
		return "", err
	}
	uid, err := kubeSystem(ctx, plane)
	if err != nil {
		return "", err
	}
	began := time.Now()
	err = p.untilCluster(ctx, t, resetPatience, uid)
	if err != nil && ctx.Err() == nil {
		p.say("# the hub does not take the new cluster: %v\n", err)
	}
	return fmt.Sprintf("the cluster was stopped; a new one with the old agent's Secrets was started; the hub had it after %s", time.Since(began).Round(time.Second)), p.stillAll(ctx)
}

// CopyAgent installs the agent of one cluster, with its identity, on another.
func CopyAgent(ctx context.Context, agent *install.DirectAgent, to *harness.Plane) (*install.DirectAgent, error) {
	secrets, err := agent.Plane.Client().CoreV1().Secrets(agent.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("copy agent: %w", err)
	}
	bindings, err := agent.Plane.Client().RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("copy agent: %w", err)
	}
	if err := ensureNamespace(ctx, to, agent.Namespace); err != nil {
		return nil, err
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if len(b.Subjects) != 1 || b.Subjects[0].Namespace != agent.Namespace {
			continue
		}
		b.ObjectMeta = metav1.ObjectMeta{Name: b.Name, Labels: b.Labels}
		if _, err := to.Client().RbacV1().ClusterRoleBindings().Create(ctx, b, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("copy agent: %w", err)
		}
	}
	for i := range secrets.Items {
		s := &secrets.Items[i]
		// What the agent is, not what it holds: the new cluster is empty.
		if state := s.Labels["convoy.kumodo.io/state"]; state != "" && state != "identity" {
			continue
		}
		s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: s.Labels, Annotations: s.Annotations}
		if _, err := to.Client().CoreV1().Secrets(agent.Namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("copy agent: %w", err)
		}
	}
	return agent.On(ctx, to)
}

// kubeSystem is what tells clusters apart.
func kubeSystem(ctx context.Context, plane *harness.Plane) (string, error) {
	ns, err := plane.Client().CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("identity of %s: %w", plane.Name(), err)
	}
	return string(ns.UID), nil
}

// oldClusterBack starts the cluster that was replaced, with its agent, as a snapshot of
// it would come back.
func (p *Player) oldClusterBack(ctx context.Context, _ []string) (string, error) {
	t := p.targets[0]
	if len(t.former) == 0 {
		return "", nil
	}
	old := t.former[0].plane
	if err := p.startPlane(ctx, old); err != nil {
		return "", err
	}
	agent, err := t.agent.On(ctx, old)
	if err != nil {
		return "", err
	}
	if err := agent.Start(ctx); err != nil {
		return "", err
	}
	p.others = append(p.others, agent)
	return "the replaced cluster and its agent were started again, as they were", p.pass(ctx, 2*quiet)
}

// startPlane starts a cluster that the case has stopped.
func (p *Player) startPlane(ctx context.Context, plane *harness.Plane) error {
	for _, component := range []harness.Component{harness.APIServer, harness.ControllerManager, harness.Scheduler, harness.Kwok} {
		if err := plane.StartComponent(ctx, component); err != nil {
			return err //nolint:wrapcheck // names the component
		}
	}
	p.stopped = slices.DeleteFunc(p.stopped, func(other *harness.Plane) bool { return other == plane })
	return nil
}

func (p *Player) agentStopped(ctx context.Context, _ []string) (string, error) {
	for _, t := range p.targets {
		if t.agentAway() {
			continue
		}
		if err := t.agent.Stop(ctx); err != nil {
			return "", err
		}
	}
	return "the agents of all clusters of the case were stopped", nil
}

func (p *Player) agentStarted(ctx context.Context, _ []string) (string, error) {
	for _, t := range p.targets {
		if !t.agentAway() {
			continue
		}
		if err := t.agent.Start(ctx); err != nil {
			return "", err
		}
		if !p.hubRuns() || t.deaf() != "" {
			continue // nobody can tell that it is there
		}
		if err := p.untilCluster(ctx, t, patience, ""); err != nil {
			if ctx.Err() != nil {
				return "", err
			}
			p.say("# Cluster %s is not Ready: %v\n", t.cluster, err)
		}
	}
	return "the agents of all clusters of the case were started", p.stillAll(ctx)
}

func (p *Player) agentKilled(ctx context.Context, m []string) (string, error) {
	for _, t := range p.targets {
		if t.agentAway() {
			continue
		}
		if err := t.agent.Kill9(ctx); err != nil {
			return "", err
		}
	}
	did, err := p.agentStarted(ctx, m)
	return "killed (signal 9): " + did, err
}

// untilCluster waits until the hub has a session of it, with the identity if one is
// given.
func (p *Player) untilCluster(ctx context.Context, t *target, atMost time.Duration, uid string) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	_, err := harness.WaitFor(ctx, p.world.Hub.Plane.Dynamic(), install.Clusters, t.namespace, t.cluster, clusterIs(uid))
	return err //nolint:wrapcheck // says what it waited for
}

// untilSilent waits, for a Cluster whose agent was stopped or cut off, until the hub says so: it
// takes an agent for connected for 90 s after its session has ended.
func (p *Player) untilSilent(ctx context.Context, t *target) error {
	what := t.unheard()
	if what == "" || !p.hubRuns() {
		return nil
	}
	began := time.Now()
	ready := clusterIs("")
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := harness.WaitFor(wait, p.world.Hub.Plane.Dynamic(), install.Clusters, t.namespace, t.cluster, func(u *unstructured.Unstructured) (bool, error) {
		is, err := ready(u)
		return !is, err
	})
	switch {
	case ctx.Err() != nil:
		return err //nolint:wrapcheck // says what it waited for
	case err != nil:
		p.say("# %s: %s, and the hub does not say so after %s: %v\n", t.cluster, what, patience, err)
	default:
		p.say("# %s: %s, and the hub says so (waited %s)\n", t.cluster, what, time.Since(began).Round(time.Second))
	}
	return nil
}

func (p *Player) apiServerStopped(ctx context.Context, _ []string) (string, error) {
	for _, t := range p.targets {
		if t.apiStopped {
			continue
		}
		if err := t.cube.plane.StopAPIServer(ctx); err != nil {
			return "", err
		}
		t.apiStopped = true
	}
	return "the API server of every cluster of the case was stopped", nil
}

func (p *Player) apiServerStarted(ctx context.Context, _ []string) (string, error) {
	for _, t := range p.targets {
		if !t.apiStopped {
			continue
		}
		if err := t.cube.plane.StartAPIServer(ctx); err != nil {
			return "", err
		}
		t.apiStopped = false
	}
	return "the API server of every cluster of the case was started", p.stillAll(ctx)
}

// clusterIs: Ready, and by its identity the one with that UID unless it is empty.
func clusterIs(uid string) harness.Condition {
	ready := harness.HasCondition("Ready", metav1.ConditionTrue, "")
	return func(u *unstructured.Unstructured) (bool, error) {
		ok, err := ready(u)
		if err != nil || !ok || uid == "" {
			return ok, err
		}
		have, _, err := unstructured.NestedString(u.Object, "status", "clusterUID")
		return have == uid, err
	}
}
