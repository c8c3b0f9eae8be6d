// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kumodo.io/convoy/pkg/manifest"
)

// Two things make it vain to make an object again: its namespace is being deleted, and the
// garbage collector deletes it, since its owner is not there. Both are told by name, and
// asked for after pauses.

// endingError: the namespace of an object is being deleted.
type endingError struct {
	namespace string
	cause     error
}

func (e *endingError) Error() string {
	return fmt.Sprintf("namespace %q is being deleted, and nothing can be made in it", clip(e.namespace, 63))
}

func (e *endingError) Unwrap() error { return e.cause }

// ofNamespace is an error of a call for an object, as one of its namespace, if that is
// being deleted.
func ofNamespace(err error, id manifest.Identity) error {
	var api apierrors.APIStatus
	if errors.As(err, &api) && apierrors.IsForbidden(err) && hasCause(api.Status(), causeTerminating) {
		return &endingError{namespace: id.Namespace, cause: err}
	}
	return err
}

// collectedError: what owns an object by the render is not there.
type collectedError struct{ owner string }

func (e *collectedError) Error() string {
	return fmt.Sprintf("its owner, %s, is not there, for which the garbage collector deletes it: take metadata.ownerReferences out of the render", e.owner)
}

// ending is what is known of a namespace that is being deleted.
type ending struct {
	until time.Time // nothing is made in it before
	tries int
}

// endsLocked takes in that the namespace of an object is being deleted, and says when it
// is asked for again.
func (r *release) endsLocked(o *object, now time.Time) time.Time {
	e := r.endings[o.id.Namespace]
	if e == nil {
		e = &ending{}
		if r.endings == nil {
			r.endings = map[string]*ending{}
		}
		r.endings[o.id.Namespace] = e
	}
	e.until = now.Add(backoff(e.tries, objectRetryMin, objectRetryMax))
	e.tries++
	return e.until
}

// awaitsNamespace says whether an object is to be made in a namespace of which was found
// a moment ago that it is being deleted. That is told of it as well, without a call.
func (r *release) awaitsNamespace(o *object) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.endings[o.id.Namespace]
	if e == nil || !o.missing || !now.Before(e.until) {
		return false
	}
	before := o.view()
	if o.contest == nil {
		o.contest = newContest(now)
	}
	o.contest.next = e.until
	o.problem = r.problemOf(o, &endingError{namespace: o.id.Namespace})
	r.reviewLocked(o, before, now)
	return true
}

// madeLocked takes in that an object was made again: its namespace is there, or it is the
// namespace for which others wait.
func (r *release) madeLocked(o *object) {
	delete(r.endings, o.id.Namespace)
	if !isNamespace(o.id) {
		return
	}
	delete(r.endings, o.id.Name)
	for other := range r.drifts {
		if other.id.Namespace == o.id.Name && other.contest != nil && !other.contest.fought(r.now()) {
			other.contest.next = time.Time{}
		}
	}
}

// ownersOf reads the owners that a render, or an object, names.
func ownersOf(content map[string]any) []metav1.OwnerReference {
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	list, ok := metadata["ownerReferences"].([]any)
	if !ok {
		return nil
	}
	var owners []metav1.OwnerReference
	for _, item := range list {
		var owner metav1.OwnerReference
		m, ok := item.(map[string]any)
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &owner) == nil {
			owners = append(owners, owner)
		}
	}
	return owners
}

// collected says that the garbage collector deletes an object, since none of the owners
// that the render names for it is there. What cannot be told counts as there.
func (r *release) collected(ctx context.Context, id manifest.Identity, content map[string]any) error {
	owners := ownersOf(content)
	for _, owner := range owners {
		group, version := manifest.GroupVersion(owner.APIVersion)
		res, err := r.runner.discovery.find(ctx, group, version, owner.Kind)
		if err != nil || res.namespaced && id.Namespace == "" {
			return nil //nolint:nilerr // the collector leaves alone what it cannot find out
		}
		namespace := ""
		if res.namespaced {
			namespace = id.Namespace
		}
		m, err := r.runner.target.look(ctx, res, namespace, owner.Name)
		if !apierrors.IsNotFound(err) && (err != nil || m.UID == string(owner.UID)) {
			return nil
		}
	}
	if len(owners) == 0 {
		return nil
	}
	first := owners[0]
	return &collectedError{owner: clip(fmt.Sprintf("%s %s with UID %s", first.Kind, first.Name, cmp.Or(string(first.UID), "none")), 200)}
}

// mayCollect refuses an owner that is not there for an object that exists: with it the
// object would be deleted.
func (r *release) mayCollect(ctx context.Context, it *item, content map[string]any) error {
	owners := ownersOf(content)
	if len(owners) == 0 {
		return nil
	}
	err := r.collected(ctx, it.id, content)
	if err == nil {
		return nil
	}
	live, looked := r.runner.target.get(ctx, *it.res, it.id.Namespace, it.id.Name)
	switch {
	case apierrors.IsNotFound(looked):
		return nil
	case looked != nil:
		return looked
	}
	for _, owner := range ownersOf(live) {
		if slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
			return nil // it is owned so already
		}
	}
	return err
}
