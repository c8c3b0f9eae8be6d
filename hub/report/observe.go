// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Observe takes over what a cluster's agent reports. It returns when what is
// worth writing was written, or failed to be. In the answer, Taken is what the
// agent may forget: it is in the status, changes nothing there, is progress
// that a later report will replace, or is about a Release that is gone.
// Refused names what is not the cluster's to report.
func (r *Reporter) Observe(ctx context.Context, cluster tunnel.ClusterID, reports []tunnel.Report) tunnel.ReportsAnswer {
	answer := tunnel.ReportsAnswer{Taken: make(map[string]int64, len(reports))}
	refuse := func(uid, why string) {
		if answer.Refused == nil {
			answer.Refused = map[string]string{}
		}
		answer.Refused[uid] = why
		r.metrics.reports.WithLabelValues("refused").Inc()
	}
	current, ok := r.options.Clusters.Cluster(keyOf(cluster))
	known := ok && string(current.UID) == cluster.UID
	type pending struct {
		uid     types.UID
		counter int64
		flushed <-chan struct{}
	}
	var waits []pending
	for i := range reports {
		report := &reports[i]
		uid := types.UID(report.Release.UID)
		if !known {
			refuse(report.Release.UID, "this cluster was deleted on the hub")
			continue
		}
		release, found := r.options.Releases.ReleaseByUID(uid)
		if found && (release.Namespace != cluster.Namespace || release.Spec.ClusterRef.Name != cluster.Name) {
			refuse(report.Release.UID, "this Release is not of this cluster")
			logr.FromContextOrDiscard(ctx).Info("A report about another cluster's Release was refused",
				"cluster", cluster.String(), "release", release.Namespace+"/"+release.Name)
			continue
		}
		if report.Done && (!found || release.DeletionTimestamp != nil) {
			if err := r.options.Orders.Done(ctx, types.UID(cluster.UID), uid, report.Sequence); err != nil {
				logr.FromContextOrDiscard(ctx).Error(err, "An order that was carried out could not be struck off",
					"cluster", cluster.String(), "sequence", report.Sequence)
				continue
			}
		}
		if f := report.Refused; f != nil && f.Reason == v1alpha1.ReasonOrderRefused {
			if err := r.options.Orders.Refused(ctx, types.UID(cluster.UID), uid, report.RefusedSequence, report.Inventory); err != nil {
				logr.FromContextOrDiscard(ctx).Error(err, "An order that was refused could not be issued anew",
					"cluster", cluster.String(), "sequence", report.RefusedSequence)
				continue
			}
		}
		if !found || report.Done && release.DeletionTimestamp != nil {
			r.forget(uid)
			answer.Taken[report.Release.UID] = report.Counter
			r.metrics.reports.WithLabelValues("gone").Inc()
			continue
		}
		taken, flushed := r.hold(uid, report)
		if flushed == nil {
			answer.Taken[report.Release.UID] = taken
			continue
		}
		waits = append(waits, pending{uid, report.Counter, flushed})
	}

	deadline := r.clock.NewTimer(takeTimeout)
	defer deadline.Stop()
	for _, wait := range waits {
		select {
		case <-wait.flushed:
		case <-deadline.C():
			return answer
		case <-ctx.Done():
			return answer
		}
		if r.taken(wait.uid, wait.counter) {
			answer.Taken[string(wait.uid)] = wait.counter
		}
	}
	return answer
}

// hold keeps a report in memory. It returns a channel that is closed after the
// write that the report is waiting for, or nil when it may be forgotten already.
func (r *Reporter) hold(uid types.UID, report *tunnel.Report) (taken int64, flushed <-chan struct{}) {
	now := r.clock.Now()
	urgent := report.Settled || failing(report)
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[uid]
	if e == nil {
		e = &entry{}
		r.entries[uid] = e
	}
	switch {
	case report.Counter < e.seen, report.Counter == e.seen && e.written == e.seen && e.newest == nil:
		r.metrics.reports.WithLabelValues("older").Inc()
		return report.Counter, nil
	case report.Counter > e.seen:
		e.seen = report.Counter
		copied := *report
		copied.Inventory = nil
		e.newest = &copied
		if report.Inventory != nil && report.Sequence > 0 {
			e.inventory = newInventory(report)
		}
		r.metrics.reports.WithLabelValues("held").Inc()
	}
	if urgent {
		if e.flushed == nil {
			e.flushed = make(chan struct{})
		}
		r.queue.AddAfter(uid, coalesceWindow)
		return 0, e.flushed
	}
	if e.motionSince.IsZero() {
		e.motionSince = now
	}
	if e.inventory.leaving() {
		r.queue.AddAfter(uid, max(e.noticed.Add(noticeApart).Sub(now), coalesceWindow))
	}
	r.queue.AddAfter(uid, max(e.motionSince.Add(e.patienceLocked()).Sub(now), coalesceWindow))
	return report.Counter, nil
}

// patienceLocked is how long the newest report may be held in memory. A rollout is
// expected to be in motion; a Release that had settled is not.
func (e *entry) patienceLocked() time.Duration {
	report := e.newest
	if report == nil || e.told || report.Operation == nil || report.Operation.Phase == v1alpha1.PhaseRunning {
		return blockedAfter
	}
	if report.InSync.Status == tunnel.False || report.Healthy.Status == tunnel.False {
		return troubleAfter
	}
	return blockedAfter
}

