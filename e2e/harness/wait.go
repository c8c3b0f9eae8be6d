// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

var (
	nodes           = corev1.SchemeGroupVersion.WithResource("nodes")
	serviceAccounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
)

// Condition looks at an object. An error ends the waiting.
type Condition func(*unstructured.Unstructured) (bool, error)

// WaitFor waits, by watching, until the object exists and meets cond, and
// returns it as it was then. A kind that is not served yet, a refused
// connection and every other error of the server are waited out. Give ctx a
// deadline: its error then carries what the object looked like last.
func WaitFor(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, namespace, name string, cond Condition) (*unstructured.Unstructured, error) {
	w := waiter{res: over(client, gvr, namespace), name: name}
	what := fmt.Sprintf("wait for %s %s/%s", gvr.GroupResource(), namespace, name)
	obj, err := w.wait(ctx, func(obj *unstructured.Unstructured) (bool, error) {
		if obj == nil {
			return false, nil
		}
		return cond(obj)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return obj, nil
}

// WaitGone waits, by watching, until the object does not exist.
func WaitGone(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, namespace, name string) error {
	w := waiter{res: over(client, gvr, namespace), name: name}
	_, err := w.wait(ctx, func(obj *unstructured.Unstructured) (bool, error) { return obj == nil, nil })
	if err != nil {
		return fmt.Errorf("wait for the end of %s %s/%s: %w", gvr.GroupResource(), namespace, name, err)
	}
	return nil
}

// WaitServed waits until discovery of the API server lists these resources, in
// plural, of a group and version. Discovery of an aggregated API server is
// behind its readiness. Give ctx a deadline.
func WaitServed(ctx context.Context, client discovery.DiscoveryInterface, gv schema.GroupVersion, plurals ...string) error {
	for {
		missing, err := unserved(client, gv, plurals)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if pause(ctx, watchPause) != nil {
			return fmt.Errorf("wait for %s of %s to be served: %w", missing, gv, errors.Join(context.Cause(ctx), err))
		}
	}
}

func unserved(client discovery.DiscoveryInterface, gv schema.GroupVersion, plurals []string) ([]string, error) {
	list, err := client.ServerResourcesForGroupVersion(gv.String())
	if err != nil {
		return plurals, fmt.Errorf("discover: %w", err)
	}
	var missing []string
	for _, want := range plurals {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == want }) {
			missing = append(missing, want)
		}
	}
	return missing, nil
}

// As converts an object to a typed one.
func As[T any](obj *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out); err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return out, nil
}

// HasCondition gives a Condition: status.conditions has that type with that
// status, and reason unless it is empty. An observedGeneration of the
// condition, when there is one, must be that of the object.
func HasCondition(typ string, status metav1.ConditionStatus, reason string) Condition {
	return func(obj *unstructured.Unstructured) (bool, error) {
		list, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
		if err != nil {
			return false, fmt.Errorf("read conditions: %w", err)
		}
		for _, c := range list {
			m, ok := c.(map[string]any)
			if !ok || m["type"] != typ {
				continue
			}
			if seen, ok := m["observedGeneration"].(int64); ok && seen < obj.GetGeneration() {
				return false, nil
			}
			return m["status"] == string(status) && (reason == "" || m["reason"] == reason), nil
		}
		return false, nil
	}
}

func nodeReady(obj *unstructured.Unstructured) (bool, error) {
	return HasCondition(string(corev1.NodeReady), metav1.ConditionTrue, "")(obj)
}

func over(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return client.Resource(gvr)
	}
	return client.Resource(gvr).Namespace(namespace)
}

// waiter follows one object by name. It is used once.
type waiter struct {
	res  dynamic.ResourceInterface
	name string

	last    *unstructured.Unstructured
	lastErr error
}

// wait lists and watches until cond is met. cond gets nil for an object that
// is not there.
func (w *waiter) wait(ctx context.Context, cond Condition) (*unstructured.Unstructured, error) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()
	for {
		obj, done, err := w.once(ctx, selector, cond)
		if done {
			return obj, err
		}
		if err != nil {
			w.lastErr = err
		}
		if pause(ctx, watchPause) != nil {
			return nil, w.gaveUp(ctx)
		}
	}
}

// once lists, then watches until the watch ends. done says that waiting is
// over, with or without error.
func (w *waiter) once(ctx context.Context, selector string, cond Condition) (_ *unstructured.Unstructured, done bool, _ error) {
	list, err := w.res.List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return nil, false, fmt.Errorf("list: %w", err)
	}
	w.last, w.lastErr = nil, nil
	if len(list.Items) > 0 {
		w.last = &list.Items[0]
	}
	if ok, err := cond(w.last); ok || err != nil {
		return w.last, true, err
	}
	watcher, err := w.res.Watch(ctx, metav1.ListOptions{
		FieldSelector: selector, ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true,
	})
	if err != nil {
		return nil, false, fmt.Errorf("watch: %w", err)
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, true, w.gaveUp(ctx)
		case ev, open := <-watcher.ResultChan():
			if !open {
				return nil, false, nil
			}
			switch ev.Type {
			case watch.Added, watch.Modified:
				obj, ok := ev.Object.(*unstructured.Unstructured)
				if !ok {
					return nil, true, fmt.Errorf("watch gave a %T", ev.Object)
				}
				w.last = obj
			case watch.Deleted:
				w.last = nil
			case watch.Bookmark:
				continue
			case watch.Error:
				return nil, false, fmt.Errorf("watch: %w", apierrors.FromObject(ev.Object))
			}
			if ok, err := cond(w.last); ok || err != nil {
				return w.last, true, err
			}
		}
	}
}

// pause waits for d, or for less when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// gaveUp tells what was seen last.
func (w *waiter) gaveUp(ctx context.Context) error {
	err := context.Cause(ctx)
	switch {
	case w.lastErr != nil:
		return errors.Join(err, w.lastErr)
	case w.last == nil:
		return fmt.Errorf("%w; it does not exist", err)
	default:
		shown := w.last.DeepCopy()
		shown.SetManagedFields(nil)
		b, jerr := shown.MarshalJSON()
		if jerr != nil {
			return errors.Join(err, jerr)
		}
		return fmt.Errorf("%w; it was last %s", err, b)
	}
}
