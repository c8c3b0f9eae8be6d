// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARaceIsToldOnlyIfItLasts(t *testing.T) {
	t.Parallel()
	raced := &compareError{answer(409, metav1.StatusReasonConflict, "the object has been modified; please apply your changes to the latest version and try again", nil)}
	c := newContest(time.Now())
	for range 2 {
		for n := 1; n < racesTold; n++ {
			if !c.passing(raced) {
				t.Fatalf("race %d is told", n)
			}
		}
		if c.passing(raced) {
			t.Error("a race that lasts is not told")
		}
		if c.passing(nil) || c.raced != 0 {
			t.Error("the end of a race is not noted")
		}
	}
}

func TestOnlyAnObjectThatChangedMeanwhileIsARace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"it changed meanwhile":  {answer(409, metav1.StatusReasonConflict, "", nil), true},
		"it kept changing":      {fmt.Errorf("x: %w", errRaced), true},
		"fields of others":      {conflictError409(cause(".data.k", `conflict with "x"`)), false},
		"refused":               {answer(422, metav1.StatusReasonInvalid, "", nil), false},
		"no answer":             {errors.New("dial"), false},
		"nothing went wrong":    {nil, false},
		"compared, and changed": {&compareError{answer(409, metav1.StatusReasonConflict, "", nil)}, true},
	} {
		if got := isRace(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
