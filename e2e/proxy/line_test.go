// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// TestASlowAndLossyLine has 300 ms each way, 1 Mbit/s, and packets that get lost:
// the line of a site in the hills. It delays, and nothing else.
func TestASlowAndLossyLine(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	s := newSite(ctx, t, shared.secure, "wombat")
	line, err := newWire(ctx, s.net, s.hub.net, shape{delay: 300 * time.Millisecond, loss: 0.01, rate: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := line.close(); err != nil {
			t.Error(err)
		}
	})
	if err := line.route(ctx, s.hub.address); err != nil {
		t.Fatal(err)
	}
	s.install(ctx, exit{})
	s.joined(ctx)
	a := s.release(ctx, "settings", settings("1"))
	a.ready(ctx, "")
	began := time.Now()
	large := s.release(ctx, "large", bulk(2, 512<<10))
	s.step("drift is repaired by the edge while the line is full", func(t *testing.T) {
		a.edit(ctx, "settings", "drifted")
		a.onEdge(ctx, "settings", "1")
	})
	large.ready(ctx, "")
	took := time.Since(began)
	line.shape.Store(&shape{delay: 300 * time.Millisecond, loss: 0.05, rate: 1e6})
	a.ready(ctx, a.push(ctx, settings("2")))
	t.Logf("1 MiB was ready after %s; %d packets passed, %d were lost", took.Round(time.Second), line.passed.Load(), line.lost.Load())
	if line.lost.Load() == 0 {
		t.Error("nothing was lost, so this shows nothing")
	}
	if n := s.sessions(ctx); n != 1 {
		t.Errorf("%d sessions, want one: the line was slow and never cut", n)
	}
}

// TestALineThatIsCutForAMinute is cut in the middle of a download.
func TestALineThatIsCutForAMinute(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	s := newSite(ctx, t, shared.secure, "potoroo")
	line, err := newLink(ctx, s.net, s.hub.net)
	if err == nil {
		err = line.route(ctx, s.hub.address)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.install(ctx, exit{})
	s.joined(ctx)
	a := s.release(ctx, "settings", settings("1"))
	a.ready(ctx, "")

	cutDownload(ctx, t, s, line, func() {
		before := s.cluster(ctx)
		if err := s.hub.net.ip(ctx, "link", "set", line.bEnd, "down"); err != nil {
			t.Fatal(err)
		}
		a.edit(ctx, "settings", "drifted")
		a.onEdge(ctx, "settings", "1")
		commit := a.push(ctx, settings("2"))
		s.untouched(ctx, before, time.Minute)
		if err := s.hub.net.ip(ctx, "link", "set", line.bEnd, "up"); err != nil {
			t.Fatal(err)
		}
		a.ready(ctx, commit)
		after := s.cluster(ctx)
		if !after.Status.Reachable {
			t.Error("the Cluster was cut for less than the grace and is not reachable")
		}
		if after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the Cluster was written to: %+v, before %+v", after.Status, before.Status)
		}
	})
}

func (s *site) cluster(ctx context.Context) *corev1alpha1.Cluster {
	s.t.Helper()
	u, err := s.hub.Plane.Dynamic().Resource(install.Clusters).Namespace(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := harness.As[corev1alpha1.Cluster](u)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// untouched watches for a while that nobody writes to the Cluster.
func (s *site) untouched(ctx context.Context, c *corev1alpha1.Cluster, d time.Duration) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	watcher, err := s.hub.Plane.Dynamic().Resource(install.Clusters).Namespace(s.namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", s.name).String(), ResourceVersion: c.ResourceVersion,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watcher.ResultChan():
			if !open && ctx.Err() == nil {
				s.t.Fatal("the watch ended early")
			}
			if open && event.Type != watch.Bookmark {
				s.t.Errorf("the Cluster was written to while the line was cut: %s %v", event.Type, event.Object)
			}
		}
	}
}

// narrow lets only so much through towards a.
func (l *link) narrow(ctx context.Context, rate string) error {
	return l.b.command(ctx, "tc", "qdisc", "replace", "dev", l.bEnd, "root", "tbf", "rate", rate, "burst", "16kb", "latency", "400ms")
}
