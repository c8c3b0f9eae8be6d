// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/api/core/v1alpha1"
	judged "kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Some objects are there to end: a Job, a Pod that is not restarted, whatever is annotated
// so. When one has, the cluster may take it away, and to make it again would do its work
// again, each time. One that was seen to have ended and is gone is spent: it counts as it
// ended, and is made again when its line of the render changes or a sync is forced.

// onceTrue is the value of v1alpha1.AnnotationOnce that means something.
const onceTrue = "true"

// ended is kept of an object that was seen to have ended.
type ended struct {
	uid    string
	failed bool
}

// Values of Entry.Ended.
const (
	endedWell   = "Succeeded"
	endedFailed = "Failed"
)

func (e *ended) String() string {
	switch {
	case e == nil:
		return ""
	case e.failed:
		return endedFailed
	}
	return endedWell
}

// verdict is what is told of the health of an object that has ended, and is gone or on its
// way out.
func (e *ended) verdict(gone bool) judged.Verdict {
	v := judged.Verdict{State: healthy, Message: "has ended, and is being removed"}
	if e.failed {
		v = judged.Verdict{State: degraded, Message: "has failed, and is being removed", Final: true}
	}
	if gone {
		word := map[bool]string{false: "has ended", true: "has failed"}[e.failed]
		v.Message = word + ", and was removed since: it is made again when its part of the render changes, or a sync is forced"
	}
	return v
}

// over says whether the object that we applied was seen to have ended.
func (o *object) over() bool { return o.ended != nil && o.uid != "" && o.ended.uid == o.uid }

// spent says whether it is gone, and is not missed.
func (o *object) spent() bool { return o.missing && o.over() }

// there says whether an object counts as one that is there.
func (o *object) there() bool { return !o.missing || o.over() }

// endOf says whether a live object has ended so that it may go. A Job does when it says
// for how long it stays, a Pod when it has succeeded: one that failed may have been
// evicted. Anything else has to be annotated, and ends when it is healthy, or has failed
// for good.
func endOf(id manifest.Identity, live map[string]any, annotations map[string]string, v judged.Verdict) outcome {
	once := annotations[v1alpha1.AnnotationOnce] == onceTrue
	switch {
	case isJob(id):
		if state, _ := jobOutcome(live); once || expires(live) {
			return state
		}
	case id.Group == "" && id.Kind == "Pod":
		if state, _ := podOutcome(live); state == outcomeDone || once {
			return state
		}
	case once && v.State == healthy:
		return outcomeDone
	case once && v.State == degraded && v.Final:
		return outcomeFailed
	}
	return outcomeOpen
}

func isJob(id manifest.Identity) bool { return id.Group == "batch" && id.Kind == "Job" }

// expires says whether a Job says for how long it stays when it has ended.
func expires(job map[string]any) bool {
	_, found, err := unstructured.NestedFieldNoCopy(job, "spec", "ttlSecondsAfterFinished")
	return found && err == nil
}

// endLocked takes in what a state of an object says of its end. What is being deleted
// may say nothing of it any more. That it has ended is written down at once: it may be gone
// when the next run begins.
func (r *release) endLocked(o *object, uid string, state outcome, deleting bool) {
	switch state {
	case outcomeDone, outcomeFailed:
		if o.ended == nil || o.ended.uid != uid || o.ended.failed != (state == outcomeFailed) {
			o.ended = &ended{uid: uid, failed: state == outcomeFailed}
			r.saveSoonLocked()
		}
	case outcomeOpen, outcomeDoubtful:
		if o.ended != nil && (!deleting || o.ended.uid != uid) {
			o.ended = nil
		}
	}
}

// lastState takes in the state that an object had when it went, as far as that says
// whether it had ended.
func (r *release) lastState(o *object, live map[string]any) {
	state := endOf(o.id, live, annotationTexts(live), r.judge(live))
	if state != outcomeDone && state != outcomeFailed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if uid := metaText(live, "uid"); r.objects[o.id] == o && o.uid == uid {
		r.endLocked(o, uid, state, true)
	}
}

// mayEnd says whether the last state of an object, as a watch shows it, is worth a look.
func mayEnd(id manifest.Identity, raw []byte) bool {
	return isRun(id) || bytes.Contains(raw, []byte(v1alpha1.AnnotationOnce))
}

// anew says whether an order asks for objects that have ended to be made again, and has
// not had this one made yet.
func (o *object) anew(order tunnel.Order) bool {
	return order.Force && (o.render == nil || o.render.Sequence != order.Sequence)
}

// spentItem says whether what a render has for an object that is not there was done with
// before, and takes it down as that.
func (r *release) spentItem(ctx context.Context, order tunnel.Order, p *plan, it *item, o *object, content map[string]any) bool {
	r.mu.Lock()
	same := o.applied && o.uid != "" && o.digest == it.digest && !o.anew(order)
	r.mu.Unlock()
	if !same || !r.endedAway(ctx, o, it.res, content) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	o.line, o.wave, o.render, o.orphaned = it.line, it.wave, p.render, false
	it.failed, it.class, it.checked = nil, 0, false
	return true
}

// endedAway says whether an object that is gone had ended, and shows it as spent then: it
// was seen to end, or it is a Job that says for how long it stays, and the Event that tells
// of its end is still there. Where that cannot be told, it had not.
func (r *release) endedAway(ctx context.Context, o *object, res *resource, content map[string]any) bool {
	r.mu.Lock()
	uid, known := o.uid, o.over()
	r.mu.Unlock()
	if !known {
		once := annotationTexts(content)[v1alpha1.AnnotationOnce] == onceTrue
		if uid == "" || res == nil || !isJob(o.id) || !once && !expires(content) || !r.completed(ctx, o.id.Namespace, uid) {
			return false
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.uid != uid || r.objects[o.id] != o {
		return false
	}
	before := o.view()
	if !known {
		r.endLocked(o, uid, outcomeDone, true)
	}
	o.seen, o.missing, o.entryGone, o.other = true, true, false, ""
	r.goneLocked(o)
	r.reviewLocked(o, before, r.now())
	return true
}

// goneLocked sets what is told of the health of an object that is gone.
func (r *release) goneLocked(o *object) {
	r.roughenLocked(o)
	o.health, o.why = progressing, "does not exist"
	if ns := r.objects[manifest.Identity{Kind: kindNamespace, Name: o.id.Namespace}]; ns != nil && ns.health == terminating {
		o.why = fmt.Sprintf("does not exist, since namespace %q is being deleted", o.id.Namespace)
	}
	if o.over() {
		v := o.ended.verdict(true)
		o.health, o.why = v.State, v.Message
	}
}

// completed says whether there is an Event of a Job, by its UID, which tells that it has
// completed.
func (r *release) completed(ctx context.Context, namespace, uid string) bool {
	body, _, err := r.runner.target.call(ctx, request{
		verb: "list", method: http.MethodGet, path: resource{version: "v1", plural: "events", namespaced: true}.path(namespace, ""),
		query: url.Values{"fieldSelector": {fmt.Sprintf("involvedObject.uid=%s,reason=Completed", uid)}, "limit": {"1"}}, accept: typeMetaList,
	})
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	return err == nil && json.Unmarshal(body, &list) == nil && len(list.Items) > 0
}

// saveSoonLocked has the record written at once, also in the middle of an operation.
func (r *release) saveSoonLocked() {
	r.endedNew = true
	if r.saveAt.IsZero() {
		r.saveAt = r.now()
		r.wakeLocked()
	}
}
