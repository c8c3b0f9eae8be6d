// SPDX-License-Identifier: Apache-2.0

package report

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

const heldDigest = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

// held is an order that this hub once signed for a Release of that name.
func (h *hub) held(t *testing.T, name string, sequence int64, change ...func(*tunnel.Order)) tunnel.Signed {
	t.Helper()
	o := tunnel.Order{
		Verb: tunnel.VerbApply, Hub: "hub", ClusterUID: edge.UID, Sequence: sequence, Revision: "main@sha1:2",
		Release: tunnel.ReleaseRef{UID: "uid-" + name, Namespace: "team", Name: name}, Objects: &tunnel.Layer{Digest: heldDigest, Size: 5},
	}
	for _, c := range change {
		c(&o)
	}
	signed, err := tunnel.SignJSON(tunnel.TypeOrder, o, h.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (h *hub) take(t *testing.T, held ...tunnel.Signed) {
	t.Helper()
	if err := h.reporter.Take(t.Context(), edge, held); err != nil {
		t.Fatal(err)
	}
}

func (h *hub) behind(t *testing.T) string {
	t.Helper()
	cluster, _ := h.Cluster(types.NamespacedName{Namespace: "team", Name: "edge"})
	c := meta.FindStatusCondition(cluster.Status.Conditions, corev1alpha1.ConditionHubBehind)
	if c == nil {
		return ""
	}
	_, what, _ := strings.Cut(c.Message, "deleted: ")
	return string(c.Status) + " " + what
}

func TestHA03AnOrderThatIsGivenBackIsAdoptedInOneWrite(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		h.counted()
		// What the agent says before it has given the order back is not the old order's.
		newer := func(r *tunnel.Report) { r.Sequence, r.AppliedRef = 20, heldDigest }
		h.mu.Lock()
		said := report("web", 9, newer)
		h.answers["uid-web"] = &said
		h.mu.Unlock()
		h.reporter.Compared("c1", []string{"uid-web"})
		h.take(t, h.held(t, "web", 20))
		pass(time.Second)
		r, _ := h.Release(key)
		equal(t, "sequence and render", fmt.Sprint(20, " ", heldDigest), fmt.Sprint(r.Status.Sequence, " ", r.Status.RenderRef))
		equal(t, "adopted", corev1alpha1.AdoptedOrder{Sequence: 20, InputsHash: "h", At: r.Status.Adopted.At}, *r.Status.Adopted)
		equal(t, "inputs", "h", r.Status.InputsHash)
		equal(t, "asked for what is there", []types.UID{"uid-web"}, h.questions())
		equal(t, "what was looked at", []string{"c1 uid-web"}, h.taken)
		applied := meta.FindStatusCondition(r.Status.Conditions, "Applied")
		equal(t, "Applied", "True HubBehind", string(applied.Status)+" "+applied.Reason)
		if all := meta.FindStatusCondition(r.Status.Conditions, "Ready"); all.Status != "True" || !strings.Contains(all.Message, "HubBehind") || applied.Message != all.Message {
			t.Errorf("Ready: %+v", all)
		}
		equal(t, "cluster", "True 1 Releases run orders that this hub had lost and took back", h.behind(t))
		equal(t, "applied", heldDigest, r.Status.AppliedRef)
		h.counted()

		// The same once more, and an older one, change nothing.
		h.take(t, h.held(t, "web", 20), h.held(t, "web", 15))
		h.reporter.Compared("c1", nil)
		pass(time.Minute)
		equal(t, "writes", []string(nil), h.counted())

		// Going on clears it.
		err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered, GoOn: true, Order: order(30)})
		if err != nil {
			t.Fatal(err)
		}
		r, _ = h.Release(key)
		h.reporter.ReleaseChanged(&corev1alpha1.Release{ObjectMeta: r.ObjectMeta, Spec: r.Spec, Status: corev1alpha1.ReleaseStatus{Adopted: &corev1alpha1.AdoptedOrder{}}}, r)
		pass(time.Second)
		equal(t, "state", "False Progressing", ready(t, h, key))
		equal(t, "cluster", "", h.behind(t))
	})
}

// A later order of the same render must require what the one that came back did.
func TestHA03ARenderThatComesBackWithAnOrderHasItsHooks(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.take(t, h.held(t, "web", 20, func(o *tunnel.Order) { o.Requires = []string{tunnel.FeatureApply, tunnel.FeatureHooks} }))
		pass(time.Second)
		r, _ := h.Release(key)
		equal(t, "hooks", int32(1), r.Status.Render.Hooks)
	})
}

