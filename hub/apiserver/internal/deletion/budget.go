// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Budget is how many deletions may uninstall something in a while: in each
// namespace, and in each Cluster, at most Count or Percent of the Releases that
// there were when the while began, whichever is more.
type Budget struct {
	// Count of deletions; 0: there is no budget.
	Count int
	// Percent of the Releases.
	Percent int
	// Window is how long a while is. It begins with the first deletion.
	Window time.Duration
}

func (b Budget) limit(releases int) int { return max(b.Count, releases*b.Percent/100) }

// account is a namespace, or a Cluster of it.
type account struct{ namespace, cluster string }

func (a account) String() string {
	if a.cluster == "" {
		return fmt.Sprintf("namespace %q", a.namespace)
	}
	return fmt.Sprintf("Cluster %q", a.cluster)
}

// window is what was deleted of one account since it was opened.
type window struct {
	opened   time.Time
	releases int
	limit    int
	deleted  map[types.UID]struct{}
}

// shortage says why the budget has not enough left.
type shortage struct {
	message string
	// until then it has not; zero: waiting does not help, since the deletion alone is
	// more than a budget.
	until time.Time
}

// spendLocked takes Releases off the accounts, all or none. It gives those that were
// not taken before, so that they can be given back, or the accounts that have not
// enough left. closed: an account has no window any more, which has to be opened.
func (g *Gate) spendLocked(accounts []account, uids []types.UID) (taken []types.UID, short []account, closed bool) {
	for _, a := range accounts {
		w := g.windows[a]
		if w == nil {
			return nil, nil, true
		}
		if w.cost(uids) > w.limit-len(w.deleted) {
			short = append(short, a)
		}
	}
	if len(short) > 0 {
		return nil, short, false
	}
	for _, uid := range uids {
		fresh := false
		for _, a := range accounts {
			w := g.windows[a]
			if _, before := w.deleted[uid]; !before {
				w.deleted[uid] = struct{}{}
				fresh = true
			}
		}
		if fresh {
			taken = append(taken, uid)
		}
	}
	return taken, nil, false
}

// cost is how many of the Releases were not counted before.
func (w *window) cost(uids []types.UID) int {
	cost := 0
	for _, uid := range uids {
		if _, before := w.deleted[uid]; !before {
			cost++
		}
	}
	return cost
}

// giveBack undoes spend: the deletion failed.
func (g *Gate) giveBack(accounts []account, uids []types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range accounts {
		if w := g.windows[a]; w != nil {
			for _, uid := range uids {
				delete(w.deleted, uid)
			}
		}
	}
}

// openLocked says whether an account has a window that is not over, and drops all
// that are.
func (g *Gate) openLocked(a account, now time.Time) bool {
	if w := g.windows[a]; w != nil && now.Sub(w.opened) < g.budget.Window {
		return true
	}
	for other, w := range g.windows {
		if now.Sub(w.opened) >= g.budget.Window {
			delete(g.windows, other)
		}
	}
	return false
}
