// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

const (
	hubVariable    = "CONVOY_BENCH_HUB"
	agentsVariable = "CONVOY_BENCH_AGENTS"
	// profilesVariable names a folder that profiles of the hub are written to.
	profilesVariable = "CONVOY_BENCH_PROFILES"
)

// memory of a process, in bytes.
type memory struct {
	RSS, Heap, Stacks uint64
	Goroutines        int
}

func measure() (memory, error) {
	// Several times, as an idle hub does by itself: each time pools lose a
	// generation and a stack that is too large is halved.
	for range 6 {
		debug.FreeOSMemory()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return memory{}, fmt.Errorf("resident memory: %w", err)
	}
	got := memory{Heap: m.HeapAlloc, Stacks: m.StackInuse, Goroutines: runtime.NumGoroutine()}
	for _, l := range strings.Split(string(status), "\n") {
		if fields := strings.Fields(l); len(fields) == 3 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return memory{}, fmt.Errorf("resident memory: %w", err)
			}
			got.RSS = kib << 10
		}
	}
	return got, nil
}

// profile writes what is live on the heap and where goroutines stand, if a folder for
// it was named.
func profile() error {
	dir := os.Getenv(profilesVariable)
	if dir == "" {
		return nil
	}
	for _, name := range []string{"heap", "goroutine"} {
		file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d-%d", name, os.Getpid(), time.Now().UnixMilli())))
		if err != nil {
			return fmt.Errorf("profile: %w", err)
		}
		if err := errors.Join(pprof.Lookup(name).WriteTo(file, 0), file.Close()); err != nil {
			return fmt.Errorf("profile: %w", err)
		}
	}
	return nil
}

// hubProcess is the hub of the benchmark, in a process of its own. It answers
// each line on stdin with one on stdout.
func hubProcess(args string, in io.Reader, out io.Writer) error {
	agents, mode, _ := strings.Cut(args, " ")
	n, err := strconv.Atoi(agents)
	if err != nil {
		return fmt.Errorf("agents: %w", err)
	}
	hub, err := gatewaytest.NewHub()
	if err != nil {
		return err
	}
	o := hub.Options()
	o.Plain, o.PerIP = mode == "one", -1
	g, url, stop, err := gatewaytest.Start(context.Background(), o)
	if err != nil {
		return err
	}
	ids := make([]tunnel.ClusterID, n)
	for i := range n {
		namespace, name := gatewaytest.Names(i)
		id, token, err := hub.AddCluster(namespace, name, url, time.Hour)
		if err != nil {
			return err
		}
		ids[i] = id
		identity, err := joined(hub, id, token)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(identity); err != nil {
			return fmt.Errorf("print identity: %w", err)
		}
	}
	blob := make([]byte, 1<<20)
	if _, err := rand.Read(blob); err != nil {
		return fmt.Errorf("make blob: %w", err)
	}
	layer := hub.AddBlob(blob)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch lines.Text() {
		case "measure":
			m, err := measure()
			if err != nil {
				return err
			}
			if err := profile(); err != nil {
				return err
			}
			if err := json.NewEncoder(out).Encode(m); err != nil {
				return fmt.Errorf("answer: %w", err)
			}
		case "push":
			for _, id := range ids {
				if err := hub.Order(id.UID, "r-"+id.UID, time.Now().UnixMilli(), &layer, nil); err != nil {
					return err
				}
			}
			fmt.Fprintln(out, "pushed")
		case "sessions":
			fmt.Fprintln(out, g.Sessions().Len())
		}
	}
	return errors.Join(lines.Err(), stop())
}

