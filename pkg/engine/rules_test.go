// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	judged "kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// shelf has layers; it counts how often one is opened.
type shelf struct {
	idle
	layers map[string][]byte
	opened atomic.Int64
}

func (s *shelf) OpenRender(_ context.Context, digest string) (io.ReadCloser, error) {
	s.opened.Add(1)
	raw, ok := s.layers[digest]
	if !ok {
		return nil, fmt.Errorf("layer %s: %w", digest, ErrNotStored)
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

func (s *shelf) put(t testing.TB, rules ...judged.Rule) *tunnel.Layer {
	t.Helper()
	raw, err := json.Marshal(judged.Document{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	layer := &tunnel.Layer{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(raw))}
	s.layers[layer.Digest] = raw
	return layer
}

func TestReleasesShareTheirRulesAndTheLastOneTakesThemAlong(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	state := &shelf{layers: map[string][]byte{}}
	rn.state = state
	layer := state.put(t, judged.Rule{Set: "s", Kind: "ConfigMap", Healthy: "true"})
	order := tunnel.Order{Rules: layer, Facts: map[string]string{"cluster.name": "c"}}
	releases := make([]*release, 100)
	for i := range releases {
		releases[i] = rn.newRelease(fmt.Sprint(i))
		rn.releases[releases[i].uid] = releases[i]
		if err := releases[i].stageRulesHere(t, order); err != nil {
			t.Fatal(err)
		}
	}
	if state.opened.Load() != 101 { // each looks whether it is staged; the first reads it
		t.Errorf("the layer was opened %d times, want once a Release to see that it is there, and once to read it", state.opened.Load())
	}
	if !rn.wanted(layer.Digest) {
		t.Error("the layer is not wanted while Releases use it")
	}
	for _, r := range releases {
		if err := r.stageRulesHere(t, tunnel.Order{}); err != nil {
			t.Fatal(err)
		}
		if r.ruled.Load() != nil {
			t.Fatal("rules stay with an order that names none")
		}
	}
	if rn.wanted(layer.Digest) {
		t.Error("the layer is wanted although no order names it")
	}
	for range 10 {
		if rn.rules.get(layer.Digest) == nil {
			return
		}
		runtime.GC()
	}
	t.Error("the rules are kept although no order names them")
}

// stageRulesHere is stageRules of a Release that holds a place.
func (r *release) stageRulesHere(t *testing.T, order tunnel.Order) error {
	t.Helper()
	r.order = order
	r.runner.slots <- struct{}{}
	defer r.leave()
	return r.stageRules(t.Context(), order)
}

func TestRulesAreReadBackAfterARestart(t *testing.T) {
	t.Parallel()
	state := &shelf{layers: map[string][]byte{}}
	kept := state.put(t, judged.Rule{Set: "s", Kind: "ConfigMap", Degraded: "true", Message: `"broken"`})
	for name, c := range map[string]struct {
		layer   tunnel.Layer
		used    *Rules // where they are not those of the order
		want    health
		handled int64
	}{
		"those of before judge until the order is carried out": {tunnel.Layer{Digest: digestOfText("new"), Size: 4}, &Rules{Layer: kept}, degraded, 5},
		"the built-in ones judge until then":                   {tunnel.Layer{Digest: digestOfText("new"), Size: 4}, &Rules{}, healthy, 5},
		"those that are kept judge at once":                    {*kept, nil, degraded, 5},
		"those that were lost are fetched by order":            {tunnel.Layer{Digest: digestOfText("lost"), Size: 4}, nil, healthUnknown, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rn, _ := unstarted(t, time.Now())
			rn.state = state
			order := tunnel.Order{Verb: tunnel.VerbApply, Sequence: 5, Rules: &c.layer, Objects: &tunnel.Layer{Digest: digestOfText("render"), Size: 1}}
			payload, err := json.Marshal(order)
			if err != nil {
				t.Fatal(err)
			}
			r := rn.newRelease("r")
			r.restore(&Record{UID: "r", Order: tunnel.Signed{Payload: payload}, Applied: &Render{Objects: *order.Objects, Sequence: 5}, Rules: c.used})
			live := map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
			if v := r.judge(live); v.State != healthUnknown && r.ruled.Load() != nil {
				t.Errorf("before the rules are here it is judged %v", v)
			}
			if err := r.restoreRules(t.Context()); err != nil {
				t.Fatal(err)
			}
			if v := r.judge(live); v.State != c.want || r.handled != c.handled {
				t.Errorf("judged %v with order %d handled, want %s and %d", v, r.handled, c.want, c.handled)
			}
			if diff := cmp.Diff(c.used, r.rulesInUseLocked()); diff != "" {
				t.Errorf("written down again (-want +got):\n%s", diff)
			}
		})
	}
}

func digestOfText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestRulesThatAreNotWhatTheOrderSaysAreNeverUsed(t *testing.T) {
	t.Parallel()
	rn, _ := unstarted(t, time.Now())
	state := &shelf{layers: map[string][]byte{}}
	rn.state = state
	layer := state.put(t, judged.Rule{Set: "s", Kind: "ConfigMap", Healthy: "true"})
	state.layers[layer.Digest] = append([]byte(" "), state.layers[layer.Digest][1:]...)
	other := digestOfText("rules")
	state.layers[other] = []byte("rules")
	for name, l := range map[string]tunnel.Layer{"other bytes": *layer, "no rules": {Digest: other, Size: 5}} {
		r := rn.newRelease("r")
		err := r.stageRulesHere(t, tunnel.Order{Rules: &l})
		var refused *renderError
		if !errors.As(err, &refused) || r.ruled.Load() != nil {
			t.Errorf("%s: %v, rules in use %v", name, err, r.ruled.Load())
		}
	}
}

// BenchmarkObserve is what taking in an event of each of 1,000 objects takes.
func BenchmarkObserve(b *testing.B) {
	const objects = 1000
	for name, rules := range map[string][]judged.Rule{
		"built-in rules": nil,
		"a rule of CEL":  {{Set: "s", Group: "apps", Kind: "Deployment", Healthy: `object.status.readyReplicas == object.spec.replicas`}},
	} {
		b.Run(name, func(b *testing.B) {
			rn, err := New(Options{Config: &rest.Config{Host: "https://localhost:1"}, HubID: "hub", ClusterUID: "cluster", State: idle{}, Blobs: idle{}, Report: func(tunnel.Report) {}})
			if err != nil {
				b.Fatal(err)
			}
			r := rn.newRelease("r")
			if rules != nil {
				raw, err := json.Marshal(judged.Document{Rules: rules})
				if err != nil {
					b.Fatal(err)
				}
				parsed, err := judged.Parse(raw)
				if err != nil {
					b.Fatal(err)
				}
				r.ruled.Store(&ruled{bound: parsed.Bind(nil)})
			}
			all := make([]*object, objects)
			for i := range all {
				all[i] = &object{id: manifest.Identity{Group: "apps", Kind: "Deployment", Namespace: "n", Name: fmt.Sprint(i)}, applied: true}
				r.objects[all[i].id] = all[i]
			}
			b.ReportAllocs()
			version := 0
			for b.Loop() {
				for i, o := range all {
					version++
					r.observe(o, deploymentAt(i, version))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/objects, "ns/object")
		})
	}
}

func deploymentAt(i, version int) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": fmt.Sprint(i), "namespace": "n", "uid": "u", "resourceVersion": fmt.Sprint(version), "generation": int64(1)},
		"spec":     map[string]any{"replicas": int64(2)},
		"status": map[string]any{
			"observedGeneration": int64(1), "replicas": int64(2), "updatedReplicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2),
		},
	}
}
