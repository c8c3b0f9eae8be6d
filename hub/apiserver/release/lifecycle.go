// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// LifecycleREST serves releases/lifecycle: GET gives the hooks of a Release and their
// last runs, PUT and PATCH replace its spec.lifecycle, POST asks for something to be done
// about a run. Each is a right of its own, and none needs one on the Release.
type LifecycleREST struct {
	store *registry.Store
	clock clock.PassiveClock
}

var (
	_ rest.Patcher      = &LifecycleREST{}
	_ rest.NamedCreater = &LifecycleREST{}
)

// New implements rest.Storage: what all verbs take and give.
func (*LifecycleREST) New() runtime.Object { return &v1alpha1.ReleaseLifecycle{} }

// Destroy has nothing to do: the main storage closes what both share.
func (*LifecycleREST) Destroy() {}

// Get gives the hooks and their runs.
func (l *LifecycleREST) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	found, err := l.store.Get(ctx, name, o)
	if err != nil {
		return nil, err
	}
	release, err := releaseOf(found)
	if err != nil {
		return nil, err
	}
	return lifecycleOf(release), nil
}

func releaseOf(obj runtime.Object) (*v1alpha1.Release, error) {
	release, ok := obj.(*v1alpha1.Release)
	if !ok {
		return nil, apierrors.NewInternalError(errKind)
	}
	return release, nil
}

// lifecycleOf has the version of the Release, so that a PUT can be conditional.
func lifecycleOf(r *v1alpha1.Release) *v1alpha1.ReleaseLifecycle {
	return &v1alpha1.ReleaseLifecycle{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Name, Namespace: r.Namespace, UID: r.UID, ResourceVersion: r.ResourceVersion, Generation: r.Generation, CreationTimestamp: r.CreationTimestamp,
		},
		Spec: *r.Spec.Lifecycle.DeepCopy(), Runs: r.DeepCopy().Status.Hooks,
	}
}

// Update replaces spec.lifecycle; it never creates.
func (l *LifecycleREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, validate rest.ValidateObjectUpdateFunc, _ bool, o *metav1.UpdateOptions) (runtime.Object, bool, error) {
	out, _, err := l.store.Update(ctx, name, &lifecycleUpdate{info, validate}, nil, nil, false, o)
	if err != nil {
		return nil, false, err
	}
	release, err := releaseOf(out)
	if err != nil {
		return nil, false, err
	}
	return lifecycleOf(release), false, nil
}

// lifecycleUpdate turns an update of a ReleaseLifecycle into one of its Release.
type lifecycleUpdate struct {
	info     rest.UpdatedObjectInfo
	validate rest.ValidateObjectUpdateFunc
}

// Preconditions implements rest.UpdatedObjectInfo.
func (u *lifecycleUpdate) Preconditions() *metav1.Preconditions { return u.info.Preconditions() }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u *lifecycleUpdate) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	stored, err := releaseOf(old.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	before := lifecycleOf(stored)
	made, err := u.info.UpdatedObject(ctx, before.DeepCopy())
	if err != nil {
		return nil, err
	}
	in, ok := made.(*v1alpha1.ReleaseLifecycle)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a ReleaseLifecycle")
	}
	if errs := validation.ReleaseLifecycle(in, stored.Name); len(errs) > 0 {
		return nil, invalid(stored.Name, errs)
	}
	if u.validate != nil {
		if err := u.validate(ctx, in.DeepCopy(), before); err != nil {
			return nil, err
		}
	}
	if in.UID != "" && in.UID != stored.UID {
		return nil, apierrors.NewConflict(v1alpha1.Resource("releases"), stored.Name, errOtherUID)
	}
	stored.Spec.Lifecycle = in.Spec
	stored.ResourceVersion = in.ResourceVersion // empty: unconditional
	return stored, nil
}

// Create records what is asked about a run: the newest request counts.
func (l *LifecycleREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*v1alpha1.ReleaseLifecycle)
	if !ok {
		return nil, apierrors.NewBadRequest("the body must be a ReleaseLifecycle")
	}
	asked := in.DeepCopy()
	if errs := validation.HookRequest(asked, name); len(errs) > 0 {
		return nil, invalid(name, errs)
	}
	if validate != nil {
		if err := validate(ctx, asked.DeepCopy()); err != nil {
			return nil, err
		}
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		release, err := releaseOf(old.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		if errs := runnable(asked.Request, release.Status.Hooks); len(errs) > 0 {
			return nil, invalid(name, errs)
		}
		if release.Annotations == nil {
			release.Annotations = map[string]string{}
		}
		at := l.clock.Now().UTC().Format(time.RFC3339Nano)
		release.Annotations[v1alpha1.AnnotationHookRequested] = strings.Join([]string{string(asked.Request.Action), at, asked.Request.Run, asked.Request.Hook}, "/")
		return release, nil
	})
	out, _, err := l.store.Update(ctx, name, info, nil, nil, false, &metav1.UpdateOptions{DryRun: options.DryRun})
	if err != nil {
		return nil, err
	}
	release, err := releaseOf(out)
	if err != nil {
		return nil, err
	}
	answer := lifecycleOf(release)
	answer.Request = asked.Request
	return answer, nil
}

// runnable says whether a run is known, and is in a state that the action is for.
func runnable(r *v1alpha1.HookRequest, runs []v1alpha1.HookRun) field.ErrorList {
	p := field.NewPath("request")
	for i := range runs {
		run := &runs[i]
		if run.Hook != r.Hook || run.Run != r.Run {
			continue
		}
		for _, state := range actsOn[r.Action] {
			if run.State == state {
				return nil
			}
		}
		return field.ErrorList{field.Invalid(p.Child("action"), r.Action, fmt.Sprintf("the run is %s: retry is for runs that failed or were aborted, skip and abort for those that run or failed", run.State))}
	}
	return field.ErrorList{field.NotFound(p.Child("run"), r.Run+" of "+r.Hook)}
}

// actsOn are the states that each action is for. A run that succeeded, or was skipped, is
// over.
var actsOn = map[v1alpha1.HookAction][]v1alpha1.HookState{
	v1alpha1.HookRetry: {v1alpha1.HookBroken, v1alpha1.HookCancelled},
	v1alpha1.HookSkip:  {v1alpha1.HookBroken, v1alpha1.HookRunning},
	v1alpha1.HookAbort: {v1alpha1.HookBroken, v1alpha1.HookRunning},
}

func invalid(name string, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("ReleaseLifecycle").GroupKind(), name, errs)
}