// joined makes an identity that has joined, as after a restart of the hub: what
// joins leave on the heap is not what is measured.
func joined(hub *gatewaytest.Hub, id tunnel.ClusterID, token tunnel.Token) (*link.Identity, error) {
	p, err := hub.NewPeer(token)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(p.Client.Public())
	if err != nil {
		return nil, fmt.Errorf("encode client key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(p.Client)
	if err != nil {
		return nil, fmt.Errorf("encode client key: %w", err)
	}
	bound, ok := p.Bound.Public().(ed25519.PublicKey)
	if !ok {
		return nil, tunnel.ErrKey
	}
	issuer := tunnel.Issuer{Hub: hub.ID, CA: hub.CA, Signer: hub.CASigner}
	prepared, err := issuer.Prepare(id, tunnel.KeyID(bound), public, time.Now())
	if err != nil {
		return nil, err
	}
	cert, err := issuer.Sign(prepared)
	if err != nil {
		return nil, err
	}
	err = hub.Update(context.Background(), id, func(status *v1alpha1.ClusterStatus) error {
		status.Join = nil
		status.Agent = &v1alpha1.ClusterAgentStatus{BoundKey: base64.StdEncoding.EncodeToString(bound)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &link.Identity{
		Hub: hub.ID, ClusterUID: id.UID, GatewayURL: token.Gateway, CAPin: token.CAPin,
		HubCA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.CA.Raw}), OrderKeys: [][]byte{hub.OrderPublic()},
		BoundKey: p.Bound.Seed(), ClientKey: private, Certificate: cert, HubTime: time.Now(),
	}, nil
}

type hubHandle struct {
	b     *testing.B
	in    io.Writer
	lines *bufio.Scanner
}

func (h hubHandle) ask(what string) string {
	h.b.Helper()
	if _, err := fmt.Fprintln(h.in, what); err != nil {
		h.b.Fatal(err)
	}
	return h.line()
}

func (h hubHandle) line() string {
	h.b.Helper()
	if !h.lines.Scan() {
		h.b.Fatal("the hub process has ended: ", h.lines.Err())
	}
	return h.lines.Text()
}

func (h hubHandle) memory() memory {
	h.b.Helper()
	var m memory
	if err := json.Unmarshal([]byte(h.ask("measure")), &m); err != nil {
		h.b.Fatal(err)
	}
	return m
}

// BenchmarkHubMemoryPerIdleAgent measures what a hub process grows by for each
// agent that is connected and has its orders stream open: with TLS of its own
// outside the websocket (two layers) or behind a terminator (one), idle, and
// after each agent was pushed a render of 1 MiB that does not compress.
//
//	go test -run NONE -bench HubMemory -benchtime 1x ./e2e/simagent
func BenchmarkHubMemoryPerIdleAgent(b *testing.B) {
	agents := 1000
	if text := os.Getenv(agentsVariable); text != "" {
		var err error
		if agents, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for _, mode := range []string{"one", "two"} {
		b.Run(mode+" TLS layers", func(b *testing.B) {
			for b.Loop() {
				memoryRun(b, agents, mode)
			}
		})
	}
}

func memoryRun(b *testing.B, agents int, mode string) {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	child := exec.CommandContext(b.Context(), program)
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", hubVariable, agents, mode))
	var stderr bytes.Buffer
	child.Stderr = &stderr
	in, err := child.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	h := hubHandle{b: b, in: in, lines: bufio.NewScanner(out)}
	o := fleetOptions{Fetch: true, Rate: 200, Quick: true}
	for range agents {
		var id link.Identity
		if err := json.Unmarshal([]byte(h.line()), &id); err != nil {
			b.Fatal(err)
		}
		o.identities = append(o.identities, &id)
	}
	before := h.memory()

	f, err := newFleet(o, make([]string, agents))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- f.run(ctx) }()
	waitFor(b, "all agents to connect", func() bool { l := f.line(); return l.Connected == agents && l.Heads >= int64(agents) })
	b.ReportMetric(time.Since(began).Seconds(), "s-to-connect")
	if got := h.ask("sessions"); got != strconv.Itoa(agents) {
		b.Fatalf("%s sessions", got)
	}
	idle := h.memory()
	h.ask("push")
	waitFor(b, "all reports to be acknowledged", func() bool { return f.line().Acknowledged >= int64(agents) })
	if failed := f.line().FetchFailed; failed > 0 {
		b.Fatalf("%d renders were not fetched", failed)
	}
	pushed := h.memory()
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := in.Close(); err != nil {
		b.Error(err)
	}
	if err := child.Wait(); err != nil {
		b.Error(err, stderr.String())
	}
	per := func(now, then uint64) float64 { return (float64(now) - float64(then)) / float64(agents) / 1024 }
	b.ReportMetric(per(idle.RSS, before.RSS), "KiB-RSS/agent")
	b.ReportMetric(per(idle.Heap, before.Heap), "KiB-heap/agent")
	b.ReportMetric(per(idle.Stacks, before.Stacks), "KiB-stack/agent")
	b.ReportMetric(float64(idle.Goroutines-before.Goroutines)/float64(agents), "goroutines/agent")
	b.ReportMetric(per(pushed.RSS, before.RSS), "KiB-RSS-after-push/agent")
}

func waitFor(b *testing.B, what string, ok func() bool) {
	b.Helper()
	deadline := time.NewTimer(3 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.Fatalf("waited in vain for %s", what)
		}
	}
}