func TestHA03WhatAnAgentSaidBeforeItGaveTheOrderBackCountsAtOnce(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		refused := func(r *tunnel.Report) {
			r.Sequence, r.AppliedRef, r.Settled = 20, heldDigest, false
			r.Refused, r.RefusedSequence = &tunnel.Finding{Status: tunnel.False, Reason: "OrderRefused", Message: "older"}, 10
		}
		go h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 2, refused)})
		pass(time.Millisecond)
		h.counted()
		h.take(t, h.held(t, "web", 20))
		r, _ := h.Release(key)
		equal(t, "applied", heldDigest, r.Status.AppliedRef)
		equal(t, "conditions", []string{"Ready=True Ready", "Rendered=True Rendered", "Applied=True HubBehind", "InSync=True InSync", "Healthy=True Healthy"}, plain(r.Status.Conditions))
		equal(t, "writes", []string{"Release web"}, h.counted())
	})
}

func TestHA03AReleaseThatIsUnknownHereIsListedUntilItIsTakenOver(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		var held []tunnel.Signed
		var uids []string
		for i := range 20 {
			name := fmt.Sprintf("gone-%02d", i)
			held = append(held, h.held(t, name, 20))
			uids = append(uids, "uid-"+name)
		}
		h.reporter.Compared("c1", uids)
		h.take(t, held...)
		pass(time.Second)
		equal(t, "writes", []string{"Cluster edge"}, h.counted())
		cluster, _ := h.Cluster(keyOf(edge))
		equal(t, "listed", 16, len(cluster.Status.UnknownReleases))
		equal(t, "counted", int32(20), cluster.Status.UnknownReleaseCount)
		equal(t, "the first", corev1alpha1.UnknownRelease{Namespace: "team", Name: "gone-00", UID: "uid-gone-00", Sequence: 20, RenderRef: heldDigest}, cluster.Status.UnknownReleases[0])
		equal(t, "cluster", "True 20 Releases run there that do not exist here", h.behind(t))

		// The next session tells the same: no write.
		h.reporter.Compared("c1", uids)
		h.take(t, held...)
		pass(time.Minute)
		equal(t, "writes at a reconnect", []string(nil), h.counted())

		// One made anew under the name runs there.
		key := h.ordered(t, "gone-00")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("gone-00", 1)})
		r, _ := h.Release(key)
		h.reporter.ReleaseChanged(nil, r)
		pass(time.Second)
		cluster, _ = h.Cluster(keyOf(edge))
		equal(t, "counted", int32(19), cluster.Status.UnknownReleaseCount)
		// The agent has none of them any more.
		h.reporter.Compared("c1", nil)
		pass(time.Second)
		equal(t, "cluster", "", h.behind(t))
	})
}

func TestAReleaseOfAClusterThatIsGoneIsUnknownToTheOneThatWasMadeAnew(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		h.add("Cluster", &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other", UID: "c2"}})
		h.reporter.Compared("c1", []string{"uid-a", "uid-b"})
		h.take(t, h.held(t, "a", 20, func(o *tunnel.Order) { o.ClusterUID = "c0" }), h.held(t, "b", 20, func(o *tunnel.Order) { o.ClusterUID = "c2" }))
		pass(time.Minute)
		equal(t, "cluster", "True 1 Releases run there that do not exist here; 1 newer orders were not given back", h.behind(t))
	})
}

// A Cluster was deleted and made again under its name, and the agent joined anew: it
// still holds the order of the Cluster before, whose Release is here.
func TestAnOrderOfTheClusterBeforeThatHasItsReleaseIsNotCountedAsLost(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Compared("c1", []string{"uid-web"})
		h.take(t, h.held(t, "web", 20, func(o *tunnel.Order) { o.ClusterUID = "c0" }))
		pass(time.Minute)
		equal(t, "behind", "", h.behind(t))
		r, _ := h.Release(key)
		equal(t, "sequence", int64(10), r.Status.Sequence)
	})
}

func TestARestartedHubKeepsWhatItKnewToBeLostUntilTheAgentHasSaidIt(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		before := corev1alpha1.ClusterStatus{
			Reachable: true, Agent: &corev1alpha1.ClusterAgentStatus{BoundKey: "k"}, UnknownReleaseCount: 1,
			UnknownReleases: []corev1alpha1.UnknownRelease{{Namespace: "team", Name: "gone", UID: "uid-gone", Sequence: 20, RenderRef: heldDigest}},
			Conditions:      []metav1.Condition{condition("Ready", "True", "Connected", 0, "the agent has a session"), condition("HubBehind", "True", "HubBehind", 0, "x deleted: 1 Releases run there that do not exist here")},
		}
		h.add("Cluster", &corev1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge", UID: "c1"}, Status: before})
		err := h.reporter.Cluster(t.Context(), keyOf(edge), "c1", func(s *corev1alpha1.ClusterStatus) error { s.AgentVersion = "2"; return nil })
		if err != nil {
			t.Fatal(err)
		}
		h.reporter.Compared("c1", []string{"uid-gone"})
		pass(time.Second)
		equal(t, "cluster", "True 1 Releases run there that do not exist here", h.behind(t))
		h.take(t, h.held(t, "gone", 20))
		pass(time.Second)
		equal(t, "cluster", "True 1 Releases run there that do not exist here", h.behind(t))
	})
}

