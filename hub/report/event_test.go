// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func TestATransitionAndAWarningAreOneEventEachAboutTheirObject(t *testing.T) {
	client := fake.NewClientset()
	events, err := client.CoreV1().Events("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	recorder := NewHostRecorder(client.CoreV1(), func(_ context.Context, namespace string) (bool, error) {
		return namespace == "going", nil
	})
	release := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "u"}}
	recorder.Transition(release, false, "Ready", "before the hub runs: dropped")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- recorder.Run(ctx) }()
	for recorder.recorder.Load() == nil {
		select {
		case <-ctx.Done():
			t.Fatal("the recorder never started")
		case <-time.NewTimer(time.Millisecond).C:
		}
	}
	leaving := &v1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "going", Name: "web", UID: "v"}}
	recorder.Transition(leaving, true, "DryRunFailed", "nothing can be made in this namespace: dropped")
	next := func(want string) {
		t.Helper()
		select {
		case got := <-events.ResultChan():
			event, ok := got.Object.(*corev1.Event)
			if !ok || got.Type != watch.Added {
				t.Fatalf("got %v", got)
			}
			have := fmt.Sprintf("%s %s %s %s/%s %s %s", event.Type, event.Reason, event.InvolvedObject.Kind, event.Namespace, event.InvolvedObject.Name, event.InvolvedObject.APIVersion, event.Message)
			if have != want {
				t.Errorf("event %q, want %q", have, want)
			}
		case <-ctx.Done():
			t.Fatal("no event")
		}
	}
	recorder.Transition(release, true, "DryRunFailed", "ConfigMap team/a")
	next("Warning DryRunFailed Release team/web core.convoy.kumodo.io/v1alpha1 ConfigMap team/a")
	recorder.Warn(About{"Cluster", types.NamespacedName{Namespace: "team", Name: "edge"}, "c"}, "TokenReused", "who else has it?")
	next("Warning TokenReused Cluster team/edge core.convoy.kumodo.io/v1alpha1 who else has it?")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
