// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// attempt is one request to delete, of one object or of many. The registry asks
// about an object once or several times, and of many at once.
type attempt struct {
	gate     *Gate
	resource schema.GroupResource
	by       asker

	mu sync.Mutex
	// of each object, what the last answer was; guarded by mu.
	passed map[types.UID]*plan
	taken  map[types.UID][]types.UID
	held   map[types.UID]refusal
	asked  int
}

// refusal is one deletion that is held.
type refusal struct {
	object runtime.Object
	name   types.NamespacedName
	held   v1alpha1.HeldDeletion
}

func (g *Gate) attempt(resource schema.GroupResource, by asker) *attempt {
	return &attempt{
		gate: g, resource: resource, by: by, passed: map[types.UID]*plan{}, taken: map[types.UID][]types.UID{}, held: map[types.UID]refusal{},
	}
}

// ask whether one object may be deleted now.
func (a *attempt) ask(ctx context.Context, object runtime.Object) error {
	var p *plan
	var err error
	var meta metav1.Object
	switch o := object.(type) {
	case *v1alpha1.Release:
		meta = o
		p, err = a.gate.planRelease(ctx, o)
	case *v1alpha1.Cluster:
		meta = o
		p, err = a.gate.planCluster(ctx, o)
	default:
		return nil // nothing else is gated
	}
	if err != nil {
		return err
	}
	var taken []types.UID
	var held *v1alpha1.HeldDeletion
	if p != nil {
		if taken, held, err = a.gate.decide(ctx, a.by, p); err != nil {
			return err
		}
	}
	uid := meta.GetUID()
	a.mu.Lock()
	defer a.mu.Unlock()
	_, again := a.passed[uid]
	if _, before := a.held[uid]; !before && !again {
		a.asked++
	}
	delete(a.held, uid)
	if held == nil {
		a.passed[uid] = p
		a.taken[uid] = append(a.taken[uid], taken...)
		return nil
	}
	name := types.NamespacedName{Namespace: meta.GetNamespace(), Name: meta.GetName()}
	a.held[uid] = refusal{object: object, name: name, held: *held}
	return newHeldError(a.resource, meta.GetName(), held.Message)
}

// used ends the confirmations of what was deleted.
func (a *attempt) used() {
	for uid := range a.passed {
		a.gate.spent(uid)
	}
}

// failed gives back what was taken for what was not deleted.
func (a *attempt) failed() {
	for uid, p := range a.passed {
		if p != nil {
			a.gate.giveBack(p.accounts, a.taken[uid])
		}
	}
}

// record writes down what was held. A record that cannot be written is logged: the
// deletion stays held, and the next attempt records it.
func (a *attempt) record(ctx context.Context) {
	// The client may not wait for the answer.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	recorder := a.gate.recorder()
	var group errgroup.Group
	group.SetLimit(recorders)
	for uid, r := range a.held {
		group.Go(func() error {
			var err error
			switch o := r.object.(type) {
			case *v1alpha1.Release:
				if !recorded(o.Status.HeldDeletion, r.held) {
					err = recorder.Held(ctx, r.name, uid, r.held)
				}
			case *v1alpha1.Cluster:
				if !recorded(o.Status.HeldDeletion, r.held) {
					err = recorder.HeldCluster(ctx, r.name, uid, r.held)
				}
			}
			if err != nil {
				a.gate.log.Error(err, "A deletion was held and that is not recorded", "object", r.name.String())
			}
			return nil
		})
	}
	_ = group.Wait() // errors were logged
}

// recorded says that the same refusal was written down not long ago.
func recorded(old *v1alpha1.HeldDeletion, next v1alpha1.HeldDeletion) bool {
	return old != nil && old.Reason == next.Reason && old.By == next.By && old.Sequence == next.Sequence && old.Digest == next.Digest && old.Until.Equal(next.Until) &&
		next.At.Sub(old.At.Time) < recordAgain
}

// Validation is what the registry is given to ask before it deletes.
type Validation = rest.ValidateObjectFunc

// One deletes one object with delete, which gets what to ask, unless it is a dry
// run, which deletes nothing.
func (g *Gate) One(ctx context.Context, resource schema.GroupResource, validate Validation, options *metav1.DeleteOptions, remove func(Validation) error) error {
	if dryRun(options) {
		return remove(validate)
	}
	a := g.attempt(resource, askerOf(ctx, options))
	err := remove(func(ctx context.Context, object runtime.Object) error {
		if err := validated(ctx, validate, object); err != nil {
			return err
		}
		return a.ask(ctx, object)
	})
	if err == nil {
		a.used()
	} else {
		a.failed()
	}
	a.record(ctx)
	return err
}

// Many deletes many objects with remove. Those that are held do not stop the
// others; the error, when all is done, names them.
func (g *Gate) Many(ctx context.Context, resource schema.GroupResource, validate Validation, options *metav1.DeleteOptions, remove func(Validation) error) error {
	if dryRun(options) {
		return remove(validate)
	}
	a := g.attempt(resource, askerOf(ctx, options))
	err := remove(func(ctx context.Context, object runtime.Object) error {
		if err := validated(ctx, validate, object); err != nil {
			return err
		}
		err := a.ask(ctx, object)
		if held := (*heldError)(nil); errors.As(err, &held) {
			// The one error that does not end a deletion of many: to it, an object that is
			// held is none.
			return apierrors.NewNotFound(resource, "")
		}
		return err
	})
	a.record(ctx)
	if err != nil {
		return err // some may be deleted: nothing is given back
	}
	a.used()
	if len(a.held) > 0 {
		return a.summary()
	}
	return nil
}

func validated(ctx context.Context, validate Validation, object runtime.Object) error {
	if validate == nil {
		return nil
	}
	return validate(ctx, object)
}

// summary says how many are held, which, and why the first is.
func (a *attempt) summary() error {
	names := make([]string, 0, len(a.held))
	why := map[string]string{}
	for _, r := range a.held {
		names = append(names, r.name.Name)
		why[r.name.Name] = r.held.Message
	}
	slices.Sort(names)
	list := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return newHeldError(a.resource, "", fmt.Sprintf("%d of %d deletions are held (%s), the others are done; of %s: %s",
		len(names), a.asked, list, names[0], why[names[0]]))
}
