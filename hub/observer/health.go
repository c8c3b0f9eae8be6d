// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// health says how each object of a Release is: as the agent says, or else as it was
// reported last.
func (s *Server) health(ctx context.Context, r *request) (any, error) {
	release, leave, err := s.question(ctx, r)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := &v1alpha1.ReleaseHealth{TypeMeta: kindOf("ReleaseHealth"), ObjectMeta: metaOf(release)}
	left, observed := s.live(ctx, release, tunnel.LiveHealth, func(o tunnel.LiveObject) {
		out.Objects = append(out.Objects, liveHealth(&o))
	})
	out.MoreObjects, out.Observation = left.Left, observed
	if observed.Live {
		return out, nil
	}
	out.MoreObjects = 0
	out.Objects, err = s.lastKnown(ctx, release)
	return out, err
}

// question finds the Release, and a place for what is asked about it.
func (s *Server) question(ctx context.Context, r *request) (*v1alpha1.Release, func(), error) {
	release, ok := s.Releases.Release(r.key)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s", ErrNotFound, r.key)
	}
	leave, err := s.questions.enter(ctx, release.Namespace)
	return release, leave, err
}

// live asks the agent. What it said before its answer broke off does not count: each may
// be called all the same.
func (s *Server) live(ctx context.Context, release *v1alpha1.Release, view tunnel.LiveView, each func(tunnel.LiveObject)) (tunnel.LiveEnd, v1alpha1.Observation) {
	end, err := s.askAgent(ctx, release, view, each)
	if err == nil {
		return end, v1alpha1.Observation{Live: true, At: timeOf(end.At), Sequence: end.Sequence}
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("An agent did not say how a Release is", "release", release.Namespace+"/"+release.Name, "cause", err.Error())
	return tunnel.LiveEnd{}, v1alpha1.Observation{At: release.Status.LastReportedAt, Sequence: release.Status.Sequence, Message: s.why(release, err)}
}

func (s *Server) askAgent(ctx context.Context, release *v1alpha1.Release, view tunnel.LiveView, each func(tunnel.LiveObject)) (tunnel.LiveEnd, error) {
	cluster, ok := s.Releases.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name})
	if !ok {
		return tunnel.LiveEnd{}, errNoCluster
	}
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	count := 0
	return s.Agents.Live(ctx, string(cluster.UID), string(release.UID), view, func(o tunnel.LiveObject) error {
		if count++; count > maxLiveObjects {
			return ErrTooLarge
		}
		each(o)
		return nil
	})
}

// why the answer is not live, for people.
func (s *Server) why(release *v1alpha1.Release, err error) string {
	name := release.Spec.ClusterRef.Name
	switch {
	case errors.Is(err, errNoCluster):
		return fmt.Sprintf("there is no Cluster %s", name)
	case errors.Is(err, ErrAway):
		return fmt.Sprintf("Cluster %s is not connected", name)
	case errors.Is(err, tunnel.ErrNoRelease):
		return fmt.Sprintf("the agent of Cluster %s does not know the Release (yet)", name)
	case errors.Is(err, tunnel.ErrNoLive):
		return fmt.Sprintf("the agent of Cluster %s is too old to be asked", name)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the agent of Cluster %s did not answer within %s", name, liveTime)
	}
	return fmt.Sprintf("the answer of the agent of Cluster %s broke off", name)
}

func liveHealth(o *tunnel.LiveObject) v1alpha1.ObjectHealth {
	return v1alpha1.ObjectHealth{
		Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Wave: o.Wave,
		State: o.State, Message: o.Message, Since: timeOf(o.Since), InSync: string(o.InSync), Reason: o.Reason, Problem: o.Problem,
	}
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

func kindOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

func metaOf(r *v1alpha1.Release) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace, UID: r.UID}
}

// identity without the version, as objects are the same by.
type identity struct{ group, kind, namespace, name string }

// lastKnown are the objects of the inventory with what the status says of some of them,
// which is newer.
func (s *Server) lastKnown(ctx context.Context, release *v1alpha1.Release) ([]v1alpha1.ObjectHealth, error) {
	inventory, err := s.Inventories.Get(ctx, types.NamespacedName{Namespace: release.Namespace, Name: release.Name})
	switch {
	case apierrors.IsNotFound(err):
		inventory = &v1alpha1.ReleaseInventory{}
	case err != nil:
		return nil, fmt.Errorf("read the inventory: %w", err)
	}
	list := make([]v1alpha1.ObjectHealth, 0, len(inventory.Entries))
	place := make(map[identity]int, len(inventory.Entries))
	for i := range inventory.Entries {
		e := &inventory.Entries[i]
		place[identity{e.Group, e.Kind, e.Namespace, e.Name}] = len(list)
		o := v1alpha1.ObjectHealth{Group: e.Group, Version: e.Version, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, Wave: e.Wave, State: e.Health}
		if o.State == "" {
			o.State = stateUnknown
		}
		list = append(list, o)
	}
	for i := range release.Status.Exceptions {
		e := &release.Status.Exceptions[i]
		at, known := place[identity{e.Group, e.Kind, e.Namespace, e.Name}]
		if !known {
			at = len(list)
			list = append(list, v1alpha1.ObjectHealth{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, State: stateUnknown})
		}
		o := &list[at]
		o.Reason, o.Problem = e.Reason, e.Message
		if states[e.Reason] {
			o.State, o.Message, o.Since = e.Reason, e.Message, e.Since
		}
	}
	return list, nil
}

const stateUnknown = "Unknown"

// states are the reasons of exceptions that are states of health.
var states = map[string]bool{"Progressing": true, "Degraded": true, "Suspended": true, "Terminating": true, stateUnknown: true}
