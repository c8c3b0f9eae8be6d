// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// holding answers as a hub that holds the deletion of Release shop and Cluster
// edge-1, and of nothing else.
func holding(t *testing.T, hub *fakeHub) *[]string {
	t.Helper()
	confirmed := &[]string{}
	held := &corev1alpha1.HeldDeletion{Reason: corev1alpha1.HeldByBudget, By: "somebody", Sequence: 7, Digest: "sha256:00"}
	expires := metav1.NewTime(time.Date(2026, 1, 1, 13, 0, 0, 0, time.UTC))
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+group+"/releases/{name}", func(w http.ResponseWriter, r *http.Request) {
		release := shop("")
		release.Name = r.PathValue("name")
		if release.Name == "shop" {
			release.Status.HeldDeletion = held
		}
		write(w, http.StatusOK, release)
	})
	mux.HandleFunc("GET "+group+"/clusters/{name}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("name") != "edge-1" {
			fail(w, apierrors.NewNotFound(corev1alpha1.Resource("clusters"), r.PathValue("name")))
			return
		}
		cluster := corev1alpha1.Cluster{TypeMeta: ofKind("Cluster"), ObjectMeta: metav1.ObjectMeta{Name: "edge-1"}}
		cluster.Status.HeldDeletion = held
		write(w, http.StatusOK, cluster)
	})
	mux.HandleFunc("POST "+group+"/{resource}/{name}/confirm", func(w http.ResponseWriter, r *http.Request) {
		request := decodeBody[corev1alpha1.ConfirmRequest](r)
		if request.Sequence != held.Sequence || request.Digest != held.Digest {
			fail(w, apierrors.NewConflict(corev1alpha1.Resource(r.PathValue("resource")), r.PathValue("name"), errors.New("stale")))
			return
		}
		*confirmed = append(*confirmed, r.PathValue("resource")+"/"+r.PathValue("name"))
		request.TypeMeta, request.ExpiresAt = ofKind("ConfirmRequest"), &expires
		write(w, http.StatusCreated, request)
	})
	mux.HandleFunc("POST "+group+"/clusters/{name}/revoke", func(w http.ResponseWriter, r *http.Request) {
		request := decodeBody[corev1alpha1.RevokeRequest](r)
		request.TypeMeta, request.RevokedAt = ofKind("RevokeRequest"), &expires
		write(w, http.StatusCreated, request)
	})
	hub.answerAll(mux.ServeHTTP)
	return confirmed
}

func TestConfirmNamesWhatIsHeldAndUntilWhenItMayBeDeleted(t *testing.T) {
	hub := newFakeHub(t)
	confirmed := holding(t, hub)
	out, _, err := hub.run(t, "confirm", "shop", "cluster/edge-1")
	if err != nil {
		t.Fatal(err)
	}
	want := "release/shop may be deleted until 2026-01-01T13:00:00Z: order 7, asked for by somebody (DeletionBudget)\n" +
		"cluster/edge-1 may be deleted until 2026-01-01T13:00:00Z: order 7, asked for by somebody (DeletionBudget)\n"
	if out != want {
		t.Errorf("printed\n%s, want\n%s", out, want)
	}
	if got := strings.Join(*confirmed, " "); got != "releases/shop clusters/edge-1" {
		t.Errorf("confirmed %s", got)
	}
}

func TestConfirmGoesOnAfterOneThatCannotBe(t *testing.T) {
	hub := newFakeHub(t)
	confirmed := holding(t, hub)
	_, problems, err := hub.run(t, "confirm", "running", "cluster/none", "pod/x", "shop")
	if !errors.Is(err, errNotAll) || len(*confirmed) != 1 {
		t.Errorf("%v, confirmed %v", err, *confirmed)
	}
	for _, want := range []string{"running: its deletion is not held", "Delete it first; if the hub refuses with DeletionHeld, confirm and delete again", "cluster/none: no such Cluster", "pod/x: only Releases"} {
		if !strings.Contains(problems, want) {
			t.Errorf("%q is not in:\n%s", want, problems)
		}
	}
	if _, _, err := hub.run(t, "confirm"); !errors.Is(err, errNoneGiven) {
		t.Errorf("nothing named: %v", err)
	}
}

func TestRevokeSaysSinceWhenTheAgentIsRefused(t *testing.T) {
	hub := newFakeHub(t)
	holding(t, hub)
	out, _, err := hub.run(t, "revoke", "edge-1")
	if err != nil || out != "cluster/edge-1 refuses its agent since 2026-01-01T13:00:00Z; what runs there stays\n" {
		t.Errorf("%v, printed %q", err, out)
	}
	hub.answerAll(forbidden)
	if _, _, err := hub.run(t, "revoke", "edge-1"); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
}
