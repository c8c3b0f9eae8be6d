// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"strings"
)

// Refusals of an order. Refusal wraps one of them.
var (
	// ErrOlderSequence: an order as new or newer was accepted before.
	ErrOlderSequence = errors.New("a newer order was accepted before")
	// ErrAheadOfTime: the sequence is more than a day ahead of the hub's time.
	ErrAheadOfTime = errors.New("the sequence is more than a day ahead of the hub's time")
	// ErrOtherHub: the order is of another hub than the one that was joined.
	ErrOtherHub = errors.New("the order is of another hub")
	// ErrOtherCluster: the order is for another Cluster.
	ErrOtherCluster = errors.New("the order is for another cluster")
	// ErrFeatureMissing: the order requires what this agent cannot do.
	ErrFeatureMissing = errors.New("the order requires a feature that this agent lacks")
	// ErrMalformed: the order lacks what its verb needs.
	ErrMalformed = errors.New("the order is malformed")
	// ErrInventoryMoved: a remove order is about an inventory that is no more.
	ErrInventoryMoved = errors.New("the inventory has moved on")
	// ErrTooOld: a remove order was issued more than 30 days ago.
	ErrTooOld = errors.New("the order was issued more than 30 days ago")
	// ErrTooMany: the Runner keeps as many Releases as it can.
	ErrTooMany = errors.New("too many releases")
)

// ErrNotStored is what Renders.Open answers, wrapped, for a digest that is not there.
var ErrNotStored = errors.New("not stored")

// ErrNotLoaded: the state that an earlier run left is not read yet.
var ErrNotLoaded = errors.New("the state is not read yet")

// StateError says that a State could not read or write what it keeps, in a Secret that it
// names as <namespace>/<name>.
type StateError struct {
	Secret string
	Write  bool
	Err    error
}

func (e *StateError) Error() string { return e.says() + e.Err.Error() }
func (e *StateError) Unwrap() error { return e.Err }

// says keeps what is wrong with the state apart from what is wrong with a render.
func (e *StateError) says() string {
	do := "read"
	if e.Write {
		do = "keep"
	}
	return fmt.Sprintf("the agent cannot %s its state (Secret %s): ", do, clip(e.Secret, 200))
}

// Refusal says that an order was not accepted, and in a word of the API why.
type Refusal struct {
	Reason   string
	Sequence int64
	Err      error
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("order %d refused: %v", r.Sequence, r.Err)
}

func (r *Refusal) Unwrap() error { return r.Err }

// Errors inside the room.
var (
	errSuperseded  = errors.New("superseded by a newer order")
	errStopped     = errors.New("the runner stops")
	errUnknownKind = errors.New("the cluster does not serve this kind")
	errRaced       = errors.New("the object kept changing")
	errHeld        = errors.New("deletions wait to be confirmed")
)

// compareError: whether an object differs from what we applied could not be found out.
type compareError struct{ err error }

func (e *compareError) Error() string { return "cannot be compared: " + e.err.Error() }
func (e *compareError) Unwrap() error { return e.err }

// renderError says that a render is not what was ordered, or must not be applied.
type renderError struct {
	reason string
	err    error
}

func (e *renderError) Error() string { return e.err.Error() }
func (e *renderError) Unwrap() error { return e.err }

// ownedByOtherError names the owner found on an object: its mark, and the Release's
// namespace and name on the hub if it is known here. elsewhere: it may be one of
// another Cluster of the hub, which stands for the same target.
type ownedByOtherError struct {
	owner, name string
	elsewhere   bool
}

func (e *ownedByOtherError) Error() string {
	if e.name != "" {
		return fmt.Sprintf("belongs to Release %s (%s)", clip(e.name, 100), clip(e.owner, 100))
	}
	if e.elsewhere {
		return fmt.Sprintf("belongs to %q: another Cluster of this hub stands for the same cluster, and it may be a Release there", clip(e.owner, 100))
	}
	return fmt.Sprintf("belongs to %q", clip(e.owner, 100))
}

// keptError: an object is not deleted to be made anew, since an annotation keeps it, or
// data would go with it; without a why, since none of its kind is.
type keptError struct{ why string }

func (e *keptError) Error() string {
	if e.why == "" {
		return "no object of its kind is deleted to be made anew"
	}
	return e.why + " keeps it from being deleted and made anew, whatever the policy says"
}

// outsideError: the object lies outside of the namespaces that this Runner is bound
// to.
type outsideError struct {
	namespace string // empty: the kind has none
	bound     []string
}

func (e *outsideError) Error() string {
	names := clip(strings.Join(e.bound, ", "), 200)
	if e.namespace == "" {
		return fmt.Sprintf("the kind has no namespace, and this agent may only write to namespaces %s", names)
	}
	return fmt.Sprintf("namespace %s is none of those that this agent may write to: %s", clip(e.namespace, 63), names)
}

// conflictError names the fields that others manage.
type conflictError struct {
	fields  []string
	manager string
}

func (e *conflictError) Error() string {
	return fmt.Sprintf("%s managed by %q", joinFields(e.fields), e.manager)
}
