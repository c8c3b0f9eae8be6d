// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// slow are classes whose cases have tests of their own here or in other suites, and
// take minutes or stop the hub: they are replayed with CONVOY_SOAK=1 only, the last of
// all, one at a time.
var slow = []string{"hub and agent"}

// few are those of other classes that are replayed each time, for what the player does
// in them: a scale, others' objects, verdicts.
var few = []string{"DR-07", "HL-01", "HL-03", "HL-06", "HL-07"}

// whole are cases that tests of this package play, and whose statements they assert.
var whole = []string{
	"PR-06", "PR-07", "SS-03", "GO-01", "GO-02", "GO-04", "HE-01", "HE-02", "HE-04", "HE-05", "KU-01", "KU-02", "KU-04",
	"MU-01", "SS-06", "YA-01", "YA-02", "YA-04", "YA-05",
}

// TestEveryCaseFileIsReplayed: the player plays each to its end, prints what it found at
// each check, and leaves out no step. What is true is asserted elsewhere, by id.
func TestEveryCaseFileIsReplayed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	replay := func(t *testing.T, c *Case) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		defer cancel()
		var out strings.Builder
		if err := NewPlayer(shared, c, Options{Out: &out, Rest: 8 * time.Second}).Play(ctx); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		for _, s := range c.Steps {
			if !strings.Contains(out.String(), "\n=== "+s.Name+" (") {
				t.Errorf("step %s was left out", s.Name)
			}
			for _, statement := range s.Expect {
				if !strings.Contains(out.String(), "[ ] "+strings.SplitN(statement, "\n", 2)[0]) {
					t.Errorf("step %s: the statement %q was left out", s.Name, statement)
				}
			}
		}
		if strings.Contains(out.String(), "(DIFFERS)") {
			t.Errorf("a verdict is not the expected one:\n%s", out.String())
		}
		t.Logf("%d bytes printed", out.Len())
	}
	var last []*Case
	t.Run("side by side", func(t *testing.T) {
		turns := make(chan struct{}, 4)
		for _, file := range files {
			c, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case slices.Contains(whole, c.ID):
				continue
			case slices.Contains(slow, c.Class):
				last = append(last, c)
				continue
			}
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				if !soak() && c.Class != "prune" && !slices.Contains(few, c.ID) {
					t.Skip("not of this suite's classes: CONVOY_SOAK=1 replays it too")
				}
				turns <- struct{}{}
				defer func() { <-turns }()
				replay(t, c)
			})
		}
	})
	for _, c := range last {
		t.Run(c.ID, func(t *testing.T) {
			if !soak() {
				t.Skip("takes minutes; its statements are asserted by tests named by its id. CONVOY_SOAK=1 plays it here too")
			}
			// Tests of this package play it too: these are objects of another name.
			replay(t, renamed(t, c, "r"))
		})
	}
}
