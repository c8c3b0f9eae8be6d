// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// ErrNotQuiet: something was written that should not have been.
var ErrNotQuiet = errors.New("something was written")

// Settled returns when nothing was written for so long to the objects of some
// kinds in a namespace. Give ctx a deadline.
func Settled(ctx context.Context, client dynamic.Interface, quiet time.Duration, namespace string, kinds ...schema.GroupVersionResource) error {
	for {
		err := HoldsStill(ctx, client, quiet, namespace, kinds...)
		if !errors.Is(err, ErrNotQuiet) {
			return err
		}
	}
}

// HoldsStill watches the objects of some kinds in a namespace for so long, and
// fails at once with ErrNotQuiet when one is written.
func HoldsStill(ctx context.Context, client dynamic.Interface, quiet time.Duration, namespace string, kinds ...schema.GroupVersionResource) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(kinds))
	var watches []watch.Interface
	defer func() {
		for _, w := range watches {
			w.Stop()
		}
	}()
	for _, kind := range kinds {
		objects := over(client, kind, namespace)
		list, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("look at %s: %w", kind.Resource, err)
		}
		w, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return fmt.Errorf("watch %s: %w", kind.Resource, err)
		}
		watches = append(watches, w)
		go func() { ended <- firstWrite(w, kind) }() // ends with the watch
	}
	end := time.NewTimer(quiet)
	defer end.Stop()
	select {
	case <-end.C:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstWrite waits for an event, and says what it was.
func firstWrite(w watch.Interface, kind schema.GroupVersionResource) error {
	for event := range w.ResultChan() {
		if event.Type == watch.Bookmark {
			continue
		}
		if u, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Error {
			return fmt.Errorf("%w: %s %s/%s, %s", ErrNotQuiet, kind.Resource, u.GetNamespace(), u.GetName(), event.Type)
		}
		return fmt.Errorf("watch of %s failed: %v", kind.Resource, event.Object)
	}
	return fmt.Errorf("watch of %s ended", kind.Resource)
}
