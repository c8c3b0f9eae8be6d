// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Take looks at signed orders that a Cluster's agent gives back, since the hub asked
// for them: it holds newer ones than the hub, or some that the hub does not have. A
// hub that was restored from an older copy heals by it: what it signed itself, and
// nothing else, it believes.
//
//   - A Release of that UID and an apply order newer than its own: the order is
//     adopted (status.adopted), and nothing is rolled back until the inputs of the
//     render change or somebody asks for a sync.
//   - No such Release: it is listed in the Cluster's status, and kept there.
//   - Signed by a key that is not at hand: counted in the Cluster's condition.
//
// ErrGone: the Cluster was deleted; ErrTooMany: more than tunnel.MaxHeld at once. Any
// other error means that the agent has to give them back once more.
func (r *Reporter) Take(ctx context.Context, cluster tunnel.ClusterID, held []tunnel.Signed) error {
	if len(held) > tunnel.MaxHeld {
		return fmt.Errorf("%w: %d", ErrTooMany, len(held))
	}
	current, ok := r.options.Clusters.Cluster(keyOf(cluster))
	if !ok || string(current.UID) != cluster.UID {
		return ErrGone
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("cluster", cluster.String())
	var taken []string
	var failures error
	adopted := 0
	for _, signed := range held {
		order, err := r.options.Orders.Verify(signed)
		if errors.Is(err, tunnel.ErrSignature) {
			// What it says is not believed; of it only the UID is counted.
			if claimed, err := tunnel.ParseOrder(signed.Payload); err == nil {
				r.foundForeign(current.UID, claimed.Release.UID, claimed.Sequence)
				taken = append(taken, claimed.Release.UID)
			}
			continue
		}
		if err != nil {
			log.Info("What was given back is no order of this hub", "keyID", signed.KeyID)
			continue
		}
		if !r.fits(order, cluster) {
			log.Info("An order that was given back is none for this Cluster", "release", order.Release.Namespace+"/"+order.Release.Name, "sequence", order.Sequence)
			if _, here := r.options.Releases.ReleaseByUID(types.UID(order.Release.UID)); here {
				taken = append(taken, order.Release.UID) // of the Cluster before; nothing is lost with it
			}
			continue
		}
		took, err := r.takeOne(ctx, cluster, order, signed)
		if err != nil {
			failures = errors.Join(failures, err)
			continue
		}
		if took {
			adopted++
			log.Info("An order that this hub had lost was given back; nothing is rolled back",
				"release", order.Release.Namespace+"/"+order.Release.Name, "sequence", order.Sequence, "digest", order.Objects.Digest)
		}
		taken = append(taken, order.Release.UID)
	}
	r.mu.Lock()
	if h := r.holdings[current.UID]; h != nil {
		for _, uid := range taken {
			delete(h.missing, uid)
		}
		if len(h.missing) == 0 {
			r.losses.Add(current.UID)
		}
	}
	r.mu.Unlock()
	r.options.Orders.Taken(current.UID, taken)
	if adopted > 0 {
		r.metrics.adopted.Add(float64(adopted))
		r.asks.Add(cluster) // the stored state is older than the order
	}
	return failures
}

// fits says whether an order is for a Cluster, or was for one that is gone: the
// Cluster of now was made anew for the same target, when the hub had lost all.
func (r *Reporter) fits(order tunnel.Order, cluster tunnel.ClusterID) bool {
	if order.ClusterUID == cluster.UID {
		return true
	}
	_, other := r.options.Clusters.ClusterByUID(types.UID(order.ClusterUID))
	_, release := r.options.Releases.ReleaseByUID(types.UID(order.Release.UID))
	return !other && !release
}

// takeOne looks at an order of ours for this Cluster. It says whether the order
// was adopted.
func (r *Reporter) takeOne(ctx context.Context, cluster tunnel.ClusterID, order tunnel.Order, signed tunnel.Signed) (bool, error) {
	uid := types.UID(order.Release.UID)
	release, found := r.options.Releases.ReleaseByUID(uid)
	switch {
	case order.Verb != tunnel.VerbApply:
		// The agent is taking something away, as it was ordered; or has, and says so.
		return false, nil
	case !found:
		r.foundUnknown(types.UID(cluster.UID), v1alpha1.UnknownRelease{
			Namespace: clip(order.Release.Namespace, maxName), Name: clip(order.Release.Name, maxName), UID: order.Release.UID,
			Sequence: order.Sequence, RenderRef: order.Objects.Digest,
		})
		return false, nil
	case release.Namespace != cluster.Namespace || release.Spec.ClusterRef.Name != cluster.Name:
		return false, nil
	case order.Sequence <= release.Status.Sequence || release.DeletionTimestamp != nil:
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	adopted := false
	err := r.writeRelease(ctx, release, releaseChange{fold: func(next *v1Release) error {
		adopted = foldAdopted(next, order, signed, r.newest(uid), r.clock.Now())
		return nil
	}})
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("adopt order %d of %s/%s: %w", order.Sequence, release.Namespace, release.Name, err)
	}
	return adopted, nil
}

func (r *Reporter) foundUnknown(cluster types.UID, release v1alpha1.UnknownRelease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.holdings[cluster]; h.asked(release.UID) {
		h.addUnknown(release)
	}
}

func (r *Reporter) foundForeign(cluster types.UID, release string, sequence int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.holdings[cluster]; h.asked(release) {
		h.addForeign(release, sequence)
	}
}

// foldAdopted makes an order that was given back the current one. False: the hub has
// one that is as new.
func foldAdopted(release *v1alpha1.Release, order tunnel.Order, signed tunnel.Signed, newest *tunnel.Report, now time.Time) bool {
	status := &release.Status
	if order.Sequence <= status.Sequence {
		return false
	}
	o := start(release, 0, now)
	before := status.InputsHash
	if status.Adopted != nil {
		before = status.Adopted.InputsHash
	}
	status.Adopted = &v1alpha1.AdoptedOrder{Sequence: order.Sequence, InputsHash: before, At: metav1.NewTime(now.Truncate(time.Second))}
	status.Order = &v1alpha1.OrderStatus{
		Sequence: order.Sequence, Payload: string(signed.Payload),
		Signature: base64.StdEncoding.EncodeToString(signed.Signature), KeyID: signed.KeyID,
	}
	status.Sequence, status.SourceRevision, status.RenderRef = order.Sequence, order.Revision, order.Objects.Digest
	if status.Render == nil || status.Render.Objects.Digest != order.Objects.Digest {
		status.Render = &v1alpha1.RenderStatus{Objects: v1alpha1.LayerReference(*order.Objects), TargetNamespace: order.Policy.Namespace}
		if newest != nil && newest.Sequence == order.Sequence {
			status.Render.Count = newest.Counts.Total
		}
	}
	if status.Render.Hooks == 0 && slices.Contains(order.Requires, tunnel.FeatureHooks) {
		status.Render.Hooks = 1 // how many is not known, that there are some is
	}
	status.Render.Sealed = v1alpha1.LayerReference{}
	if order.Sealed != nil {
		status.Render.Sealed = v1alpha1.LayerReference(*order.Sealed)
	}
	status.HeldDeletion = nil
	// The spec of now is that of the hub's past: only a later change of it counts.
	status.ObservedGeneration = release.Generation
	o.Generation = release.Generation
	o.Rendered = &Finding{metav1.ConditionTrue, v1alpha1.ReasonRendered, RenderedMessage(status.Render.Count, order.Revision)}
	o.Ordered, o.Adopted = order.Sequence, order.Sequence
	status.Conditions = conditions(o)
	if newest != nil && newest.Sequence == order.Sequence {
		foldReport(release, newest, 0, now) // it came before the order did
	}
	return true
}

// RenderedMessage is what a Rendered condition says of a render that was made.
func RenderedMessage(count int32, revision string) string {
	return fmt.Sprintf("%d objects of %s", count, revision)
}

// behindNote says what an adopted order means.
func behindNote(sequence int64) string {
	return fmt.Sprintf("HubBehind: order %d, which this hub had lost, was given back by the agent; "+
		"nothing is rolled back until the source or the spec changes, or somebody asks for a sync", sequence)
}
