// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"go.uber.org/goleak"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestMain(m *testing.M) {
	if args := os.Getenv(hubVariable); args != "" {
		if err := hubProcess(args, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func TestAnAgentJoinsTakesItsOrdersAndReports(t *testing.T) {
	ctx := logr.NewContext(t.Context(), testr.New(t))
	hub, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	g, url, stop, err := gatewaytest.Start(ctx, hub.Options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	id, token, err := hub.AddCluster("fleet", "edge-1", url, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	layer := hub.AddBlob([]byte(strings.Repeat("hello render\n", 100000)))
	if err := hub.Order(id.UID, "r1", 100, &layer, nil); err != nil {
		t.Fatal(err)
	}
	text, err := tunnel.EncodeToken(token)
	if err != nil {
		t.Fatal(err)
	}
	actx, cancel := context.WithCancel(ctx)
	s := &stats{}
	e := newEngine(actx, s, 0, true)
	quick := link.QuickBackoff()
	l, err := link.New(link.Options{
		Engine: e, Reporting: e, Identity: &identities{}, Token: func(context.Context) (string, error) { return text, nil },
		Hello: func(context.Context) (tunnel.Hello, error) {
			return tunnel.Hello{AgentVersion: "sim", KubernetesVersion: "v1.37.2", TargetUID: "x"}, nil
		},
		Backoff: &quick,
	})
	if err != nil {
		t.Fatal(err)
	}
	e.link = l
	done := make(chan error, 1)
	go func() { done <- l.Run(actx) }()
	wctx, wcancel := context.WithTimeout(ctx, 20*time.Second)
	defer wcancel()
	r, err := hub.Report(wctx, "r1", func(r tunnel.Report) bool { return r.Settled })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if err := hub.Order(id.UID, "r1", 101, &layer, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Report(wctx, "r1", func(r tunnel.Report) bool { return r.Settled && r.Sequence == 101 }); err != nil {
		t.Fatal(err)
	}
	info, _ := g.Sessions().Info(id.UID)
	t.Logf("%+v", info)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	e.close()
}

func TestAFleetRunsFromTheCommandLine(t *testing.T) {
	hub, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	_, url, stop, err := gatewaytest.Start(context.WithoutCancel(t.Context()), hub.Options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	const agents = 20
	var tokens strings.Builder
	layer := hub.AddBlob([]byte("render"))
	for i := range agents {
		namespace, name := gatewaytest.Names(i)
		id, token, err := hub.AddCluster(namespace, name, url, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		text, err := tunnel.EncodeToken(token)
		if err != nil {
			t.Fatal(err)
		}
		tokens.WriteString(text + "\n\n")
		if err := hub.Order(id.UID, "r-"+id.UID, 1, &layer, nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(run(ctx, []string{"--rate", "100", "--spread", "--quick", "--every", "50ms"}, strings.NewReader(tokens.String()), in, io.Discard), in.Close())
	}()
	lines := json.NewDecoder(out)
	for {
		var l line
		if err := lines.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Connected == agents && l.Acknowledged == agents && l.Applied == agents {
			break
		}
	}
	cancel()
	go func() {
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
	}()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"--agents", "5"}, strings.NewReader("only-one\n"), io.Discard, io.Discard); !errors.Is(err, errTokens) {
		t.Errorf("five agents from one token: %v", err)
	}
}
