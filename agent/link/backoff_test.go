// SPDX-License-Identifier: Apache-2.0

package link

import (
	"testing"
	"time"
)

func TestWaitsAreSpreadBetweenNothingAndTheirBound(t *testing.T) {
	t.Parallel()
	b := DefaultBackoff()
	cases := map[string]struct {
		failures   int
		lost, said bool
		hint       time.Duration
		from, to   time.Duration
	}{
		"the first dial failed":             {1, false, false, 0, 0, 2 * time.Second},
		"the third one":                     {3, false, false, 0, 0, 8 * time.Second},
		"the tenth one":                     {10, false, false, 0, 0, 120 * time.Second},
		"the thousandth one":                {1000, false, false, 0, 0, 120 * time.Second},
		"a session was lost":                {1, true, false, 0, 0, 30 * time.Second},
		"sessions are lost again and again": {8, true, false, 0, 0, 120 * time.Second},
		"the hub asks for 60 s":             {1, true, false, time.Minute, time.Minute, 2 * time.Minute},
		"the hub says no":                   {1, false, true, 0, 5 * time.Minute, 15 * time.Minute},
	}
	for name, c := range cases {
		low, high := time.Hour, time.Duration(0)
		for range 2000 {
			d := b.wait(c.failures, c.lost, c.said, c.hint)
			low, high = min(low, d), max(high, d)
		}
		if low < c.from || high > c.to {
			t.Errorf("%s: between %s and %s, want within %s and %s", name, low, high, c.from, c.to)
		}
		if span := c.to - c.from; low > c.from+span/20 || high < c.to-span/20 {
			t.Errorf("%s: between %s and %s, not spread over %s to %s", name, low, high, c.from, c.to)
		}
	}
}

func TestPausesOfDialsFollowWhatIsAskedAndThoseOfARefusalDoNot(t *testing.T) {
	t.Parallel()
	b := RedialBackoff(3 * time.Second)
	if b.Start != 1500*time.Millisecond || b.Lost != 3*time.Second || b.Base != 200*time.Millisecond || b.Max != 12*time.Second {
		t.Errorf("dials wait for %+v", b)
	}
	d := DefaultBackoff()
	if d.Start != 15*time.Second || d.Lost != 30*time.Second || d.Base != 2*time.Second || d.Max != 2*time.Minute {
		t.Errorf("by default they wait for %+v", d)
	}
	if b.RefusedMin != d.RefusedMin || b.RefusedMax != d.RefusedMax || b.Look != d.Look {
		t.Errorf("a hub that says no is asked sooner: %+v", b)
	}
}
