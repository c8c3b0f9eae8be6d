// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// skipGap makes the next renewal of a session come late enough.
func skipGap(o *gateway.Options) { o.RenewGap = -1 }

func renewing(_ *gatewaytest.Hub, o *gateway.Options) { skipGap(o) }

func (r *rig) agentOf(t *testing.T, id tunnel.ClusterID) v1alpha1.ClusterAgentStatus {
	t.Helper()
	c, ok := r.ByUID(id.UID)
	if !ok || c.Status.Agent == nil {
		t.Fatal("no agent is recorded")
	}
	return *c.Status.Agent
}

func TestEachCertificateCarriesItsNumberAndTheOneInUseIsRecorded(t *testing.T) {
	r := start(t, renewing)
	id, p, _, c := r.session(t, "edge")
	if got := r.agentOf(t, id); got.Renewals != 1 || got.UsedRenewal != 1 {
		t.Errorf("after the join: %d issued, %d used", got.Renewals, got.UsedRenewal)
	}
	for range 2 {
		if err := p.Renew(r.ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := tunnel.PeerRenewal(p.Cert.Leaf); n != 3 || err != nil {
		t.Errorf("the third certificate has number %d, %v", n, err)
	}
	if got := r.agentOf(t, id); got.Renewals != 3 || got.UsedRenewal != 1 {
		t.Errorf("before it is used: %d issued, %d used", got.Renewals, got.UsedRenewal)
	}
	r.open(t, p)
	if got := r.agentOf(t, id); got.UsedRenewal != 3 {
		t.Errorf("after it was used: %d used", got.UsedRenewal)
	}
}

func TestACertificateThatWasRenewedButWhoseSuccessorWasNeverUsedStaysGood(t *testing.T) {
	r := start(t, renewing)
	id, p, _, c := r.session(t, "edge")
	before := p.Clone()
	if err := p.Renew(r.ctx, c); err != nil {
		t.Fatal(err)
	}
	r.open(t, before) // the answer was lost, or its storage failed
	if got := r.agentOf(t, id); got.CloneDetectedAt != nil || got.UsedRenewal != 1 {
		t.Errorf("recorded %+v", got)
	}
}

func TestTwoAgentsWhoseRenewalsPartAreClonesAndBothAreRefused(t *testing.T) {
	r := start(t, renewing)
	id, p, _, c := r.session(t, "edge")
	copied := p.Clone()
	if err := p.Renew(r.ctx, c); err != nil {
		t.Fatal(err)
	}
	live, _ := r.open(t, p)
	if _, _, err := copied.Session(r.ctx); reason(err) != tunnel.ReasonCloneDetected {
		t.Errorf("the older certificate: got %v", err)
	}
	within(t, "the end of the other's session", live.Done())
	if r.agentOf(t, id).CloneDetectedAt == nil {
		t.Error("the clone was not recorded")
	}
	for name, agent := range map[string]*gatewaytest.Peer{"newer": p, "older": copied} {
		if _, _, err := agent.Session(r.ctx); reason(err) != tunnel.ReasonCloneDetected {
			t.Errorf("the %s certificate: got %v", name, err)
		}
		if got := reason(agent.Join(r.ctx, true)); got != tunnel.ReasonCloneDetected {
			t.Errorf("the %s one recovers: got %q", name, got)
		}
		if got := reason(agent.Join(r.ctx, false)); got != tunnel.ReasonCloneDetected {
			t.Errorf("the %s one repeats its join: got %q", name, got)
		}
	}
	// A new join, once.
	anew := r.anew(t, id, r.url)
	if err := anew.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	r.open(t, anew)
	if got := r.agentOf(t, id); got.CloneDetectedAt != nil || got.Renewals != 1 || got.UsedRenewal != 1 {
		t.Errorf("after a new join: %+v", got)
	}
}

func TestAnIdentityThatIsUsedFromTwoPlacesAtOnceWithOneCertificateIsNotTakenAway(t *testing.T) {
	told := &notices{}
	r := start(t, told.take)
	id, p, _, _ := r.session(t, "edge")
	for range gateway.MaxDisplaced {
		r.open(t, p)
	}
	if got := told.all(); len(got) > 0 {
		t.Errorf("people were told too early: %v", got)
	}
	for range 2 * gateway.MaxDisplaced {
		r.open(t, p)
	}
	if got := told.all(); len(got) != 2*gateway.MaxDisplaced || got[0] != id.UID+" "+v1alpha1.ReasonSessionsDisplaced {
		t.Errorf("people were told %v", got)
	}
	if got := r.agentOf(t, id); got.CloneDetectedAt != nil || !r.gateway.Sessions().Connected(id.UID) {
		t.Errorf("recorded %+v", got)
	}
}

func TestAHubThatWasRestoredTakesNumbersThatItDoesNotRemember(t *testing.T) {
	r := start(t, renewing)
	id, p, _, c := r.session(t, "edge")
	for range 4 {
		if err := p.Renew(r.ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	r.Change(id.UID, func(s *v1alpha1.ClusterStatus) { s.Agent.Renewals, s.Agent.UsedRenewal = 2, 1 })
	_, c = r.open(t, p)
	if got := r.agentOf(t, id); got.Renewals != 5 || got.UsedRenewal != 5 {
		t.Errorf("recorded %d issued, %d used", got.Renewals, got.UsedRenewal)
	}
	if err := p.Renew(r.ctx, c); err != nil {
		t.Fatal(err)
	}
	if n, err := tunnel.PeerRenewal(p.Cert.Leaf); n != 6 || err != nil {
		t.Errorf("the next certificate has number %d, %v", n, err)
	}
}

func TestARevokedIdentityLosesItsSessionAtOnceAndAllItsWaysBack(t *testing.T) {
	r := start(t)
	id, p, s, _ := r.session(t, "edge")
	now := metav1.Now()
	r.Change(id.UID, func(s *v1alpha1.ClusterStatus) { s.Agent.RevokedAt = &now })
	r.gateway.ClusterChanged(id.UID)
	within(t, "the end of the session", s.Done())
	if _, _, err := p.Session(r.ctx); reason(err) != tunnel.ReasonRevoked {
		t.Errorf("a session: got %v", err)
	}
	if got := reason(p.Join(r.ctx, true)); got != tunnel.ReasonRevoked {
		t.Errorf("a recovery: got %q", got)
	}
	if got := reason(p.Join(r.ctx, false)); got != tunnel.ReasonRevoked {
		t.Errorf("its join, repeated: got %q", got)
	}
	anew := r.anew(t, id, r.url)
	if err := anew.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	r.open(t, anew)
}

func TestARevocationThatNobodyToldOfIsSeenByTheSweeper(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		s, _ := r.open(t, p)
		now := metav1.Now()
		r.Change(id.UID, func(s *v1alpha1.ClusterStatus) { s.Agent.RevokedAt = &now })
		pass(2*gateway.SweepInterval + time.Second)
		select {
		case <-s.Done():
		default:
			t.Error("a revoked session lives on")
		}
	})
}

func TestANewJoinEndsTheSessionOfWhoJoinedBefore(t *testing.T) {
	r := start(t)
	id, _, old, _ := r.session(t, "edge")
	next := r.anew(t, id, r.url)
	if err := next.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the old agent's session", old.Done())
}

func TestABoundKeyRecoversSoOftenInAnyDayAndNotMore(t *testing.T) {
	clock := newClock()
	r := start(t, withClock(clock))
	id, p, _, _ := r.session(t, "edge")
	recoverAll := func(count int) {
		t.Helper()
		for i := range count {
			if err := p.Join(r.ctx, true); err != nil {
				t.Fatalf("recovery %d: %v", i+1, err)
			}
			clock.add(time.Hour)
		}
	}
	recoverAll(gateway.MaxRecoveries)
	if got := r.agentOf(t, id); got.Recoveries != gateway.MaxRecoveries || got.Renewals != gateway.MaxRecoveries+1 || got.LastRecoveryAt == nil {
		t.Errorf("recorded %+v", got)
	}
	if got := reason(p.Join(r.ctx, true)); got != tunnel.ReasonTooManyRecoveries {
		t.Errorf("one more: got %q", got)
	}
	r.open(t, p) // what it has is as good as before
	clock.add(gateway.RecoveryWindow - gateway.MaxRecoveries*time.Hour)
	recoverAll(1) // the first of them was a day ago
	clock.add(-30 * time.Minute)
	if got := reason(p.Join(r.ctx, true)); got != tunnel.ReasonTooManyRecoveries {
		t.Errorf("before the second of them was a day ago: got %q", got)
	}
	clock.add(gateway.RecoveryWindow)
	recoverAll(gateway.MaxRecoveries)
}

func TestADayOfRecoveriesEveryTwoHoursIsAllowedForEver(t *testing.T) {
	clock := newClock()
	r := start(t, withClock(clock))
	_, p, _, _ := r.session(t, "edge")
	for i := range 3 * gateway.MaxRecoveries {
		if err := p.Join(r.ctx, true); err != nil {
			t.Fatalf("recovery %d: %v", i+1, err)
		}
		clock.add(gateway.RecoveryWindow / gateway.MaxRecoveries)
	}
}

func TestTheClustersOwnUIDDecidesWhomAnIdentityStandsFor(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		status := func() v1alpha1.ClusterStatus { c, _ := r.ByUID(id.UID); return c.Status }
		here, _ := r.open(t, p)
		elsewhere := p.Clone()
		elsewhere.Hello.TargetUID = "another"

		_, _, err := elsewhere.Session(r.ctx)
		if reason(err) != tunnel.ReasonClusterConflict || !strings.Contains(err.Error(), "target") || !strings.Contains(err.Error(), "another") {
			t.Errorf("on another cluster while the first is connected: got %v", err)
		}
		select {
		case <-here.Done():
			t.Error("the session of the cluster that was there first was ended")
		default:
		}
		if ready := meta.FindStatusCondition(status().Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != v1alpha1.ReasonClusterConflict {
			t.Errorf("the Cluster says %+v", ready)
		}
		if err := here.Close(); err != nil {
			t.Fatal(err)
		}
		pass(gateway.Grace / 2)
		if _, _, err := elsewhere.Session(r.ctx); reason(err) != tunnel.ReasonClusterConflict {
			t.Errorf("a moment after it left: got %v", err)
		}
		pass(gateway.Grace)
		if len(r.Resets()) != 0 || status().ClusterUID != "target" {
			t.Errorf("recorded %q, resets %v", status().ClusterUID, r.Resets())
		}

		again, _ := r.open(t, elsewhere) // made anew, long enough after
		if got := status(); got.ClusterUID != "another" || !slices.Equal(got.FormerClusterUIDs, []string{"target"}) || len(r.Resets()) != 1 {
			t.Errorf("recorded %q after %v, resets %v", got.ClusterUID, got.FormerClusterUIDs, r.Resets())
		}
		if ready := meta.FindStatusCondition(status().Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonClusterConflict {
			t.Errorf("the hub has taken the new cluster and still says %q", ready.Message)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if _, _, err := p.Session(r.ctx); reason(err) != tunnel.ReasonClusterConflict {
			t.Errorf("back on the cluster that was left: got %v", err)
		}
		pass(gateway.ConflictMemory + 2*gateway.ReachableInterval)
		if ready := meta.FindStatusCondition(status().Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonClusterConflict {
			t.Error("the conflict is named for ever")
		}

		anew := r.anew(t, id, "ws://hub.example")
		anew.Connect = p.Connect
		if err := anew.Join(r.ctx, false); err != nil {
			t.Fatal(err)
		}
		r.open(t, anew)
		if got := status(); got.ClusterUID != "target" || len(r.Resets()) != 2 {
			t.Errorf("after a new join: %q, resets %v", got.ClusterUID, r.Resets())
		}
	})
}

func TestAHubThatHasJustStartedLetsTheRecordedClusterComeBackFirst(t *testing.T) {
	fake(t, func(t *testing.T, r *rig, agent func(string) (tunnel.ClusterID, *gatewaytest.Peer)) {
		id, p := agent("edge")
		r.Change(id.UID, func(s *v1alpha1.ClusterStatus) {
			s.Reachable, s.ClusterUID, s.Agent.JoinedAt = true, "target", metav1.NewTime(time.Now().Add(-time.Hour))
		})
		p.Hello.TargetUID = "another"
		if _, _, err := p.Session(r.ctx); reason(err) != tunnel.ReasonClusterConflict {
			t.Errorf("got %v", err)
		}
		pass(gateway.Grace + time.Second)
		r.open(t, p)
	})
}

func TestANewJoinOnAnotherClusterCountsAtOnce(t *testing.T) {
	r := start(t)
	id, _, _, _ := r.session(t, "edge")
	next := r.anew(t, id, r.url)
	next.Hello.TargetUID = "another"
	if err := next.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	r.open(t, next)
	if c, _ := r.ByUID(id.UID); c.Status.ClusterUID != "another" || len(r.Resets()) != 1 {
		t.Errorf("recorded %q, resets %v", c.Status.ClusterUID, r.Resets())
	}
}

func TestNoAgentWorksBesideAnEngineOfTheHub(t *testing.T) {
	var occupied atomic.Bool
	r := start(t, func(_ *gatewaytest.Hub, o *gateway.Options) {
		o.Occupied = func(target string) bool { return target == "target" && occupied.Load() }
	})
	id, p := r.cluster(t, "edge")
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	occupied.Store(true)
	if _, _, err := p.Session(r.ctx); reason(err) != tunnel.ReasonClusterConflict {
		t.Errorf("beside an engine: got %v", err)
	}
	if c, _ := r.ByUID(id.UID); c.Status.Reachable {
		t.Error("the Cluster is said to be reachable")
	}
	occupied.Store(false)
	r.open(t, p)
}

func TestAClockThatIsOffIsNamedToTheMinuteAndWrittenWhenItMoves(t *testing.T) {
	clock := newClock()
	r := start(t, withClock(clock))
	id, p := r.cluster(t, "edge")
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		ahead  time.Duration
		want   string
		writes int
	}{
		{20 * time.Second, "", 1}, // the first hello writes
		{-50 * time.Second, "", 0},
		{2*time.Hour + 10*time.Second, "2h0m0s", 1},
		{2*time.Hour + 50*time.Second, "2h0m0s", 0},
		{2*time.Hour + 3*time.Minute, "2h3m0s", 1},
		{-2 * time.Hour, "-2h0m0s", 1},
		{0, "", 1},
	} {
		before := r.Writes()
		p.Hello.Now = clock.now().Add(step.ahead)
		s, _, err := p.Session(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := r.ByUID(id.UID); c.Status.ClockSkew != step.want || r.Writes()-before != step.writes {
			t.Errorf("%s ahead: %q with %d writes, want %q with %d", step.ahead, c.Status.ClockSkew, r.Writes()-before, step.want, step.writes)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
