// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/e2e/gitserver"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

const (
	// team is the namespace of the hub that the demo works in.
	team = "team-a"
	// interval at which the hub looks at the repository by itself.
	interval = 30 * time.Second
	// storyTimeout ends a story that hangs.
	storyTimeout = 5 * time.Minute
	// goal is what the story has to stay below on a warm machine.
	goal = time.Minute
)

// stage is all that the demo holds. Its fields are set as the story goes on.
type stage struct {
	dir    string
	planes []*harness.Plane
	hub    *install.Hub
	edges  []*install.Edge
	git    *gitserver.Server
}

// tell tells the whole story.
func (s *stage) tell(ctx context.Context, v *voice) error {
	ctx, cancel := context.WithTimeout(ctx, storyTimeout)
	defer cancel()
	for _, part := range []func(context.Context, *voice) error{
		s.startPlanes, s.installHub, s.joinEdges, s.rollOut, s.breakAndHeal, s.hubAway,
	} {
		if err := part(ctx, v); err != nil {
			return err
		}
	}
	told := v.elapsed()
	if err := s.hubBack(ctx, v); err != nil {
		return err
	}
	word := "below"
	if told > goal {
		word = "above"
	}
	fmt.Fprintf(v.out, "\nFrom nothing to the last repair: %.1f s, %s the goal of %.0f s. The hub's return is not in it.\n",
		told.Seconds(), word, goal.Seconds())
	return s.farewell(v)
}

func (s *stage) startPlanes(ctx context.Context, v *voice) error {
	v.step("Three control planes, each with etcd, API server, controllers, scheduler and a node")
	planes, err := harness.StartAll(ctx,
		harness.Options{Name: "hub", Dir: s.dir},
		harness.Options{Name: "edge-1", Dir: s.dir},
		harness.Options{Name: "edge-2", Dir: s.dir})
	if err != nil {
		return err
	}
	s.planes = planes
	v.line("hub, edge-1 and edge-2 are ready")
	return writeKubeconfig(filepath.Join(s.dir, "kubeconfig"), planes)
}

func (s *stage) installHub(ctx context.Context, v *voice) error {
	v.step("The hub: kubectl --context hub apply -f manifests/hub")
	programs, err := install.Built()
	if err != nil {
		return err
	}
	s.hub, err = install.StartHub(ctx, s.planes[0], programs)
	if err != nil {
		return err
	}
	v.line("the host serves core.convoy.kumodo.io, source.convoy.kumodo.io and extensions.convoy.kumodo.io")
	if _, err := s.planes[0].Kubectl(ctx, "create", "namespace", team); err != nil {
		return err
	}
	return nil
}

func (s *stage) joinEdges(ctx context.Context, v *voice) error {
	v.step("Two edges: kubectl convoy join edge-1 -n %s --create | kubectl --context edge-1 apply -f -", team)
	s.edges = make([]*install.Edge, 2)
	joins, ctx := errgroup.WithContext(ctx)
	for i, plane := range s.planes[1:] {
		joins.Go(func() error {
			edge, err := s.hub.Join(ctx, plane, team, plane.Name())
			if err != nil {
				return err
			}
			s.edges[i] = edge
			v.line("Cluster %s is Ready: its agent dialled out and joined with its token", plane.Name())
			return nil
		})
	}
	return joins.Wait()
}

func (s *stage) rollOut(ctx context.Context, v *voice) error {
	v.step("An application in three waves, from Git to both edges")
	server, err := gitserver.Start(ctx, filepath.Join(s.dir, "git"), "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.git = server
	repository, err := server.Repository(ctx, shop)
	if err != nil {
		return err
	}
	content, err := files()
	if err != nil {
		return err
	}
	commit, err := repository.Commit(ctx, "shop: first version", content)
	if err != nil {
		return err
	}
	v.line("%s has commit %.7s", server.URL(shop), commit)
	if err := s.hub.Source(ctx, server, team, shop, metav1.Duration{Duration: interval}); err != nil {
		return err
	}
	releases := make([]any, 0, len(s.edges))
	for _, edge := range s.edges {
		releases = append(releases, install.Release(team, shop+"-"+edge.Name, edge.Name, shop, "deploy"))
	}
	if err := s.hub.ApplyObjects(ctx, releases...); err != nil {
		return err
	}
	if err := s.watchRollout(ctx, v); err != nil {
		return err
	}
	table, err := s.hub.Plane.Kubectl(ctx, "-n", team, "get", "clusters,releases")
	if err != nil {
		return err
	}
	v.plain("\n" + strings.TrimSpace(table))
	return nil
}

// end ends everything that the demo started. What it reports is not worth keeping
// the rest for.
func (s *stage) end() error {
	var problems []error
	if s.git != nil {
		problems = append(problems, s.git.Close())
	}
	for _, plane := range s.planes {
		problems = append(problems, plane.Stop())
	}
	return errors.Join(problems...)
}

// logs are those of the hub and the agents, by name.
func (s *stage) logs() map[string]string {
	found := map[string]string{}
	if s.hub != nil && s.hub.Pod != nil {
		found["hub"] = s.hub.Pod.Log()
	}
	for _, edge := range s.edges {
		if edge != nil && edge.Pod != nil {
			found[edge.Name] = edge.Pod.Log()
		}
	}
	return found
}
