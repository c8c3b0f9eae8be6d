// SPDX-License-Identifier: Apache-2.0

// Package refusal_test puts a gateway that lies in front of a real agent on a
// real control plane. The gateway is the hub's own; what it serves is changed
// on the way: between deliver and apply, where a compromised front end would sit.
package refusal_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/e2e/harness"
	"kumodo.io/convoy/e2e/install"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	agentinstall "kumodo.io/convoy/kubectl-convoy/install"
	"kumodo.io/convoy/pkg/tunnel"
)

const patience = 5 * time.Minute

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// bed is a hub in memory, an edge with the shipped agent, and one Release that
// runs: ConfigMap default/settings with a=1, at sequence base.
type bed struct {
	hub   *gatewaytest.Hub
	id    tunnel.ClusterID
	plane *harness.Plane
	edge  *install.Edge
	base  int64
}

const release = "release-under-test"

func newBed(t *testing.T) (context.Context, *bed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	programs, err := install.Built()
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.BuildProgram(ctx, "./agent", programs.Agent); err != nil {
		t.Fatal(err)
	}
	b := &bed{plane: harness.T(t, harness.Options{Name: "edge", UnsafeNoFsync: true})}
	if b.hub, err = gatewaytest.NewHub(); err != nil {
		t.Fatal(err)
	}
	_, url, stop, err := gatewaytest.Start(context.WithoutCancel(ctx), b.hub.Options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	id, token, err := b.hub.AddCluster("team", "edge", url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.id = id
	text, err := tunnel.EncodeToken(token)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := agentinstall.Agent{
		ClusterNamespace: "team", ClusterName: "edge", HubID: b.hub.ID, Image: install.AgentImage,
		Token: text, ExpiresAt: agentinstall.ExpiresAt(time.Now().Add(time.Hour)),
	}.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if b.edge, err = install.Agent(ctx, b.plane, programs, string(manifests)); err != nil {
		t.Fatal(err)
	}
	b.base = time.Now().UnixMilli()
	layer := b.hub.AddBlob(render("1"))
	if err := b.hub.Order(id.UID, release, b.base, &layer, nil); err != nil {
		t.Fatal(err)
	}
	b.report(ctx, t, func(r tunnel.Report) bool {
		return r.Sequence == b.base && r.Settled && r.Applied.Status == tunnel.True
	})
	return ctx, b
}

// render is one with one ConfigMap.
func render(value string) []byte {
	return fmt.Appendf(nil, "%s\n%s\n",
		`{"format":"convoy.render/v1","count":1,"waves":[0],"namespace":"default"}`,
		`{"apiVersion":"v1","data":{"a":"`+value+`"},"kind":"ConfigMap","metadata":{"name":"settings","namespace":"default"}}`)
}

func (b *bed) report(ctx context.Context, t *testing.T, ok func(tunnel.Report) bool) tunnel.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := b.hub.Report(ctx, release, ok)
	if err != nil {
		log, readErr := os.ReadFile(b.edge.Pod.Log())
		t.Fatalf("%v; last report %+v; log (%v):\n%s", err, r, readErr, log[max(0, len(log)-4000):])
	}
	return r
}

// untouched asserts that the edge runs what was ordered first, and heals it.
func (b *bed) untouched(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	maps := b.plane.Dynamic().Resource(configMaps).Namespace("default")
	u, err := maps.Get(ctx, "settings", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value, _, err := unstructured.NestedString(u.Object, "data", "a"); err != nil || value != "1" {
		t.Errorf("the edge runs a=%q (%v), want what was ordered first", value, err)
	}
	if _, err := b.plane.Kubectl(ctx, "patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"a":"x"}}`); err != nil {
		t.Fatal(err)
	}
	_, err = harness.WaitFor(ctx, b.plane.Dynamic(), configMaps, "default", "settings", func(u *unstructured.Unstructured) (bool, error) {
		value, _, err := unstructured.NestedString(u.Object, "data", "a")
		return value == "1", err
	})
	if err != nil {
		t.Errorf("what was ordered first is not enforced any more: %v", err)
	}
}

// order builds one for the bed's Release with the value as content.
func (b *bed) order(value string, sequence int64, mod func(*tunnel.Order)) (tunnel.Order, tunnel.Layer) {
	layer := b.hub.AddBlob(render(value))
	o := tunnel.Order{
		Verb: tunnel.VerbApply, Hub: b.hub.ID, ClusterUID: b.id.UID, Sequence: sequence, IssuedAt: time.Now(),
		Release: tunnel.ReleaseRef{UID: release, Namespace: "default", Name: release}, Objects: &layer,
		Policy: tunnel.Policy{Automatic: true, TimeoutSeconds: 300, Namespace: "default"}, Requires: []string{tunnel.FeatureApply},
	}
	if mod != nil {
		mod(&o)
	}
	return o, layer
}

func (b *bed) put(t *testing.T, o tunnel.Order, layer tunnel.Layer, key ed25519.PrivateKey) {
	t.Helper()
	signed, err := tunnel.SignJSON(tunnel.TypeOrder, o, key)
	if err != nil {
		t.Fatal(err)
	}
	b.hub.Put(b.id.UID, tunnel.SignedOrder{UID: release, Sequence: o.Sequence, Signed: signed}, &layer, nil)
}

func TestTheEdgeRefusesWhatTheHubDidNotOrder(t *testing.T) {
	ctx, b := newBed(t)
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name   string
		reason string
		says   string
		key    ed25519.PrivateKey
		step   int64 // of the sequence
		mod    func(*tunnel.Order)
	}{
		{"an order signed by another key", corev1alpha1.ReasonOrderRefused, "signature", foreign, 1, nil},
		{"an older order", corev1alpha1.ReasonOrderRefused, "newer", b.hub.OrderKey, -1, nil},
		{"an order for another Cluster", corev1alpha1.ReasonOrderRefused, "another cluster", b.hub.OrderKey, 3, func(o *tunnel.Order) { o.ClusterUID = "another" }},
		{"an order of another hub", corev1alpha1.ReasonOrderRefused, "another hub", b.hub.OrderKey, 4, func(o *tunnel.Order) { o.Hub = "another" }},
		{"an order from the future", corev1alpha1.ReasonOrderRefused, "ahead", b.hub.OrderKey, (48 * time.Hour).Milliseconds(), nil},
		{"an order that needs what this agent lacks", corev1alpha1.ReasonAgentTooOld, "teleport.v9", b.hub.OrderKey, 5, func(o *tunnel.Order) { o.Requires = append(o.Requires, "teleport.v9") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, layer := b.order("2", b.base+c.step, c.mod)
			b.put(t, o, layer, c.key)
			r := b.report(ctx, t, func(r tunnel.Report) bool {
				return r.Refused != nil && r.RefusedSequence == b.base+c.step
			})
			if r.Refused.Reason != c.reason || !strings.Contains(r.Refused.Message, c.says) || r.Sequence != b.base {
				t.Errorf("refused with %+v at sequence %d, want reason %s, a message with %q, at %d", *r.Refused, r.Sequence, c.reason, c.says, b.base)
			}
			b.untouched(ctx, t)
		})
	}

	t.Run("a render in which one bit was changed", func(t *testing.T) {
		o, layer := b.order("3", b.base+10, nil)
		b.hub.Corrupt(func(digest string, blob []byte) []byte {
			if digest == layer.Digest {
				blob[len(blob)/2] ^= 1
			}
			return blob
		})
		b.put(t, o, layer, b.hub.OrderKey)
		r := b.report(ctx, t, func(r tunnel.Report) bool {
			return r.Applied.Status == tunnel.False && r.Applied.Reason == corev1alpha1.ReasonRenderRefused
		})
		if !strings.Contains(r.Applied.Message, layer.Digest) {
			t.Errorf("the message does not name the digest: %q", r.Applied.Message)
		}
		b.untouched(ctx, t)
		b.hub.Corrupt(nil)
	})

	t.Run("and takes the next honest order", func(t *testing.T) {
		o, layer := b.order("4", b.base+20, nil)
		b.put(t, o, layer, b.hub.OrderKey)
		b.report(ctx, t, func(r tunnel.Report) bool {
			return r.Sequence == b.base+20 && r.Settled && r.Applied.Status == tunnel.True && r.Refused == nil
		})
	})
}
