// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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

const (
	noScalers = `{"items":[]}`
	forbidden = "403"
)

// aimed is a list of one autoscaler.
func aimed(kind, name string) string {
	return fmt.Sprintf(`{"items":[{"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":%q,"name":%q}}}]}`, kind, name)
}

// astray is a list of one that finds nothing to scale.
func astray(kind, name string) string {
	return strings.Replace(aimed(kind, name), `}}}]}`, `}},"status":{"conditions":[{"type":"AbleToScale","status":"False","reason":"FailedGetScale"}]}}]}`, 1)
}

// scalersOf is a cluster with Deployment web, its autoscalers and those of KEDA; where
// there are none of these the kind is not served.
type scalersOf struct {
	horizontal, keda string
	live             string // of the Deployment
}

func (c *scalersOf) ServeHTTP(w http.ResponseWriter, req *http.Request) {
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
		answer = c.live
	}
	switch answer {
	case "":
		w.WriteHeader(http.StatusNotFound)
	case forbidden:
		w.WriteHeader(http.StatusForbidden)
	}
	_, _ = fmt.Fprint(w, answer) // the client has what it needs to fail
}

// scaling is a Release whose Deployment web has 5 replicas, left to an autoscaler of the
// cluster, where the render says wanted.
func (c *scalersOf) scaling(t *testing.T, wanted int) (*release, *object, *clocktesting.FakeClock) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	state := &kept{layers: map[string][]byte{}, source: map[string][]byte{}}
	layer := state.render(t, fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":%d}}`, wanted))
	state.layers[layer.Digest] = state.source[layer.Digest]
	rn, err := New(Options{
		Config: &rest.Config{Host: server.URL}, HubID: "hub", ClusterUID: "cluster", State: state, Blobs: state,
		Report: func(tunnel.Report) {}, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := rn.newRelease("r")
	r.order = applyOrder(7, layer.Digest)
	r.handled, r.settled = 7, true
	o := &object{
		id: manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, uid: "uid", rv: 7, seen: true, applied: true,
		res:    &resource{group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true},
		render: &Render{Objects: *layer},
	}
	if err := r.contents(t.Context(), o.render, func(int32) bool { return true }, func(e *manifest.Entry) (bool, error) {
		o.line, o.digest = int32(e.Line), e.Digest
		return false, nil
	}); err != nil {
		t.Fatal(err)
	}
	r.objects[o.id] = o
	r.leaveNumberLocked(o, scaledOnCluster)
	live, err := decode([]byte(scaledWeb))
	if err != nil {
		t.Fatal(err)
	}
	r.accept(o, live)
	return r, o, clock
}

// look waits until it is looked for autoscalers, and has it done.
func look(t *testing.T, r *release, clock *clocktesting.FakeClock) {
	t.Helper()
	due := r.rescaleDueLocked()
	if wait := due.Sub(clock.Now()); wait <= 0 || wait > rescaleEvery {
		t.Fatalf("it is looked at after %s", wait)
	}
	clock.SetTime(due)
	r.rescale(t.Context())
}

func TestANumberIsTheRendersAgainWhenItHadNoAutoscalerForAMinute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		horizontal, keda string // keda: empty: there is none
		wanted           int
		first, second    scaling // after the first look, and a minute later
		says             string
	}{
		"it is there still":                     {aimed("Deployment", "web"), "", 1, scaledOnCluster, scaledOnCluster, ""},
		"it is gone":                            {noScalers, "", 1, scaledBefore, scaledByRender, "5 replicas are kept, the render says 1: no autoscaler scales it any more"},
		"it is gone and the number is the same": {noScalers, "", 5, scaledByRender, scaledByRender, ""},
		"it aims at another object":             {aimed("Deployment", "other"), "", 1, scaledBefore, scaledByRender, "5 replicas are kept"},
		"it aims at another kind":               {aimed("StatefulSet", "web"), "", 1, scaledBefore, scaledByRender, "5 replicas are kept"},
		"it aims at what is not there":          {astray("Deployment", "wbe"), "", 1, scaledBefore, scaledBefore, "HorizontalPodAutoscaler a finds nothing to scale"},
		"one of another kind finds nothing":     {astray("StatefulSet", "wbe"), "", 1, scaledBefore, scaledByRender, "5 replicas are kept"},
		"it aims at it and cannot read it":      {astray("Deployment", "web"), "", 1, scaledOnCluster, scaledOnCluster, ""},
		"KEDA's is paused, and has none":        {noScalers, aimed("Deployment", "web"), 1, scaledOnCluster, scaledOnCluster, ""},
		"KEDA's names no kind":                  {noScalers, `{"items":[{"metadata":{"name":"a"},"spec":{"scaleTargetRef":{"name":"web"}}}]}`, 1, scaledOnCluster, scaledOnCluster, ""},
		"KEDA's is gone too":                    {noScalers, noScalers, 1, scaledBefore, scaledByRender, "5 replicas are kept"},
		"it cannot be asked":                    {forbidden, "", 1, scaledOnCluster, scaledOnCluster, ""},
		"KEDA's cannot be asked":                {noScalers, forbidden, 1, scaledOnCluster, scaledOnCluster, ""},
		"an answer that nobody can make out":    {"{", "", 1, scaledOnCluster, scaledOnCluster, ""},
		"KEDA's answer nobody can make out too": {noScalers, "{", 1, scaledOnCluster, scaledOnCluster, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &scalersOf{horizontal: c.horizontal, keda: c.keda, live: scaledWeb}
			r, o, clock := cluster.scaling(t, c.wanted)
			look(t, r, clock)
			if o.scaling != c.first {
				t.Fatalf("left to %q, want %q", o.scaling, c.first)
			}
			report := r.buildLocked()
			if told := report.InSync.Reason == v1alpha1.ReasonDrifted; c.first != scaledByRender && told != (c.first == scaledBefore) || !strings.Contains(report.InSync.Message, c.says) {
				t.Errorf("InSync is %+v, want %q", report.InSync, c.says)
			}
			if c.first == scaledBefore {
				if _, drifted := r.drifts[o]; drifted || len(report.Exceptions) != 1 || report.Exceptions[0].Reason != exceptionDrifted {
					t.Errorf("it is repaired (%v), exceptions %v", drifted, report.Exceptions)
				}
			}
			if c.first != scaledByRender {
				look(t, r, clock)
			}
			if o.scaling != c.second {
				t.Fatalf("a minute later left to %q, want %q", o.scaling, c.second)
			}
			if _, drifted := r.drifts[o]; drifted != (c.second == scaledByRender) {
				t.Errorf("it is compared anew: %v", drifted)
			}
			if again := r.rescaleDueLocked(); again.IsZero() != (c.second == scaledByRender) {
				t.Errorf("it is looked at again at %s", again)
			}
		})
	}
}