func TestOrdersOfALostKeyAndThoseThatDoNotComeAreCounted(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Compared("c1", []string{"uid-web", "uid-other"})
		ours := h.key
		h.key = ed25519.NewKeyFromSeed([]byte("another key of just the 32 bytes"))
		foreign := h.held(t, "web", 99)
		h.key = ours
		h.take(t, foreign)
		pass(20 * time.Second)
		equal(t, "cluster", "True 1 orders there are signed by a key that this hub does not have; 1 newer orders were not given back", h.behind(t))
		r, _ := h.Release(key)
		equal(t, "sequence", int64(10), r.Status.Sequence)

		// It was signed anew, and runs.
		if err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered, Order: order(100)}); err != nil {
			t.Fatal(err)
		}
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1, func(r *tunnel.Report) { r.Sequence = 100 })})
		r, _ = h.Release(key)
		h.reporter.ReleaseChanged(nil, r)
		pass(time.Second)
		equal(t, "cluster", "True 1 newer orders were not given back", h.behind(t))
	})
}

func TestWhatIsNoOrderForThisClusterIsNotTaken(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.add("Release", &corev1alpha1.Release{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other", UID: "uid-other", Generation: 1},
			Spec:       corev1alpha1.ReleaseSpec{ClusterRef: corev1alpha1.ClusterReference{Name: "another"}},
		})
		h.counted()
		h.take(t,
			h.held(t, "web", 20, func(o *tunnel.Order) { o.ClusterUID = "c2" }),
			h.held(t, "web", 20, func(o *tunnel.Order) { o.Verb, o.Objects = tunnel.VerbRemove, nil }),
			h.held(t, "gone", 20, func(o *tunnel.Order) { o.Verb, o.Objects = tunnel.VerbRemove, nil }),
			h.held(t, "other", 20), tunnel.Signed{Type: tunnel.TypeOrder, Payload: []byte("{")})
		pass(time.Minute)
		equal(t, "writes", []string(nil), h.counted())
		r, _ := h.Release(key)
		equal(t, "sequence", int64(10), r.Status.Sequence)
		equal(t, "too many", true, errors.Is(h.reporter.Take(t.Context(), edge, make([]tunnel.Signed, tunnel.MaxHeld+1)), ErrTooMany))
		gone := edge
		gone.UID = "c0"
		equal(t, "a Cluster that is gone", true, errors.Is(h.reporter.Take(t.Context(), gone, nil), ErrGone))

		h.mu.Lock()
		h.failing = errors.New("etcd is away")
		h.mu.Unlock()
		if err := h.reporter.Take(t.Context(), edge, []tunnel.Signed{h.held(t, "web", 20)}); err == nil {
			t.Error("no error although nothing could be written")
		}
	})
}

func TestHA06AResetVoidsWhatTheFormerTargetSaid(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 900, withInventory, func(r *tunnel.Report) { r.Counts.Total = 4 })})
		before, _ := h.Release(key)
		h.counted()
		if err := h.reporter.Reset(t.Context(), edge); err != nil {
			t.Fatal(err)
		}
		r, _ := h.Release(key)
		equal(t, "state", "Unknown ClusterReset", ready(t, h, key))
		equal(t, "conditions", []string{"Ready=Unknown ClusterReset", "Rendered=True Rendered", "Applied=Unknown ClusterReset", "InSync=Unknown ClusterReset", "Healthy=Unknown ClusterReset"}, plain(r.Status.Conditions))
		equal(t, "what was reported", corev1alpha1.ReleaseStatus{}, corev1alpha1.ReleaseStatus{
			AppliedRef: r.Status.AppliedRef, Objects: r.Status.Objects, Exceptions: r.Status.Exceptions, LastOperation: r.Status.LastOperation, LastReportedAt: r.Status.LastReportedAt,
		})
		equal(t, "the order", *before.Status.Order, *r.Status.Order)
		if _, ok := lookup[*corev1alpha1.ReleaseInventory](h, "Inventory", key); ok {
			t.Error("the inventory is still there")
		}
		equal(t, "writes", []string{"Release web"}, h.counted())
		// The new agent counts from the start.
		h.reporter.Observe(t.Context(), edge, []tunnel.Report{report("web", 1)})
		equal(t, "state", "True Ready", ready(t, h, key))
	})
}

func plain(list []metav1.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	return out
}

