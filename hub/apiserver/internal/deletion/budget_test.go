// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// crowd is a store in which every namespace and Cluster has as many Releases.
type crowd int

func (c crowd) Releases(context.Context, string, string) ([]*v1alpha1.Release, error) {
	return make([]*v1alpha1.Release, c), nil
}

func (crowd) Cluster(context.Context, types.NamespacedName) (*v1alpha1.Cluster, error) {
	return &v1alpha1.Cluster{}, nil
}

// spendAtOnce lets many ask at once, and counts those that pass.
func spendAtOnce(t *testing.T, budget Budget, askers, each int) int {
	t.Helper()
	g := New(Options{Budget: budget, Clock: clock.RealClock{}})
	g.Bind(crowd(10), nil)
	var group sync.WaitGroup
	passed := make([]int, askers)
	for asker := range askers {
		group.Go(func() {
			for i := range each {
				release := &v1alpha1.Release{}
				release.Namespace, release.UID = "team", types.UID(fmt.Sprint(asker, "/", i))
				release.Status.Sequence = 1
				p, err := g.planRelease(t.Context(), release)
				if err != nil {
					t.Error(err)
					return
				}
				taken, short, err := g.spend(t.Context(), p)
				switch {
				case err != nil:
					t.Error(err)
				case short == nil && len(taken) == 1:
					passed[asker]++
				case short == nil || len(taken) > 0:
					t.Errorf("took %v and said %v", taken, short)
				}
			}
		})
	}
	group.Wait()
	sum := 0
	for _, n := range passed {
		sum += n
	}
	return sum
}

func TestHoweverManyAskAtOnceNoMoreThanTheBudgetPass(t *testing.T) {
	if passed := spendAtOnce(t, Budget{Count: 20, Percent: 20, Window: time.Hour}, 32, 50); passed != 20 {
		t.Errorf("%d passed, want 20", passed)
	}
}

func TestWindowsMayEndWhileManyAsk(t *testing.T) {
	if passed := spendAtOnce(t, Budget{Count: 5, Percent: 20, Window: 100 * time.Microsecond}, 32, 200); passed < 5 {
		t.Errorf("%d passed", passed)
	}
}
