// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Accept takes an order whose signature was verified. An order that is known already
// is no error; one that is refused gives a *Refusal, and is reported.
func (rn *Runner) Accept(order tunnel.Order, signed tunnel.Signed) error {
	uid := order.Release.UID
	rn.mu.Lock()
	r := rn.releases[uid]
	count := len(rn.releases)
	rn.mu.Unlock()
	held := int64(0)
	if r != nil {
		r.mu.Lock()
		held = r.order.Sequence
		r.mu.Unlock()
	}
	if r != nil && order.Sequence == held && order.ClusterUID == rn.cluster && order.Hub == rn.hub {
		return nil
	}
	refusal := rn.check(order, held)
	rules, err := compileIgnores(order.Ignore)
	if refusal == nil && err != nil {
		refusal = &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: fmt.Errorf("%w: %w", ErrMalformed, err)}
	}
	if refusal == nil && r != nil {
		if err := r.fenceError(order); err != nil {
			refusal = &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: err}
		}
	}
	if refusal == nil && r == nil && count >= maxReleases {
		refusal = &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: ErrTooMany}
	}
	if refusal != nil {
		rn.refuse(r, order, refusal)
		return refusal
	}
	if r == nil {
		r = rn.getOrMake(uid)
	}
	defer rn.waves.changed() // when r is unlocked
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		// Its last order was acknowledged this moment. A UID is never used again, so
		// this order can only be older.
		return &Refusal{Reason: v1alpha1.ReasonOrderRefused, Sequence: order.Sequence, Err: ErrOlderSequence}
	}
	if order.Sequence <= r.order.Sequence {
		return nil // another call was quicker
	}
	r.order, r.signed, r.ref = order, signed, order.Release
	rn.waves.learn(order)
	r.adoptRulesLocked(rules)
	r.log = rn.log.WithValues("release", uid, "name", order.Release.Namespace+"/"+order.Release.Name)
	r.retryAt, r.retries = time.Time{}, 0
	r.refusal, r.refused = nil, 0
	r.done, r.doneAt = false, 0
	r.wakeLocked()
	return nil
}

// check says why an order cannot be accepted; nil: it can.
func (rn *Runner) check(order tunnel.Order, held int64) *Refusal {
	refuse := func(reason string, err error) *Refusal {
		return &Refusal{Reason: reason, Sequence: order.Sequence, Err: err}
	}
	switch {
	case order.Hub != rn.hub:
		return refuse(v1alpha1.ReasonOrderRefused, ErrOtherHub)
	case order.ClusterUID != rn.cluster:
		return refuse(v1alpha1.ReasonOrderRefused, ErrOtherCluster)
	case order.Release.UID == "":
		return refuse(v1alpha1.ReasonOrderRefused, ErrMalformed)
	case order.Sequence <= held:
		return refuse(v1alpha1.ReasonOrderRefused, ErrOlderSequence)
	case order.Sequence > rn.hubTime().Add(maxAhead).UnixMilli():
		return refuse(v1alpha1.ReasonOrderRefused, ErrAheadOfTime)
	case rn.tooOld(order):
		return refuse(v1alpha1.ReasonOrderRefused, ErrTooOld)
	}
	for _, f := range order.Requires {
		if !features[f] {
			return refuse(v1alpha1.ReasonAgentTooOld, fmt.Errorf("%w: %s", ErrFeatureMissing, clip(f, 64)))
		}
	}
	if order.ServiceAccount != "" && !accountForm.MatchString(order.ServiceAccount) {
		return refuse(v1alpha1.ReasonOrderRefused, fmt.Errorf("%w: service account %s", ErrMalformed, clip(order.ServiceAccount, 100)))
	}
	if !propagates(order.Policy.Propagation) {
		return refuse(v1alpha1.ReasonOrderRefused, fmt.Errorf("%w: propagation %s", ErrMalformed, clip(order.Policy.Propagation, 64)))
	}
	switch order.Verb {
	case tunnel.VerbRemove, tunnel.VerbRelease:
		return nil
	case tunnel.VerbApply:
		if order.Objects == nil || !fits(*order.Objects) || (order.Sealed != nil && !fits(*order.Sealed)) ||
			(order.Rules != nil && (!fits(*order.Rules) || order.Rules.Size > maxRules)) {
			return refuse(v1alpha1.ReasonOrderRefused, fmt.Errorf("%w: layers", ErrMalformed))
		}
		return nil
	}
	return refuse(v1alpha1.ReasonAgentTooOld, fmt.Errorf("%w: verb %s", ErrFeatureMissing, clip(string(order.Verb), 64)))
}

// fits says whether a layer is named as layers are, and small enough.
func fits(layer tunnel.Layer) bool {
	return digestForm.MatchString(layer.Digest) && layer.Size > 0 && layer.Size <= maxLayer
}

// refuse reports that an order was not accepted. What runs stays as it is.
func (rn *Runner) refuse(r *release, order tunnel.Order, refusal *Refusal) {
	rn.log.Info("order refused", "release", order.Release.UID, "sequence", order.Sequence, "reason", refusal.Reason, "error", refusal.Err.Error())
	rn.tellRefused(r, order.Release, order.Sequence, tunnel.Finding{Status: tunnel.False, Reason: refusal.Reason, Message: refusal.Error()})
}

func (rn *Runner) tellRefused(r *release, ref tunnel.ReleaseRef, sequence int64, finding tunnel.Finding) {
	rn.meter.refusals.WithLabelValues(finding.Reason).Inc()
	finding.Message = clip(finding.Message, maxMessage)
	if r != nil {
		r.mu.Lock()
		r.refusal, r.refused, r.dirty = &finding, sequence, true
		r.wakeLocked()
		r.mu.Unlock()
		return
	}
	if ref.UID == "" {
		return
	}
	unknown := tunnel.Finding{Status: tunnel.Unknown, Reason: v1alpha1.ReasonOrderRefused}
	rn.out(tunnel.Report{
		Release: ref, Counter: rn.moments.next(), Refused: &finding, RefusedSequence: sequence,
		Settled: true, Applied: finding, InSync: unknown, Healthy: unknown, At: rn.moments.told(rn.clock.Now()),
	})
}

// Refuse reports an order that was not accepted for a reason found before Accept, as
// a signature that does not verify. What runs stays as it is.
func (rn *Runner) Refuse(release tunnel.ReleaseRef, sequence int64, finding tunnel.Finding) {
	rn.mu.Lock()
	r := rn.releases[release.UID]
	rn.mu.Unlock()
	rn.tellRefused(r, release, sequence, finding)
}