func TestAHeldDeletionIsWrittenOnceAMinuteAndVoidedByANewOrder(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		key := h.ordered(t, "web")
		h.counted()
		for range 3 {
			held := corev1alpha1.HeldDeletion{Reason: corev1alpha1.HeldByBudget, Message: "m", By: "somebody", At: metav1.NewTime(h.reporter.clock.Now()), Sequence: 10, Digest: "d"}
			if err := h.reporter.Held(t.Context(), key, "uid-web", held); err != nil {
				t.Fatal(err)
			}
			pass(25 * time.Second)
		}
		equal(t, "writes", []string{"Release web"}, h.counted())
		equal(t, "another Release of the name", true, errors.Is(h.reporter.Held(t.Context(), key, "uid-0", corev1alpha1.HeldDeletion{}), ErrGone))
		if err := h.reporter.Release(t.Context(), key, "uid-web", Outcome{Generation: 1, Rendered: rendered, Order: order(11)}); err != nil {
			t.Fatal(err)
		}
		r, _ := h.Release(key)
		if r.Status.HeldDeletion != nil {
			t.Errorf("still held: %+v", r.Status.HeldDeletion)
		}
	})
}

func TestLeftBehindIsAddedUp(t *testing.T) {
	inside(t, func(t *testing.T, h *hub) {
		for range 2 {
			if err := h.reporter.LeftBehind(t.Context(), "c1", 3); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.reporter.LeftBehind(t.Context(), "c0", 3); err != nil {
			t.Error(err)
		}
		cluster, _ := h.Cluster(keyOf(edge))
		equal(t, "left behind", int32(6), cluster.Status.LeftBehind)
	})
}

func TestWhatReadySaysOfACluster(t *testing.T) {
	at := metav1.NewTime(earlier.Time)
	agent := func(change func(*corev1alpha1.ClusterAgentStatus)) *corev1alpha1.ClusterAgentStatus {
		a := &corev1alpha1.ClusterAgentStatus{BoundKey: "k"}
		change(a)
		return a
	}
	said := func(status corev1alpha1.ClusterStatus, reason string) corev1alpha1.ClusterStatus {
		SetReady(&status, reason, "m")
		return status
	}
	joined := agent(func(*corev1alpha1.ClusterAgentStatus) {})
	revoked := agent(func(a *corev1alpha1.ClusterAgentStatus) { a.RevokedAt = &at })
	cloned := agent(func(a *corev1alpha1.ClusterAgentStatus) { a.CloneDetectedAt = &at })
	tests := map[string]struct {
		mode   corev1alpha1.ConnectionMode
		status corev1alpha1.ClusterStatus
		want   string
	}{
		"revoked":                                {status: corev1alpha1.ClusterStatus{Agent: revoked}, want: "False Revoked"},
		"revoked, its session not ended yet":     {status: corev1alpha1.ClusterStatus{Agent: revoked, Reachable: true}, want: "False Revoked"},
		"two agents with one identity":           {status: corev1alpha1.ClusterStatus{Agent: cloned}, want: "False CloneDetected"},
		"another cluster under the name":         {status: said(corev1alpha1.ClusterStatus{Agent: joined}, "ClusterConflict"), want: "False ClusterConflict"},
		"another one beside the one that serves": {status: said(corev1alpha1.ClusterStatus{Agent: joined, Reachable: true}, "ClusterConflict"), want: "True ClusterConflict"},
		"a probe that failed":                    {mode: "agentless", status: said(corev1alpha1.ClusterStatus{}, "ProbeFailed"), want: "False ProbeFailed"},
		"a way that is not supported":            {mode: "agentless", status: said(corev1alpha1.ClusterStatus{}, "Unsupported"), want: "False Unsupported"},
		"a probe that is good again":             {mode: "agentless", status: said(corev1alpha1.ClusterStatus{Reachable: true}, "ProbeFailed"), want: "True Connected"},
		"not probed yet":                         {mode: "inCluster", want: "False Disconnected"},
		"a reason that is not to be said":        {status: said(corev1alpha1.ClusterStatus{}, "Connected"), want: "False NeverJoined"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := clusterConditions(clusterObserved{mode: test.mode, status: &test.status, now: later.Time})
			equal(t, "ready", []string{"Ready=" + test.want}, plain(got))
		})
	}
	status := said(said(corev1alpha1.ClusterStatus{}, "ProbeFailed"), "Unsupported")
	equal(t, "the last one said", []string{"Ready=False Unsupported"}, plain(status.Conditions))
	ClearReady(&status, "ProbeFailed")
	equal(t, "another is cleared", 1, len(status.Conditions))
	ClearReady(&status, "Unsupported")
	equal(t, "it is cleared", 0, len(status.Conditions))
}
