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
	if annotations != nil {
		before := metav1.NewTime(time.Now().Add(-time.Hour))
		out.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, Time: &before,
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:convoy.kumodo.io/uninstall-on-delete":{}}}}`),
		}}
	}
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

// Who may annotate a namespace that is going cannot make its deletion uninstall.
func TestOnlyWhatANamespaceSaidBeforeItsDeletionBeganUninstalls(t *testing.T) {
	deleted := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	const owns = `{"f:metadata":{"f:annotations":{".":{},"f:convoy.kumodo.io/uninstall-on-delete":{}}}}`
	entry := func(after time.Duration, fields string) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(deleted.Add(after))
		return metav1.ManagedFieldsEntry{Manager: "kubectl-annotate", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	untimed := entry(0, owns)
	untimed.Time = nil
	empty := entry(-time.Hour, owns)
	empty.FieldsV1 = nil
	status := entry(-time.Hour, owns)
	status.Subresource = "status"
	for name, test := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		"set an hour before":                              {[]metav1.ManagedFieldsEntry{entry(-time.Hour, owns)}, true},
		"set in the second of the deletion":               {[]metav1.ManagedFieldsEntry{entry(0, owns)}, true},
		"set a second after":                              {[]metav1.ManagedFieldsEntry{entry(time.Second, owns)}, false},
		"set before and said again after":                 {[]metav1.ManagedFieldsEntry{entry(time.Minute, owns), entry(-time.Hour, owns)}, true},
		"set after on a namespace that had others before": {[]metav1.ManagedFieldsEntry{entry(-time.Hour, `{"f:metadata":{"f:annotations":{".":{},"f:owner":{}}}}`), entry(time.Minute, owns)}, false},
		"nobody knows who set it":                         {nil, false},
		"nobody knows when it was set":                    {[]metav1.ManagedFieldsEntry{untimed}, false},
		"an entry without fields":                         {[]metav1.ManagedFieldsEntry{empty}, false},
		"an entry that cannot be read":                    {[]metav1.ManagedFieldsEntry{entry(-time.Hour, `{"f:metadata":[]}`)}, false},
		"an entry of the status":                          {[]metav1.ManagedFieldsEntry{status}, false},
		"a label of that name":                            {[]metav1.ManagedFieldsEntry{entry(-time.Hour, `{"f:metadata":{"f:labels":{"f:convoy.kumodo.io/uninstall-on-delete":{}}}}`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			team := namespace("team", true, map[string]string{v1alpha1.AnnotationUninstallOnDelete: "true"})
			at := metav1.NewTime(deleted)
			team.DeletionTimestamp, team.ManagedFields = &at, test.fields
			got, err := NewNamespaces(fake.NewClientset(team).CoreV1()).State(t.Context(), "team")
			if want := (NamespaceState{Terminating: true, Uninstall: test.want}); err != nil || got != want {
				t.Errorf("%+v, %v; want %+v", got, err, want)
			}
		})
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
