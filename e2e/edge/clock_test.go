// SPDX-License-Identifier: Apache-2.0

package edge_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/agent/identity"
	"kumodo.io/convoy/agent/link"
	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/tunnel"
)

// wrong is the clock of a machine that is set wrong. As on a real one, what counts
// intervals does not jump with it.
type wrong struct {
	clock.RealClock
	ahead time.Duration
}

func (w wrong) Now() time.Time                  { return w.RealClock.Now().Add(w.ahead) }
func (w wrong) Since(t time.Time) time.Duration { return w.Now().Sub(t) }

// inside is an agent of the real parts, in this process, since only so its clock can
// be another than the machine's. It has the engine's methods.
type inside struct {
	*engine.Runner
	link *link.Link
	wall atomic.Int64 // how far its wall clock is ahead, a time.Duration
	stop func()
}

func startInside(ctx context.Context, t *testing.T, name, token string, ahead time.Duration) *inside {
	t.Helper()
	parsed, err := tunnel.ParseToken(token)
	must(t, err)
	config := edge.RESTConfig()
	config.QPS = -1
	secrets, err := state.NewSecrets(config, "agent-"+name)
	must(t, err)
	known := identity.New(secrets)
	a := &inside{}
	a.wall.Store(int64(ahead))
	a.link, err = link.New(link.Options{
		Engine: a, Reporting: a, Holder: a, Identity: known, Token: known.JoinToken,
		Hello: func(ctx context.Context) (tunnel.Hello, error) {
			cluster, err := a.Describe(ctx)
			return tunnel.Hello{
				AgentVersion: "v0.1.0", Features: engine.Features(), KubernetesVersion: cluster.KubernetesVersion,
				APIVersions: cluster.APIVersions, TargetUID: cluster.UID,
			}, err
		},
		Now: func() time.Time { return time.Now().Add(time.Duration(a.wall.Load())) },
	})
	must(t, err)
	a.Runner, err = engine.New(engine.Options{
		Config: config, HubID: parsed.Hub, ClusterUID: parsed.ClusterUID, State: secrets, Blobs: a.link, Report: a.link.Report,
		HubTime: a.link.HubNow, Clock: wrong{ahead: ahead},
	})
	must(t, err)
	running, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	var group errgroup.Group
	group.Go(func() error { return a.Run(running) })
	group.Go(func() error { return a.link.Run(running) })
	a.stop = sync.OnceFunc(func() {
		cancel()
		must(t, group.Wait())
	})
	t.Cleanup(a.stop)
	return a
}

// TestHA04ClocksThatAreWrongOrJumpAtTheEdge: the ten minutes of the case are watched
// with CONVOY_SOAK=1, and seconds otherwise.
func TestHA04ClocksThatAreWrongOrJumpAtTheEdge(t *testing.T) {
	steady := 5 * time.Second
	if os.Getenv("CONVOY_SOAK") != "" {
		steady = 10 * time.Minute
	}
	for name, c := range map[string]struct {
		ahead, jump time.Duration
		skew        string
	}{
		"ahead":  {2 * time.Hour, 0, "2h0m0s"},
		"behind": {-2 * time.Hour, 0, "-2h0m0s"},
		"jumps":  {0, -time.Hour, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience+steady)
			t.Cleanup(cancel)
			_, token := join(ctx, t, name)
			_, err := edge.Kubectl(ctx, "create", "namespace", "agent-"+name)
			must(t, err)
			give(ctx, t, "agent-"+name, token)
			began := time.Now()
			a := startInside(ctx, t, name, token, c.ahead)
			deploy(ctx, t, name)
			var first corev1alpha1.Cluster
			cluster(ctx, t, name, func(o *corev1alpha1.Cluster) bool { first = *o; return connected(o) && o.Status.ClockSkew == c.skew })
			a.wall.Add(int64(c.jump))
			drift(ctx, t, name)
			sleep(ctx, steady)
			drift(ctx, t, name)

			var last corev1alpha1.Cluster
			cluster(ctx, t, name, func(o *corev1alpha1.Cluster) bool { last = *o; return true })
			before, after := meta.FindStatusCondition(first.Status.Conditions, "Ready"), meta.FindStatusCondition(last.Status.Conditions, "Ready")
			if !connected(&last) || !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
				t.Errorf("its availability has changed: %+v, then %+v", before, after)
			}
			healed(ctx, t, name, began)

			if name != "behind" {
				return
			}
			stopped := time.Now()
			a.stop()
			cluster(ctx, t, name, func(o *corev1alpha1.Cluster) bool { last = *o; return !connected(o) })
			at := meta.FindStatusCondition(last.Status.Conditions, "Ready").LastTransitionTime
			if d := at.Sub(stopped); d < 85*time.Second || d > 3*time.Minute {
				t.Errorf("shown as away %s after it was stopped, want some 90 s", d)
			}
		})
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// healed waits until the Release tells of a repair, and looks whether all of its
// times lie between began and now.
func healed(ctx context.Context, t *testing.T, name string, began time.Time) {
	t.Helper()
	out, err := harness.WaitFor(ctx, hub.Plane.Dynamic(), install.Releases, team, name, func(u *unstructured.Unstructured) (bool, error) {
		r, err := harness.As[corev1alpha1.Release](u)
		return err == nil && r.Status.LastOperation != nil && r.Status.LastOperation.Type == corev1alpha1.OperationHeal, err
	})
	must(t, err)
	r, err := harness.As[corev1alpha1.Release](out)
	must(t, err)
	times := map[string]*metav1.Time{"start of the repair": r.Status.LastOperation.StartedAt, "end of the repair": r.Status.LastOperation.FinishedAt}
	for _, c := range r.Status.Conditions {
		times["condition "+c.Type] = &c.LastTransitionTime
	}
	for what, at := range times {
		if at == nil || at.Before(&metav1.Time{Time: began.Add(-3 * time.Second)}) || at.After(time.Now().Add(3*time.Second)) {
			t.Errorf("%s is told as %v, between %s and %s", what, at, began, time.Now())
		}
	}
}
