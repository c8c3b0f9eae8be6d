// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// lost is what a Cluster's agent holds and this hub has lost.
type lost struct {
	// known: the agent has said to this process what it holds, and has given back
	// what it was asked for, or was waited for long enough.
	known bool
	// adopted counts Releases that run an order that was given back.
	adopted int
	// unknown are Releases that do not exist here, the first few; unknownCount all.
	unknown      []v1alpha1.UnknownRelease
	unknownCount int32
	// foreign counts orders signed by a key that is not at hand, missing those that
	// were not given back.
	foreign, missing int
}

// nothing: the hub has all that the agent has, as far as is known.
func (l lost) nothing() bool {
	return l.adopted == 0 && l.unknownCount == 0 && l.foreign == 0 && l.missing == 0
}

// holding is what one agent gave back, or was asked for. Guarded by the Reporter's
// lock.
type holding struct {
	// missing are asked for and not given back yet.
	missing map[string]struct{}
	// until is how long these are waited for.
	until time.Time
	// unknown and foreign, by Release UID; of the latter the sequence that they claim.
	unknown map[string]v1alpha1.UnknownRelease
	foreign map[string]int64
}

// Compared is told what a Cluster's agent holds that is newer than what the hub
// has, or unknown to it: all of it, at each new session. It does not block.
func (r *Reporter) Compared(cluster types.UID, newer []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.holdings[cluster]
	next := &holding{until: r.clock.Now().Add(heldPatience)}
	for _, uid := range newer {
		if old != nil {
			// Known from an earlier session. It is given back once more all the same.
			if release, ok := old.unknown[uid]; ok {
				next.addUnknown(release)
				continue
			}
			if sequence, ok := old.foreign[uid]; ok {
				next.addForeign(uid, sequence)
				continue
			}
		}
		if next.missing == nil {
			next.missing = map[string]struct{}{}
		}
		next.missing[uid] = struct{}{}
	}
	r.holdings[cluster] = next
	if len(next.missing) == 0 {
		r.losses.Add(cluster)
		return
	}
	r.losses.AddAfter(cluster, heldPatience)
}

// asked says whether the last comparison asked for the order of a Release. What comes
// beyond that, unasked or late from the session before, is not what the agent holds.
func (h *holding) asked(uid string) bool {
	if h == nil {
		return false
	}
	_, missing := h.missing[uid]
	_, unknown := h.unknown[uid]
	_, foreign := h.foreign[uid]
	return missing || unknown || foreign
}

func (h *holding) addUnknown(release v1alpha1.UnknownRelease) {
	if h.unknown == nil {
		h.unknown = map[string]v1alpha1.UnknownRelease{}
	}
	h.unknown[release.UID] = release
	delete(h.foreign, release.UID)
}

func (h *holding) addForeign(uid string, sequence int64) {
	if h.foreign == nil {
		h.foreign = map[string]int64{}
	}
	h.foreign[uid] = sequence
	delete(h.unknown, uid)
}

// patience is how much longer what was asked for is waited for; 0: no longer.
func (h *holding) patience(now time.Time) time.Duration {
	if h == nil || len(h.missing) == 0 {
		return 0
	}
	return max(0, h.until.Sub(now))
}

// ReleaseChanged is told of each change of a Release in the cache. It does not
// block.
func (r *Reporter) ReleaseChanged(old, next *v1alpha1.Release) {
	was, is := old != nil && old.Status.Adopted != nil, next != nil && next.Status.Adopted != nil
	release := next
	if release == nil {
		release = old
		r.mu.Lock()
		delete(r.forgotten, old.UID)
		r.mu.Unlock()
	}
	ran, runs := running(old), running(next)
	if was == is && ran == runs {
		return
	}
	cluster, ok := r.options.Clusters.Cluster(types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ClusterRef.Name})
	if !ok || was == is && meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHubBehind) == nil {
		return
	}
	r.losses.Add(cluster.UID)
}

// running says whether a Release has been applied in full.
func running(release *v1alpha1.Release) bool {
	return release != nil && meta.IsStatusConditionTrue(release.Status.Conditions, v1alpha1.ConditionApplied)
}

// lost counts what a Cluster's agent holds beyond the hub.
func (r *Reporter) lost(cluster types.NamespacedName, uid types.UID) lost {
	var out lost
	// Those that were made anew under the name and took the objects over, and the
	// sequences of what runs.
	taken, runs := map[types.NamespacedName]bool{}, map[string]int64{}
	for _, release := range r.options.Releases.ReleasesByCluster(cluster) {
		if release.Status.Adopted != nil {
			out.adopted++
		}
		if running(release) {
			taken[types.NamespacedName{Namespace: release.Namespace, Name: release.Name}] = true
			runs[string(release.UID)] = release.Status.Sequence
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.holdings[uid]
	if h == nil || h.patience(r.clock.Now()) > 0 {
		return out
	}
	for uid, sequence := range h.foreign {
		if runs[uid] > sequence {
			delete(h.foreign, uid) // an order of ours has taken its place
		}
	}
	out.known, out.foreign, out.missing = true, len(h.foreign), len(h.missing)
	for at, release := range h.unknown {
		if taken[types.NamespacedName{Namespace: release.Namespace, Name: release.Name}] {
			delete(h.unknown, at)
			continue
		}
		out.unknown = append(out.unknown, release)
	}
	slices.SortFunc(out.unknown, func(a, b v1alpha1.UnknownRelease) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	out.unknownCount = int32(len(out.unknown)) //nolint:gosec // at most tunnel.MaxOrders
	out.unknown = slices.Clip(out.unknown[:min(len(out.unknown), maxUnknown)])
	return out
}

func (r *Reporter) lossLoop(ctx context.Context) {
	for {
		uid, shutdown := r.losses.Get()
		if shutdown {
			return
		}
		if err := r.writeLosses(ctx, uid); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "What an agent holds beyond the hub could not be written down")
			r.losses.AddAfter(uid, retryAfter)
		}
		r.losses.Done(uid)
	}
}

// writeLosses brings the Cluster's status in line with what is held in memory; when
// it is, nothing is read from storage.
func (r *Reporter) writeLosses(ctx context.Context, uid types.UID) error {
	cached, ok := r.options.Clusters.ClusterByUID(uid)
	if !ok {
		r.mu.Lock()
		delete(r.holdings, uid)
		delete(r.resets, uid)
		r.mu.Unlock()
		return nil
	}
	r.mu.Lock()
	wait := r.holdings[uid].patience(r.clock.Now())
	r.mu.Unlock()
	if wait > 0 {
		// The queue keeps one time for each Cluster, the earliest: it may have been that of
		// the session before.
		r.losses.AddAfter(uid, wait)
	}
	behindBefore := meta.FindStatusCondition(cached.Status.Conditions, v1alpha1.ConditionHubBehind) != nil
	key := types.NamespacedName{Namespace: cached.Namespace, Name: cached.Name}
	lost := r.lost(key, uid)
	if lost.nothing() && !behindBefore && cached.Status.UnknownReleaseCount == 0 {
		return nil // as at nearly every connect
	}
	next := cached.DeepCopy()
	r.composeCluster(cached, next, lost, r.newestIfHeld(key))
	if equality.Semantic.DeepEqual(cached.Status, next.Status) {
		return nil
	}
	behind := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.ConditionHubBehind)
	err := r.Cluster(ctx, key, uid, func(*v1alpha1.ClusterStatus) error { return nil })
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err == nil && behind != nil && !behindBefore {
		logr.FromContextOrDiscard(ctx).Info("The hub is behind one of its agents", "cluster", key.String(), "what", behind.Message)
	}
	return err
}
