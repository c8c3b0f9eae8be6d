// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
)

func namespace(name string, going bool, annotations map[string]string) *corev1.Namespace {
	out := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	if going {
		now := metav1.Now()
		out.DeletionTimestamp = &now
		out.Finalizers = []string{"kubernetes"}
	}
	return out
}

func TestTheHostSaysWhatBecomesOfANamespace(t *testing.T) {
	uninstall := map[string]string{v1alpha1.AnnotationUninstallOnDelete: "true"}
	client := fake.NewClientset(
		namespace("lives", false, nil), namespace("annotated", false, uninstall),
		namespace("goes", true, nil), namespace("uninstalls", true, uninstall),
		namespace("says-no", true, map[string]string{v1alpha1.AnnotationUninstallOnDelete: "yes"}),
	)
	n := NewNamespaces(client.CoreV1())
	for name, want := range map[string]NamespaceState{
		"lives": {}, "annotated": {}, "goes": {Terminating: true}, "uninstalls": {Terminating: true, Uninstall: true},
		"says-no": {Terminating: true}, "is-gone": {Terminating: true},
	} {
		got, err := n.State(t.Context(), name)
		if err != nil || got != want {
			t.Errorf("namespace %s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

func TestAnErrorOfTheHostIsNoAnswer(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("away")
	})
	if _, err := NewNamespaces(client.CoreV1()).State(t.Context(), "team"); err == nil {
		t.Error("no error")
	}
}

// A deletion was seen, then somebody asks: the request must have started after
// that, or it would not see a namespace that began to go in between.
func TestAnAnswerComesFromARequestThatStartedAfterTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		client := fake.NewClientset()
		client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
			going := requests.Add(1) > 1
			<-time.NewTimer(time.Second).C
			return true, namespace("team", going, nil), nil
		})
		n := NewNamespaces(client.CoreV1())
		var all sync.WaitGroup
		ask := func(want bool) {
			all.Go(func() {
				got, err := n.State(t.Context(), "team")
				if err != nil || got.Terminating != want {
					t.Errorf("got %+v, %v; want terminating %v", got, err, want)
				}
			})
		}
		ask(false)
		<-time.NewTimer(500 * time.Millisecond).C
		for range 100 {
			ask(true) // while the first request is under way
		}
		all.Wait()
		if got := requests.Load(); got != 2 {
			t.Errorf("%d requests for 101 questions, want 2", got)
		}
		// A namespace that goes cannot stop.
		ask(true)
		all.Wait()
		if got := requests.Load(); got != 2 {
			t.Errorf("%d requests, want 2", got)
		}
		<-time.NewTimer(2 * rememberTerminating).C
		ask(true)
		all.Wait()
		if got := requests.Load(); got != 3 {
			t.Errorf("%d requests after a while, want 3", got)
		}
	})
}
