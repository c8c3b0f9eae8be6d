// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/engine"
	"kumodo.io/convoy/pkg/state"
	"kumodo.io/convoy/pkg/tunnel"
)

// serving is an engine that runs for a Cluster, with its pipe.
type serving struct {
	target string // kube-system UID
	runner *engine.Runner
	state  *state.Secrets
	pump   *pump
	cancel context.CancelFunc
	ended  chan struct{}
}

func (s *serving) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// start runs an engine for the Cluster.
func (c *cell) start(ctx context.Context, cluster *v1alpha1.Cluster, target string) error {
	m := c.manager
	if !c.slot {
		select {
		case m.slots <- struct{}{}:
			c.slot = true
		default:
			f := unsupported("this hub runs engines for %d clusters, which is the most it does: install an agent in this cluster instead", cap(m.slots))
			return f
		}
	}
	namespace := m.opts.AgentlessNamespace
	if cluster.Spec.ConnectionMode == v1alpha1.ConnectionModeInCluster {
		namespace = m.opts.InClusterNamespace
	}
	if err := c.prepare(ctx, cluster.Spec.ConnectionMode, namespace); err != nil {
		return err
	}
	kept, err := state.NewSecretsShared(m.shared, c.conn.config, namespace)
	if err != nil {
		return fmt.Errorf("make the state: %w", err)
	}
	log := logr.FromContextOrDiscard(ctx)
	s := &serving{target: target, state: kept, ended: make(chan struct{})}
	s.pump = newPump(m, c.id, func(uid string, counter int64) { //nolint:contextcheck // the engine works under the context of its Run
		s.runner.Acknowledged(uid, counter)
	})
	s.runner, err = engine.New(engine.Options{
		Config: c.conn.config, HubID: m.opts.HubID, ClusterUID: string(c.uid), State: kept, Blobs: c,
		Report: s.pump.add, Verify: m.verify, HubTime: m.clock.Now, Clock: m.clock, Logger: log.WithName("engine"), Registerer: m.engines,
	})
	if err != nil {
		return fmt.Errorf("make the engine: %w", err)
	}
	ctx, s.cancel = context.WithCancel(ctx)
	go func() {
		defer close(s.ended)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return s.runner.Run(ctx) })
		group.Go(func() error { return s.pump.run(ctx) })
		group.Go(func() error { return c.follow(ctx, s) })
		if err := group.Wait(); err != nil && ctx.Err() == nil {
			log.Error(err, "the engine of a cluster ended, and is started again")
		}
		s.runner.Discard()
	}()
	c.serving = s
	c.now.Store(s)
	m.metrics.started.Inc()
	log.Info("engine of a cluster starts", "mode", cluster.Spec.ConnectionMode, "stateNamespace", namespace)
	return nil
}

// stop ends the engine and waits for it.
func (c *cell) stop() {
	if c.serving != nil {
		c.now.Store(nil)
		c.serving.cancel()
		<-c.serving.ended
		c.serving = nil
	}
	if c.slot {
		<-c.manager.slots
		c.slot = false
	}
}

// verify checks an order with the keys of this hub, as an agent does with those
// that it was told.
func (m *Manager) verify(signed tunnel.Signed) error {
	return tunnel.Verify(signed, tunnel.TypeOrder, m.opts.OrderKeys()) //nolint:wrapcheck // says what it is
}

// loaded waits until the engine has read its state.
func (c *cell) loaded(ctx context.Context, s *serving) error {
	ticker := c.manager.clock.NewTicker(loadedPoll)
	defer ticker.Stop()
	for !s.runner.Loaded() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C():
		}
	}
	return nil
}

// startFault turns the error of a call for the state's namespace into a fault.
func (c *cell) startFault(ctx context.Context, mode v1alpha1.ConnectionMode, err error, what string) error {
	if apierrors.IsForbidden(err) {
		return c.probeFault(ctx, mode, err)
	}
	return away(err, "%s: %s", what, plain(err))
}