func TestANumberIsLeftAgainToAnAutoscalerThatComesBackInTime(t *testing.T) {
	t.Parallel()
	cluster := &scalersOf{horizontal: noScalers, live: scaledWeb}
	r, o, clock := cluster.scaling(t, 1)
	look(t, r, clock)
	cluster.horizontal = aimed("Deployment", "web")
	look(t, r, clock)
	if o.scaling != scaledOnCluster || o.unscaled != nil || r.buildLocked().InSync.Status != tunnel.Unknown {
		t.Errorf("left to %q, %+v, InSync %+v", o.scaling, o.unscaled, r.buildLocked().InSync)
	}
	cluster.horizontal = noScalers
	look(t, r, clock)
	if o.scaling != scaledBefore || !o.unscaled.until.Equal(clock.Now().Add(unscaledFor)) {
		t.Errorf("the time does not begin anew: %q, %+v", o.scaling, o.unscaled)
	}
}

func TestANumberStaysAMinuteMoreWhenWhatAimedAtNothingIsGone(t *testing.T) {
	t.Parallel()
	cluster := &scalersOf{horizontal: astray("Deployment", "wbe"), live: scaledWeb}
	r, o, clock := cluster.scaling(t, 1)
	for range 5 {
		look(t, r, clock)
	}
	cluster.horizontal = noScalers
	r.rescale(t.Context())
	if o.scaling != scaledBefore {
		t.Fatalf("left to %q", o.scaling)
	}
	look(t, r, clock)
	if o.scaling != scaledByRender {
		t.Errorf("left to %q after a minute", o.scaling)
	}
}

func TestARestartKeepsANumberThatHasNoAutoscalerAnyMore(t *testing.T) {
	t.Parallel()
	r, _ := hooking(t)
	r.restore(&Record{UID: "r", Inventory: []Entry{
		{Identity: manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, Scaling: scaledBefore.String()},
	}})
	for _, o := range r.objects {
		if o.scaling != scaledBefore || o.unscaled == nil || !o.unscaled.until.Equal(r.now().Add(unscaledFor)) || o.unscaled.why == "" || !r.scaled[o] {
			t.Errorf("left to %q, %+v", o.scaling, o.unscaled)
		}
	}
	if len(r.objects) != 1 {
		t.Errorf("%d objects", len(r.objects))
	}
}

func TestWhoseNumberItIsWhenARenderAimsItsAutoscalerElsewhere(t *testing.T) {
	t.Parallel()
	hpa := manifest.Identity{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: "ns", Name: "a"}
	for name, c := range map[string]struct {
		before     scaling
		horizontal string
		in         string // what the autoscaler of the render aims at; empty: it left it
		orphans    bool   // what leaves the render stays
		want       scaling
	}{
		"it aims at it": {scaledInRender, aimed("Deployment", "web"), "web", false, scaledInRender},
		"it aims elsewhere, and is not applied yet":         {scaledInRender, aimed("Deployment", "web"), "other", false, scaledBefore},
		"it aims elsewhere":                                 {scaledInRender, aimed("Deployment", "other"), "other", false, scaledBefore},
		"it aims elsewhere, and never aimed at it":          {scaledByRender, aimed("Deployment", "other"), "other", false, scaledByRender},
		"it has left the render":                            {scaledInRender, aimed("Deployment", "web"), "", false, scaledByRender},
		"it has left the render, and is not deleted":        {scaledInRender, aimed("Deployment", "web"), "", true, scaledOnCluster},
		"it was deleted by hand, and has left the render":   {scaledInRender, noScalers, "", false, scaledBefore},
		"it was of others, and is gone":                     {scaledOnCluster, noScalers, "", false, scaledBefore},
		"the number was nobody's, and the render gives one": {scaledUnsaid, noScalers, "", false, scaledByRender},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &scalersOf{horizontal: c.horizontal, live: scaledWeb}
			r, o, _ := cluster.scaling(t, 1)
			r.order.Policy.PruneOrphaned = !c.orphans
			r.objects[hpa] = &object{id: hpa, applied: true}
			p := &plan{}
			if c.in != "" {
				p.scalers = []scaler{{it: &item{id: hpa}, target: groupKind{"apps", "Deployment"}, name: c.in}}
			}
			live, err := decode([]byte(scaledWeb))
			if err != nil {
				t.Fatal(err)
			}
			o.scaling = c.before
			content := map[string]any{"spec": map[string]any{"replicas": int64(1)}}
			got, err := r.scalingOf(t.Context(), p, o.id, c.before, content, live)
			if err != nil || got != c.want {
				t.Errorf("left to %q, want %q; %v", got, c.want, err)
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
