// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/tunnel"
)

type fleetOptions struct {
	Agents      int
	GatewayURL  string
	OuterCAFile string
	Settle      time.Duration
	Fetch       bool
	Rate        float64
	Spread      bool
	Quick       bool
	// First is the number of the first agent: its cluster is simulated-FIRST.
	First int

	identities []*link.Identity // instead of tokens
}

// maxTokens bounds what is read: a process has so many descriptors at most.
const maxTokens = 50000

var errTokens = errors.New("too few tokens")

func readTokens(r io.Reader) ([]string, error) {
	var texts []string
	lines := bufio.NewScanner(r)
	for lines.Scan() && len(texts) < maxTokens {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			texts = append(texts, text)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return texts, nil
}

// readIdentities reads one identity a line, as JSON.
func readIdentities(r io.Reader) ([]*link.Identity, error) {
	var all []*link.Identity
	lines := json.NewDecoder(r)
	for len(all) < maxTokens {
		id := &link.Identity{}
		if err := lines.Decode(id); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read identities: %w", err)
		}
		all = append(all, id)
	}
	return all, nil
}

// fleet is many agents.
type fleet struct {
	opts  fleetOptions
	texts []string
	stats stats
	began time.Time

	mu     sync.Mutex
	agents []simulated
}

// simulated is one agent.
type simulated struct {
	link   *link.Link
	engine *engine
	dialer *dialer
}

// current tells whether an agent is connected and has heard from the hub, since it
// dialed, which orders there are for it.
func (s simulated) current() bool {
	return s.link.Connected() && s.engine.headed.Load() > s.dialer.dialed.Load()
}

// line is what is printed.
type line struct {
	Seconds      float64 `json:"seconds"`
	Agents       int     `json:"agents"`
	Connected    int     `json:"connected"`
	Accepted     int64   `json:"accepted"`
	Refused      int64   `json:"refused"`
	Applied      int64   `json:"applied"`
	Acknowledged int64   `json:"acknowledged"`
	FetchFailed  int64   `json:"fetchFailed"`
	FetchRetried int64   `json:"fetchRetried"`
	Heads        int64   `json:"heads"`
	// Current agents are connected and know which orders there are for them now.
	Current  int   `json:"current"`
	Repeated int64 `json:"repeated"`
	// Bytes of the connections that carry the websockets, TLS included, and of the
	// websockets in both directions without it.
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
	Frames   int64 `json:"frames"`
	Dials    int64 `json:"dials"`
	// Crowd is the most dials of one agent within ten seconds, Shortest the seconds
	// between two dials of one agent.
	Crowd    int64   `json:"crowd"`
	Shortest float64 `json:"shortest"`
}

func newFleet(o fleetOptions, texts []string) (*fleet, error) {
	if o.identities != nil {
		texts = make([]string, len(o.identities))
	}
	if o.Agents == 0 {
		o.Agents = len(texts)
	}
	if len(texts) < o.Agents || o.Agents == 0 {
		return nil, fmt.Errorf("%w: %d for %d agents", errTokens, len(texts), o.Agents)
	}
	return &fleet{opts: o, texts: texts, began: time.Now()}, nil
}

func (f *fleet) line() line {
	l := line{
		Seconds: time.Since(f.began).Seconds(), Agents: f.opts.Agents, Accepted: f.stats.accepted.Load(),
		Refused: f.stats.refused.Load(), Applied: f.stats.applied.Load(), Acknowledged: f.stats.acknowledged.Load(),
		FetchFailed: f.stats.fetchFailed.Load(), FetchRetried: f.stats.fetchRetried.Load(), Heads: f.stats.heads.Load(),
		Repeated: f.stats.repeated.Load(), Received: f.stats.wire.received.Load(), Sent: f.stats.wire.sent.Load(), Frames: f.stats.wire.frames.Load(),
		Dials: f.stats.wire.dials.Load(), Crowd: f.stats.wire.crowd.Load(), Shortest: time.Duration(f.stats.wire.shortest.Load()).Seconds(),
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.agents {
		if one.link.Connected() {
			l.Connected++
		}
		if one.current() {
			l.Current++
		}
	}
	return l
}

// run starts the agents at the given rate and waits for all of them.
func (f *fleet) run(ctx context.Context) error {
	pace := rate.NewLimiter(rate.Limit(f.opts.Rate), 1)
	group, ctx := errgroup.WithContext(ctx)
	for i := range f.opts.Agents {
		if err := pace.Wait(ctx); err != nil {
			break // the end was asked for
		}
		l, e, err := f.agent(ctx, i)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		group.Go(func() error {
			defer e.close()
			if err := l.Run(ctx); err != nil {
				return fmt.Errorf("agent %d: %w", i, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err // made above
	}
	return nil
}

// agent makes one.
func (f *fleet) agent(ctx context.Context, i int) (*link.Link, *engine, error) {
	number := f.opts.First + i
	kept := &identities{}
	if f.opts.identities != nil {
		kept.id = f.opts.identities[i]
	}
	e := newEngine(ctx, &f.stats, f.opts.Settle, f.opts.Fetch)
	o := link.Options{
		Engine: e, Reporting: e, Identity: kept, GatewayURL: f.opts.GatewayURL, OuterCAFile: f.opts.OuterCAFile,
		Token: func(context.Context) (string, error) { return f.texts[i], nil },
		Hello: func(context.Context) (tunnel.Hello, error) {
			return tunnel.Hello{
				AgentVersion: "simulated", KubernetesVersion: "v1.37.2", APIVersions: []string{"apps/v1", "v1"},
				TargetUID: fmt.Sprintf("simulated-%d", number),
				Features: []string{
					tunnel.FeatureApply, tunnel.FeatureRemove, tunnel.FeatureRelease, tunnel.FeatureSealed, tunnel.FeatureReplace,
				},
			}, nil
		},
	}
	if f.opts.Quick {
		quick := link.QuickBackoff()
		o.Backoff = &quick
	}
	d := &dialer{Dialer: net.Dialer{Timeout: tunnel.HandshakeTimeout, KeepAlive: tunnel.PingInterval}, wire: &f.stats.wire}
	if f.opts.Spread {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, byte(1+number>>16), byte(number>>8), byte(1+number%250))}
	}
	o.Dial = d.dial
	l, err := link.New(o)
	if err != nil {
		return nil, nil, fmt.Errorf("agent %d: %w", i, err)
	}
	e.link = l
	f.mu.Lock()
	f.agents = append(f.agents, simulated{l, e, d})
	f.mu.Unlock()
	return l, e, nil
}
