// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"testing"
)

func TestThePageNamesTheGoalsThatWereMissedWithWhatIsKnownOfThem(t *testing.T) {
	r := newReport(io.Discard)
	r.add("one thing", "<= 1 s", "%d s", 1)
	r.unless(true, "its reason")
	r.add("another thing", "<= 1 s", "%d s", 2)
	r.unless(false, "another reason")
	page := r.page(t.Context())
	for _, want := range []string{
		"| one thing | <= 1 s | 1 s |\n", "| another thing | <= 1 s | 2 s **missed** |\n", "- *another thing*: another reason\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "its reason") {
		t.Errorf("the page gives a reason for a goal that was met:\n%s", page)
	}
}

func TestSamplesAreAddedUpByNameAndLabels(t *testing.T) {
	s := samples{`writes{kind="release",result="written"}`: 2, `writes{kind="cluster",result="written"}`: 3, `writes_total`: 10, "plain": 4}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{{"writes", nil, 5}, {"writes", []string{`kind="release"`}, 2}, {"plain", nil, 4}, {"plain", []string{"x"}, 0}} {
		if got := s.sum(c.name, c.labels...); got != c.want {
			t.Errorf("sum of %s %v: %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}
