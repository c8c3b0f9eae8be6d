// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatIsNotSeenAnyMoreIsUnknownUntilItIsSeenAgain(t *testing.T) {
	t.Parallel()
	rn := known(t, 2, 0)
	clock, ok := rn.clock.(*clocktesting.FakeClock)
	if !ok {
		t.Fatal("no fake clock")
	}
	r := rn.releases["r"]
	r.finding, r.settled = tunnel.Finding{Status: tunnel.True, Reason: v1alpha1.ReasonApplied}, true
	w := &watch{runner: rn, res: scope{resource: resource{version: "v1", plural: "configmaps"}}, objects: map[place]tracked{}}
	for id, o := range r.objects {
		w.objects[place{id.Namespace, id.Name}] = tracked{r, o}
	}
	told := func() tunnel.Report {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.buildLocked()
	}
	began := clock.Now()
	away := errors.New("connection refused")
	w.missed(began, away)
	clock.Step(watchStale / 2)
	w.missed(clock.Now(), away)
	if got := told(); got.InSync.Status != tunnel.True || got.Healthy.Status != tunnel.True {
		t.Fatalf("taken for unknown too early: %+v", got)
	}
	w.sees()
	w.missed(clock.Now(), away)
	clock.Step(watchStale / 2)
	w.missed(clock.Now(), away)
	if got := told(); got.InSync.Status != tunnel.True {
		t.Fatal("what it had seen in between was forgotten")
	}
	clock.Step(watchStale)
	w.missed(clock.Now(), away)
	got := told()
	if got.InSync.Status != tunnel.Unknown || got.Healthy.Status != tunnel.Unknown || len(got.Exceptions) != 2 ||
		!strings.Contains(got.InSync.Message, "since the watch of configmaps fails: connection refused (and 1 more)") || !got.Settled {
		t.Errorf("the report says %+v %+v %+v", got.InSync, got.Healthy, got.Exceptions)
	}
	if since := got.Exceptions[0].Since; !since.Equal(began.Add(watchStale / 2)) {
		t.Errorf("since %s", since)
	}
	w.sees()
	if got := told(); got.InSync.Status != tunnel.True || got.Healthy.Status != tunnel.True || len(got.Exceptions) > 0 {
		t.Errorf("after it was seen again: %+v", got)
	}
}

func TestAWatchThatIsRenewedOrOfAKindThatIsGoneIsNotBlind(t *testing.T) {
	t.Parallel()
	rn := known(t, 1, 0)
	clock, ok := rn.clock.(*clocktesting.FakeClock)
	if !ok {
		t.Fatal("no fake clock")
	}
	w := &watch{runner: rn}
	for _, err := range []error{nil, errExpired, apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "")} {
		for range 5 {
			began := clock.Now()
			clock.Step(time.Minute)
			w.missed(began, err)
		}
		if w.blind {
			t.Errorf("blind because of %v", err)
		}
	}
}
