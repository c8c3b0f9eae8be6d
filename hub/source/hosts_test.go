// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/hub/source/fault"
)

const sharedHost = "https://git.example.test:443"

type visited struct {
	*hosts
	clock *clocktesting.FakePassiveClock
}

func newVisited() visited {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	return visited{hosts: newHosts(clock), clock: clock}
}

func (v visited) after(d time.Duration) { v.clock.SetTime(v.clock.Now().Add(d)) }

// answered lets a source be asked, and the server answer with a wait.
func (v visited) answered(t *testing.T, who string, wait time.Duration) {
	t.Helper()
	leave, err := v.enter(t.Context(), sharedHost, who, visitLook)
	if err != nil {
		t.Fatalf("%s is not asked: %v", who, err)
	}
	leave(&fault.Error{Class: fault.ClassRateLimited, RetryAfter: wait, Err: errors.New("429")})
}

func (v visited) want(t *testing.T, who string, asked bool) {
	t.Helper()
	leave, err := v.enter(t.Context(), sharedHost, who, visitLook)
	if err == nil {
		leave(nil)
	}
	if (err == nil) != asked {
		t.Errorf("%s: %v, want it asked: %t", who, err, asked)
	}
}

func TestASourceThatIsToldToWaitLongHoldsUpItsHostForTwoMinutes(t *testing.T) {
	v := newVisited()
	v.answered(t, "bad", fault.RetryAfter("999999999", v.clock.Now()))
	v.want(t, "good", false)
	v.after(119 * time.Second)
	v.want(t, "good", false)
	v.after(2 * time.Second)
	v.want(t, "good", true)
	v.want(t, "bad", false)
	v.after(57 * time.Minute)
	v.want(t, "bad", false)
	v.after(2 * time.Minute)
	v.want(t, "bad", true)
}

func TestGO04NobodyAsksAHostWithinTheTimeThatItAskedFor(t *testing.T) {
	v := newVisited()
	v.answered(t, "one", 90*time.Second)
	v.after(89 * time.Second)
	v.want(t, "one", false)
	v.want(t, "other", false)
	v.after(2 * time.Second)
	v.want(t, "one", true)
	v.want(t, "other", true)
}

func TestSourcesThatAreToldToWaitInTurnsLeaveTheirHostOpenHalfOfTheTime(t *testing.T) {
	v := newVisited()
	open := 0
	for minute := range 60 {
		leave, err := v.enter(t.Context(), sharedHost, fmt.Sprint("bad", minute), visitLook)
		if err == nil {
			leave(&fault.Error{Class: fault.ClassRateLimited, RetryAfter: time.Hour, Err: errors.New("429")})
		}
		if leave, err := v.enter(t.Context(), sharedHost, "good", visitLook); err == nil {
			leave(nil)
			open++
		}
		v.after(time.Minute)
	}
	if open < 25 {
		t.Errorf("a good source is asked in %d of 60 minutes", open)
	}
}

func TestTheLongerOfTwoWaitsAtOnceCounts(t *testing.T) {
	v := newVisited()
	var leaves []func(error)
	for _, who := range []string{"short", "long"} {
		leave, err := v.enter(t.Context(), sharedHost, who, visitLook)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	for i, wait := range []time.Duration{time.Second, 90 * time.Second} {
		leaves[i](&fault.Error{Class: fault.ClassRateLimited, RetryAfter: wait, Err: errors.New("429")})
	}
	v.after(80 * time.Second)
	v.want(t, "other", false)
	v.after(11 * time.Second)
	v.want(t, "other", true)
}

func TestOnlySoManyWaitsAreRemembered(t *testing.T) {
	v := newVisited()
	for i := range maxWaits + 10 {
		leave, err := v.enter(t.Context(), fmt.Sprintf("https://%d.test:443", i), "one", visitLook)
		if err != nil {
			t.Fatal(err)
		}
		leave(&fault.Error{Class: fault.ClassRateLimited, RetryAfter: time.Hour, Err: errors.New("429")})
	}
	if len(v.waits) > maxWaits || len(v.all) > maxHosts {
		t.Errorf("%d waits of %d hosts", len(v.waits), len(v.all))
	}
}
