// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"errors"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

// fill opens a stream and leaves frames on it that nobody reads.
func fill(t testing.TB, conn interface{ Write([]byte) (int, error) }, stream uint32, frames int) error {
	t.Helper()
	if _, err := conn.Write(frame(window, syn, stream, 0)); err != nil {
		return err
	}
	for range frames {
		if _, err := conn.Write(with(frame(data, 0, stream, tunnel.MaxFrame), tunnel.MaxFrame)); err != nil {
			return err
		}
	}
	return nil
}

func TestWhenTheBudgetIsUsedUpTheSessionThatHoldsMostIsEnded(t *testing.T) {
	t.Parallel()
	budget := tunnel.NewBudget(8 * tunnel.MaxFrame)
	modest, m := hostile(t, budget)
	greedy, g := hostile(t, budget)
	if err := fill(t, modest, 1, 1); err != nil {
		t.Fatal(err)
	}
	mustLive(t, modest, "one that holds a frame")
	if err := fill(t, greedy, 1, 7); err != nil {
		t.Fatal(err)
	}
	mustLive(t, greedy, "one that holds what is left")
	if err := fill(t, modest, 3, 1); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, g, "the one that holds most")
	if !errors.Is(g.Broken(), tunnel.ErrBudget) {
		t.Errorf("it is said to have ended for %v", g.Broken())
	}
	mustLive(t, modest, "the one that holds little")
	if m.Broken() != nil {
		t.Errorf("got %v", m.Broken())
	}
	if used := budget.Used(); used != 2*tunnel.MaxFrame {
		t.Errorf("%d bytes are counted, want those of the one that is left", used)
	}
}
