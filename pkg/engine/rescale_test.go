// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// scaledWeb is a Deployment that an autoscaler has scaled, of which we own the number.
const scaledWeb = `{"metadata":{"name":"web","namespace":"ns","uid":"uid","resourceVersion":"7","managedFields":[
	{"manager":"` + v1alpha1.FieldManager + `","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{}}}}]},"spec":{"replicas":5}}`

func TestANumberIsTheRendersAgainSoonAfterItsAutoscalerIsGone(t *testing.T) {
	t.Parallel()
	target := func(kind, name string) string {
		return fmt.Sprintf(`{"items":[{"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":%q,"name":%q}}}]}`, kind, name)
	}
	const none, forbidden = `{"items":[]}`, "403"
	for name, c := range map[string]struct {
		horizontal, keda string // keda: empty: there is none
		left             bool   // the number stays left to an autoscaler
	}{
		"it is there still":                     {target("Deployment", "web"), "", true},
		"it is gone":                            {none, "", false},
		"one is there for another object":       {target("Deployment", "other"), "", false},
		"one is there for another kind":         {target("StatefulSet", "web"), "", false},
		"KEDA's is paused, and has none":        {none, target("Deployment", "web"), true},
		"KEDA's names no kind":                  {none, `{"items":[{"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"name":"web"}}}]}`, true},
		"KEDA's is gone too":                    {none, none, false},
		"it cannot be asked":                    {forbidden, "", true},
		"KEDA's cannot be asked":                {none, forbidden, true},
		"an answer that nobody can make out":    {"{", "", true},
		"KEDA's answer nobody can make out too": {none, "{", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				answer := ""
				switch req.URL.Path {
				case "/apis/autoscaling/v2/namespaces/ns/horizontalpodautoscalers":
					answer = c.horizontal
				case "/apis/keda.sh/v1alpha1":
					if c.keda != "" {
						answer = `{"resources":[{"name":"scaledobjects","kind":"ScaledObject","namespaced":true,"verbs":["list"]}]}`
					}
				case "/apis/keda.sh/v1alpha1/namespaces/ns/scaledobjects":
					answer = c.keda
				case "/apis/apps/v1/namespaces/ns/deployments/web":
					answer = scaledWeb
				}
				switch answer {
				case "":
					w.WriteHeader(http.StatusNotFound)
				case forbidden:
					w.WriteHeader(http.StatusForbidden)
				}
				if _, err := fmt.Fprint(w, answer); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			rn, err := New(Options{
				Config: &rest.Config{Host: server.URL}, HubID: "hub", ClusterUID: "cluster", State: idle{}, Blobs: idle{},
				Report: func(tunnel.Report) {}, Clock: clock,
			})
			if err != nil {
				t.Fatal(err)
			}
			r := rn.newRelease("r")
			r.order = applyOrder(7, "sha256:01")
			r.handled, r.settled = 7, true
			o := &object{
				id: manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, uid: "uid", rv: 7, seen: true, applied: true,
				res: &resource{group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true},
			}
			r.objects[o.id] = o
			r.leaveNumberLocked(o, scaledOnCluster)
			live, err := decode([]byte(scaledWeb))
			if err != nil {
				t.Fatal(err)
			}
			r.accept(o, live)
			due := r.rescaleDueLocked()
			if wait := due.Sub(clock.Now()); wait != rescaleEvery {
				t.Errorf("it is looked at after %s", wait)
			}
			clock.SetTime(due)
			r.rescale(t.Context())
			if left := o.scaling == scaledOnCluster; left != c.left {
				t.Fatalf("left to an autoscaler: %v, want %v", left, c.left)
			}
			if _, drifted := r.drifts[o]; drifted == c.left {
				t.Errorf("it is compared anew: %v", drifted)
			}
			if again := r.rescaleDueLocked(); again.IsZero() == c.left {
				t.Errorf("it is looked at again at %s", again)
			}
		})
	}
}

func TestNothingIsAskedWhereNoAutoscalerWasFound(t *testing.T) {
	t.Parallel()
	r, _ := hooking(t)
	r.order = applyOrder(7, "sha256:01")
	o := &object{id: manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}}
	r.objects[o.id] = o
	for _, to := range []scaling{scaledByRender, scaledInRender, scaledUnsaid} {
		if r.leaveNumberLocked(o, to); !r.rescaleDueLocked().IsZero() {
			t.Errorf("%q is looked at", to)
		}
	}
	r.leaveNumberLocked(o, scaledOnCluster)
	if r.dropLocked(o); !r.rescaleDueLocked().IsZero() {
		t.Error("one that is no more is looked at")
	}
}
