// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// errReleaseGone means that the Release was deleted while we watched it.
var errReleaseGone = errors.New("the Release was deleted meanwhile")

// watchRelease hands over the Release each time it changed, until see returns true
// or an error. A watch that breaks off is opened again, since a sync may well
// outlive a restart of the hub.
func (h *hub) watchRelease(ctx context.Context, name string, see func(*corev1alpha1.Release) (bool, error)) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 5 * time.Second}
	pause := backoff
	for {
		done, progress, err := h.watchOnce(ctx, name, see)
		if done {
			return err
		}
		if progress {
			pause = backoff
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// watchOnce reads the Release and follows it until the watch ends. done says that
// there is nothing to come; progress that the hub was there.
func (h *hub) watchOnce(ctx context.Context, name string, see func(*corev1alpha1.Release) (bool, error)) (done, progress bool, err error) {
	release := &corev1alpha1.Release{}
	if err := h.client.Get().Namespace(h.namespace).Resource("releases").Name(name).Do(ctx).Into(release); err != nil {
		err = explain(err, errReleaseGone)
		// Anything else may be a hub that restarts.
		return errors.Is(err, errReleaseGone) || ctx.Err() != nil, false, err
	}
	if done, err := see(release); done || err != nil {
		return true, true, err
	}
	options := metav1.ListOptions{
		Watch:           true,
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
		ResourceVersion: release.ResourceVersion,
	}
	watcher, err := h.client.Get().Namespace(h.namespace).Resource("releases").
		VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return ctx.Err() != nil, true, fmt.Errorf("watching Release %s: %w", name, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch changed, ok := event.Object.(*corev1alpha1.Release); {
		case event.Type == watch.Deleted:
			return true, true, errReleaseGone
		case ok && event.Type != watch.Bookmark:
			if done, err := see(changed); done || err != nil {
				return true, true, err
			}
		}
	}
	return ctx.Err() != nil, true, ctx.Err()
}
