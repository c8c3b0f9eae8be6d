// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
)

// outage is how long what is stopped stays away.
const outage = 8 * time.Second

var errOver = errors.New("the time of the test is over")

func soak() bool { return os.Getenv("CONVOY_SOAK") != "" }

func TestAChangeMadeWhileATargetsAPIServerIsStoppedArrivesWhenItIsBack(t *testing.T) {
	a := newApp(t, "target-stopped", 3, 12*time.Minute)
	before := a.first("1")
	pid := shared.agent.Process().PID()
	if err := shared.edge.StopAPIServer(a.ctx); err != nil {
		t.Fatal(err)
	}
	commit := a.commit("2")
	old := a.until(func(*corev1alpha1.Release) bool { return true })
	a.sync()
	// The session lives: the hub orders, the agent takes the order and says what it
	// waits for.
	ordered := a.until(func(r *corev1alpha1.Release) bool { return r.Status.Sequence > old.Status.Sequence })
	a.pass(outage, errOver)
	a.connected()
	if now := a.until(func(*corev1alpha1.Release) bool { return true }); condition(now, corev1alpha1.ConditionReady) == "True" {
		t.Errorf("the Release says it is Ready at %s while its target cannot be reached", now.Status.SourceRevision)
	}
	if err := shared.edge.StartAPIServer(a.ctx); err != nil {
		t.Fatal(err)
	}
	after := a.ready(commit)
	if after.Status.Sequence != ordered.Status.Sequence {
		t.Errorf("it was ordered again: %d, then %d", ordered.Status.Sequence, after.Status.Sequence)
	}
	if got := a.first("2"); got.GetUID() != before.GetUID() {
		t.Error("the object was made again")
	}
	a.heals("2")
	if shared.agent.Process().PID() != pid || !shared.agent.Process().Running() {
		t.Error("the agent has ended")
	}
}

func TestEdgesHealAndKeepTheirSessionsWhileTheHostsAPIServerIsStopped(t *testing.T) {
	a := newApp(t, "host-stopped", 3, 12*time.Minute)
	if err := shared.host.StopAPIServer(a.ctx); err != nil {
		t.Fatal(err)
	}
	a.heals("1")
	a.pass(outage, errOver)
	a.connected()
	a.heals("1")
	if err := shared.host.StartAPIServer(a.ctx); err != nil {
		t.Fatal(err)
	}
	a.takesChanges()
}

func TestARestartOfTheHostsEtcdLosesNothing(t *testing.T) {
	a := newApp(t, "host-etcd", 3, 12*time.Minute)
	if err := shared.host.KillComponent(a.ctx, harness.Etcd); err != nil {
		t.Fatal(err)
	}
	a.heals("1")
	a.pass(outage, errOver)
	a.connected()
	if err := shared.host.StartEtcd(a.ctx); err != nil {
		t.Fatal(err)
	}
	a.takesChanges()
}

func TestARestartOfTheHubsOwnEtcdLosesNothing(t *testing.T) {
	a := newApp(t, "hub-etcd", 3, 12*time.Minute)
	if err := shared.etcd.Kill9(a.ctx); err != nil {
		t.Fatal(err)
	}
	a.heals("1")
	a.pass(outage, errOver)
	a.heals("1")
	var err error
	if shared.etcd, _, err = install.RunEtcd(a.ctx, shared.host, shared.dir); err != nil {
		t.Fatal(err)
	}
	if !shared.hub.Process().Running() {
		// A hub that has lost its etcd may end: a kubelet starts it again.
		t.Log("the hub has ended without its etcd and is started again")
		if err := shared.hub.Up(a.ctx); err != nil {
			t.Fatal(err)
		}
	}
	a.takesChanges()
}

// takesChanges shows that all works again and nothing was lost: the Release is the one
// it was, its objects are those they were, a change arrives with a greater sequence, and
// an edit is healed.
func (a *app) takesChanges() {
	a.t.Helper()
	before := a.first("1")
	release := a.until(func(*corev1alpha1.Release) bool { return true })
	commit := a.commit("2")
	a.sync()
	after := a.ready(commit)
	if after.UID != release.UID || after.Status.Sequence <= release.Status.Sequence {
		a.t.Errorf("Release %s with sequence %d became %s with %d", release.UID, release.Status.Sequence, after.UID, after.Status.Sequence)
	}
	if got := a.first("2"); got.GetUID() != before.GetUID() {
		a.t.Error("the object was made again")
	}
	a.heals("2")
}

// TestNoOwnedObjectIsWrittenAfterAHubIsKilled: from kill -9 until five minutes after
// (half a minute without CONVOY_SOAK=1), over its restart and the agent's return, the
// edge's audit log has no write on any object of a Release.
func TestNoOwnedObjectIsWrittenAfterAHubIsKilled(t *testing.T) {
	watched := 30 * time.Second
	if soak() {
		watched = 5 * time.Minute
	}
	a := newApp(t, "unwritten", 200, watched+12*time.Minute)
	killed := time.Now()
	if err := shared.hub.Kill9(a.ctx); err != nil {
		t.Fatal(err)
	}
	a.pass(outage, errOver)
	if err := shared.hub.Up(a.ctx); err != nil {
		t.Fatal(err)
	}
	back, cancel := context.WithTimeout(a.ctx, patience)
	defer cancel()
	for n := ""; n != "1"; {
		var err error
		if n, err = sessions(back); err != nil || back.Err() != nil {
			t.Fatalf("the agent is not back: %v, %v", err, back.Err())
		}
		a.pass(300*time.Millisecond, errOver)
	}
	t.Logf("the agent was back %s after the kill", time.Since(killed).Round(100*time.Millisecond))
	if left := watched - time.Since(killed); left > 0 {
		a.pass(left, errOver)
	}
	seen := 0
	for event, err := range harness.Audit(shared.edge.AuditLog(), harness.Since(killed), harness.ByServiceAccountsOf("convoy-agent")) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		write := event.Verb == "patch" || event.Verb == "update" || event.Verb == "create" || event.Verb == "delete"
		if write && event.Object.Namespace != "convoy-agent" {
			t.Errorf("%s", event)
		}
	}
	t.Logf("the agent made %d calls in %s, none of them a write outside of its own namespace", seen, time.Since(killed).Round(time.Second))
	a.first("1")
}
