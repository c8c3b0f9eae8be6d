// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"kumodo.io/convoy/pkg/tunnel"
)

// ErrUnknownView: nothing of that name can be asked.
var ErrUnknownView = errors.New("no such view")

// liveRow is one object of an answer, as it is being made.
type liveRow struct {
	o    *object
	line tunnel.LiveObject
	rank int
	look bool // it differs: a dry run shows how
}

// Live tells how each object of a Release is now, the worst first, and ends as
// LiveEnd says. The view health costs no call; the view diff makes one read and one dry
// run for each of the first maxLiveLooks objects that differ, and writes nothing. An
// answer holds tunnel.MaxLiveBody at most. An error of yield ends it;
// tunnel.ErrNoRelease: there is no such Release here.
//
// Values of Secrets, and those that came into the render from one, are masked.
func (rn *Runner) Live(ctx context.Context, uid string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	if !view.Valid() {
		return tunnel.LiveEnd{}, fmt.Errorf("%w: %s", ErrUnknownView, clip(string(view), 32))
	}
	rn.mu.Lock()
	r := rn.releases[uid]
	rn.mu.Unlock()
	if r == nil {
		return tunnel.LiveEnd{}, tunnel.ErrNoRelease
	}
	select {
	case rn.lives <- struct{}{}:
		defer func() { <-rn.lives }()
	case <-ctx.Done():
		return tunnel.LiveEnd{}, context.Cause(ctx)
	}
	rows, end := r.liveRows(view)
	ctx, cancel := context.WithTimeout(actAs(ctx, r.healer()), liveTimeout)
	defer cancel()
	r.lookAtRows(ctx, rows, &end)
	size := 0
	for i, row := range rows {
		raw, err := json.Marshal(tunnel.LiveLine{Object: &row.line})
		if err != nil {
			return end, fmt.Errorf("encode live detail: %w", err)
		}
		if size += len(raw) + 1; size > tunnel.MaxLiveBody {
			end.Left = int32(len(rows) - i)
			break
		}
		if err := yield(row.line); err != nil {
			return end, err
		}
		end.Objects++
	}
	end.At = rn.moments.told(rn.clock.Now())
	return end, nil
}

// liveRows lists the objects of a Release as they are known, the worst first.
func (r *release) liveRows(view tunnel.LiveView) ([]*liveRow, tunnel.LiveEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := make([]*liveRow, 0, len(r.objects))
	for _, o := range r.sortedLocked() {
		row := &liveRow{o: o, rank: severity(""), line: tunnel.LiveObject{
			Group: o.id.Group, Version: o.version, Kind: o.id.Kind, Namespace: o.id.Namespace, Name: o.id.Name, Wave: o.wave,
			State: o.health.String(), Message: o.why, Since: r.runner.moments.told(o.since), InSync: tunnel.Unknown,
		}}
		r.syncOfLocked(o, &row.line)
		row.look = view == tunnel.LiveDiff && o.drifted() && !o.missing && o.other == ""
		if row.line.Reason != "" {
			row.rank = severity(row.line.Reason)
		} else if o.health != healthy {
			row.rank = severity(o.health.String())
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b *liveRow) int { return cmp.Compare(a.rank, b.rank) })
	return rows, tunnel.LiveEnd{Sequence: r.order.Sequence}
}

// syncOfLocked says whether an object is as it was applied.
func (r *release) syncOfLocked(o *object, line *tunnel.LiveObject) {
	switch {
	case o.orphaned:
		line.InSync, line.Reason, line.Problem = tunnel.False, exceptionOrphaned, "left the render and was not pruned"
		return
	case !o.applied:
		line.Problem = "not applied yet"
	case !o.seen:
		line.Problem = "not looked at yet"
	case o.inSync():
		line.InSync = tunnel.True
	default:
		line.InSync, line.Reason = tunnel.False, exceptionDrifted
		if o.missing {
			line.Problem = "was deleted"
		}
	}
	switch {
	case o.unseen != "":
		line.State, line.InSync, line.Reason, line.Problem = healthUnknown.String(), tunnel.Unknown, exceptionUnreachable, o.unseen
	case o.foreign != "":
		line.InSync, line.Reason = tunnel.False, exceptionOwned
		line.Problem = fmt.Sprintf("belongs to %q", clip(o.foreign, 100))
	case o.problem != nil:
		line.Reason, line.Problem = o.problem.reason, o.problem.message
		if o.problem.unsure {
			line.InSync = tunnel.Unknown
		}
	case o.judged && o.judgedAt == o.rv:
		line.Problem = o.differs
	case o.inSync() && o.scaling == scaledBefore && o.unscaled != nil:
		line.InSync, line.Reason, line.Problem = tunnel.False, exceptionDrifted, o.unscaled.why
	case o.unsure != "":
		line.InSync, line.Reason, line.Problem = tunnel.Unknown, exceptionUnknown, o.unsure
	}
	if p, there := r.problems[o.id]; there {
		line.Reason, line.Problem = p.reason, p.message
	}
}

// lookAtRows fills in how objects differ, as far as there is time.
func (r *release) lookAtRows(ctx context.Context, rows []*liveRow, end *tunnel.LiveEnd) {
	var group errgroup.Group
	group.SetLimit(maxLiveParallel)
	looked := 0
	for _, row := range rows {
		if !row.look {
			continue
		}
		if looked++; looked > maxLiveLooks {
			end.Uncompared++
			continue
		}
		group.Go(func() error {
			r.lookAtRow(ctx, row)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		end.Uncompared = int32(looked) // none of them gives an error
	}
}

// lookAtRow compares one object with what it would be, and says so in its row.
func (r *release) lookAtRow(ctx context.Context, row *liveRow) {
	found, err := r.compare(ctx, row.o)
	for race := 1; race < maxRaces && isRace(err) && ctx.Err() == nil; race++ {
		found, err = r.compare(ctx, row.o)
	}
	if err != nil {
		row.line.InSync, row.line.Reason = tunnel.Unknown, reasonOf(err)
		row.line.Problem = clip("cannot be compared: "+explain(err, isSecret(row.o.id)), maxMessage)
		return
	}
	if len(found) == 0 && row.line.Reason == exceptionDrifted {
		// Spelt differently, or changed back: the engine comes to that by itself.
		row.line.InSync, row.line.Reason = tunnel.True, ""
		return
	}
	if more := len(found) - tunnel.MaxLiveDifferences; more > 0 {
		row.line.MoreDrift = int32(more)
		found = found[:tunnel.MaxLiveDifferences]
	}
	row.line.Drift = found
}
