// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// follow watches the Pods that match and gives the one to run for whenever it
// changes, nil for none. While the API server is away the last one stays, as
// a kubelet would leave it.
func (pod *Pod) follow(ctx context.Context, selector labels.Selector, wanted chan *corev1.Pod) {
	for {
		if err := pod.followOnce(ctx, selector, wanted); err != nil && ctx.Err() == nil {
			pod.set(func() { pod.lastErr = err })
		}
		if pause(ctx, watchPause) != nil {
			return
		}
	}
}

func (pod *Pod) followOnce(ctx context.Context, selector labels.Selector, wanted chan *corev1.Pod) error {
	client := pod.plane.client.CoreV1().Pods(pod.opts.Namespace)
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	known := map[types.UID]*corev1.Pod{}
	for i := range list.Items {
		known[list.Items[i].UID] = &list.Items[i]
	}
	give(wanted, choose(known))

	watcher, err := client.Watch(ctx, metav1.ListOptions{
		LabelSelector: selector.String(), ResourceVersion: list.ResourceVersion,
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer watcher.Stop()
	for ev := range watcher.ResultChan() {
		if ev.Type == watch.Error {
			return fmt.Errorf("watch pods: %w", apierrors.FromObject(ev.Object))
		}
		object, ok := ev.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		if ev.Type == watch.Deleted {
			delete(known, object.UID)
		} else {
			known[object.UID] = object
		}
		give(wanted, choose(known))
	}
	return nil
}

// choose takes the newest Pod that is bound to a node, runs and is not being
// deleted.
func choose(known map[types.UID]*corev1.Pod) *corev1.Pod {
	var newest *corev1.Pod
	for _, p := range known {
		if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp) {
			newest = p
		}
	}
	return newest
}

// give replaces what the channel of one place holds.
func give(wanted chan *corev1.Pod, p *corev1.Pod) {
	select {
	case <-wanted:
	default:
	}
	wanted <- p
}