// taken says whether a report, or a newer one, is written.
func (r *Reporter) taken(uid types.UID, counter int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[uid]; e != nil {
		return e.written >= counter
	}
	_, found := r.options.Releases.ReleaseByUID(uid)
	return !found
}

// flush writes what is held of one Release, if it is worth a write now.
func (r *Reporter) flush(ctx context.Context, uid types.UID) {
	r.mu.Lock()
	e := r.entries[uid]
	if e == nil || e.newest == nil {
		if e != nil {
			e.wakeLocked()
		}
		r.mu.Unlock()
		return
	}
	report, list, since, session, noticed := e.newest, e.inventory, e.motionSince, e.session, e.noticed
	patience := e.patienceLocked()
	r.mu.Unlock()

	urgent := report.Settled || failing(report)
	now := r.clock.Now()
	noticeDue := now.Sub(noticed) >= noticeApart
	if !noticeDue && !report.Settled && list.leaving() {
		r.queue.AddAfter(uid, noticed.Add(noticeApart).Sub(now))
		list = nil
	}
	if !urgent && now.Sub(since) < patience {
		r.queue.AddAfter(uid, since.Add(patience).Sub(now))
		r.notice(ctx, uid, e, list)
		return
	}
	news := !report.Settled && r.newTroubles(uid, report)
	if news && !noticeDue {
		r.queue.AddAfter(uid, noticed.Add(noticeApart).Sub(now))
	}
	err := r.writeReport(ctx, uid, report, list, news && noticeDue)

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[uid] != e {
		return
	}
	if err != nil {
		e.wakeLocked()
		r.queue.AddAfter(uid, retryAfter)
		return
	}
	if e.session == session {
		e.written = max(e.written, report.Counter)
	}
	if (report.Settled || list.leaving()) && e.inventory == list {
		e.inventory = nil
	}
	if news && noticeDue || !report.Settled && list.leaving() {
		e.noticed = now
	}
	newer := e.newest != report
	switch {
	case report.Settled:
		e.motionSince, e.told = time.Time{}, false
		if !newer {
			e.newest = nil
		}
	case !urgent:
		// Looked at again after as long a time, in case something else blocks then.
		e.motionSince, e.told = r.clock.Now(), true
		r.queue.AddAfter(uid, blockedAfter)
	default:
		e.motionSince = r.clock.Now()
	}
	if newer && (e.newest.Settled || failing(e.newest)) {
		// Whoever sent the newer one goes on waiting for its own write.
		r.queue.AddAfter(uid, coalesceWindow)
		return
	}
	e.wakeLocked()
}

// writeReport writes inventory and status; what would change nothing is left out.
// troubles: one that only names other objects in trouble is made.
func (r *Reporter) writeReport(ctx context.Context, uid types.UID, report *tunnel.Report, list *inventory, troubles bool) error {
	release, ok := r.options.Releases.ReleaseByUID(uid)
	if !ok {
		r.forget(uid)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if report.Settled || list.leaving() {
		if err := r.keepInventory(ctx, release, list); err != nil {
			return err
		}
	}
	last := r.options.Orders.LastOrder(uid)
	err := r.writeRelease(ctx, release, releaseChange{
		onlyConditions: !report.Settled, troubles: troubles,
		fold: func(next *v1Release) error {
			foldReport(next, report, last, r.clock.Now())
			return nil
		},
		reported: true,
	})
	if isGone(err) {
		r.forget(uid)
		return nil
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "A report could not be written",
			"release", release.Namespace+"/"+release.Name, "sequence", report.Sequence)
		return fmt.Errorf("write the report of %s/%s: %w", release.Namespace, release.Name, err)
	}
	// The cluster may have been lost since the report came, and the sweep have passed
	// here before the write.
	key := types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name}
	if cluster, ok := r.options.Clusters.Cluster(key); !ok || !cluster.Status.Reachable {
		r.sweeps.Add(key)
	}
	return nil
}

// keepInventory writes an inventory of a Release that stays, if there is one to write.
func (r *Reporter) keepInventory(ctx context.Context, release *v1Release, list *inventory) error {
	if list == nil || release.DeletionTimestamp != nil {
		return nil
	}
	err := r.writeInventory(ctx, release, list)
	if err != nil {
		r.metrics.writes.WithLabelValues("inventory", "failed").Inc()
		logr.FromContextOrDiscard(ctx).Error(err, "The inventory of a Release could not be written",
			"release", release.Namespace+"/"+release.Name, "sequence", list.sequence)
	}
	return err
}

// newTroubles says whether a report names other objects in trouble than the status does.
func (r *Reporter) newTroubles(uid types.UID, report *tunnel.Report) bool {
	release, ok := r.options.Releases.ReleaseByUID(uid)
	if !ok {
		return false
	}
	list, _ := exceptions(report)
	return !sameTroubles(release.Status.Exceptions, list)
}

// notice writes an inventory, while all else waits, that shows what is held while it is
// deleted.
func (r *Reporter) notice(ctx context.Context, uid types.UID, e *entry, list *inventory) {
	release, ok := r.options.Releases.ReleaseByUID(uid)
	if !ok || !list.leaving() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := r.keepInventory(ctx, release, list); err != nil {
		r.queue.AddAfter(uid, retryAfter)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.noticed = r.clock.Now(); e.inventory == list {
		e.inventory = nil
	}
}
