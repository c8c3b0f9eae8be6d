// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a gateway and the hub around it.
type rig struct {
	*gatewaytest.Hub
	gateway *gateway.Gateway
	url     string
	ctx     context.Context
	pipes   *gatewaytest.Pipes // of a rig under the fake clock
}

func start(t *testing.T, changes ...func(*gatewaytest.Hub, *gateway.Options)) *rig {
	t.Helper()
	hub, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	o := hub.Options()
	for _, change := range changes {
		change(hub, &o)
	}
	ctx := t.Context()
	if testing.Verbose() {
		ctx = logr.NewContext(ctx, testr.New(t))
	}
	// Ended by stop, after the connections of the test.
	g, url, stop, err := gatewaytest.Start(context.WithoutCancel(ctx), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return &rig{Hub: hub, gateway: g, url: url, ctx: ctx}
}

// cluster adds a Cluster and an agent for it that has not joined.
func (r *rig) cluster(t *testing.T, name string) (tunnel.ClusterID, *gatewaytest.Peer) {
	t.Helper()
	id, token, err := r.AddCluster("fleet", name, r.url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.NewPeer(token)
	if err != nil {
		t.Fatal(err)
	}
	return id, p
}

// anew is an agent with a new token of a Cluster that is there, which has not joined yet.
func (r *rig) anew(t *testing.T, id tunnel.ClusterID, url string) *gatewaytest.Peer {
	t.Helper()
	token, err := r.NewToken(id, url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.NewPeer(token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// session joins as a new Cluster and says hello.
func (r *rig) session(t *testing.T, name string) (tunnel.ClusterID, *gatewaytest.Peer, *tunnel.Session, *tunnel.Client) {
	t.Helper()
	id, p := r.cluster(t, name)
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	s, c := r.open(t, p)
	return id, p, s, c
}

func (r *rig) open(t *testing.T, p *gatewaytest.Peer) (*tunnel.Session, *tunnel.Client) {
	t.Helper()
	s, c, err := p.Session(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

// reason is what a refusal names, "" when there was none.
func reason(err error) string {
	var status *tunnel.StatusError
	if errors.As(err, &status) {
		return status.Problem.Reason
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return ""
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal(what + " did not happen")
	}
}

func setReachable(status *v1alpha1.ClusterStatus) error {
	status.Reachable = true
	return nil
}
