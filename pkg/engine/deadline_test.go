// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// deaf is an API server that has ConfigMaps and Jobs, remembers what it was told, and never
// answers some requests.
type deaf struct {
	never func(*http.Request) bool

	mu   sync.Mutex
	have map[string]string // by path
	rv   int               // of the last change
}

// RoundTrip implements http.RoundTripper.
func (d *deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") != "" || d.never(req) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	code := http.StatusOK
	var body string
	switch path := req.URL.Path; {
	case path == "/api/v1":
		body = `{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list","watch"]}]}`
	case path == "/apis/batch/v1":
		body = `{"resources":[{"name":"jobs","kind":"Job","namespaced":true,"verbs":["list","watch"]}]}`
	case path == "/api/v1/configmaps", path == "/apis/batch/v1/jobs":
		var items []string
		for at, item := range d.have {
			if strings.Contains(at, path[strings.LastIndex(path, "/"):]) {
				items = append(items, item)
			}
		}
		body = fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, d.rv+1, strings.Join(items, ","))
	case req.Method == http.MethodPatch:
		sent, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		object, err := decode(sent)
		if err != nil {
			return nil, err
		}
		metadata, ok := object["metadata"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s has no metadata", path)
		}
		delete(metadata, "deletionGracePeriodSeconds") // by which it is not made where there is none
		d.rv++
		metadata["uid"], metadata["resourceVersion"] = path, strconv.Itoa(d.rv+1)
		raw, err := encode(object)
		if err != nil {
			return nil, err
		}
		if body = string(raw); req.URL.Query().Get("dryRun") == "" {
			d.have[path] = body
		}
	case req.Method == http.MethodDelete:
		delete(d.have, path)
		body = `{"kind":"Status","status":"Success"}`
	default:
		if body = d.have[path]; body == "" {
			code, body = http.StatusNotFound, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404}`
		}
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {typeJSON}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

// kept is a State in memory, and the Blobs that it is filled from. late is for how long
// a layer does not come, until its download is given up.
type kept struct {
	idle
	late time.Duration

	mu     sync.Mutex
	layers map[string][]byte // that were staged
	source map[string][]byte
}

// PutRender implements State.
func (k *kept) PutRender(_ context.Context, digest string, from io.Reader) error {
	raw, err := io.ReadAll(from)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.layers[digest] = raw
	}
	return err
}

// OpenRender implements State.
func (k *kept) OpenRender(_ context.Context, digest string) (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if raw, ok := k.layers[digest]; ok {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}
	return nil, ErrNotStored
}

// Open implements Blobs.
func (k *kept) Open(_ context.Context, layer tunnel.Layer, _ bool, _ string) (io.ReadCloser, error) {
	if k.late > 0 {
		<-time.After(k.late)
		return nil, errors.New("no byte came")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return io.NopCloser(bytes.NewReader(k.source[layer.Digest])), nil
}

// configMaps are so many.
func configMaps(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%03d, namespace: ns}\n---\n", i)
	}
	return text.String()
}

// render stores one and gives its layer.
func (k *kept) render(t *testing.T, text string) *tunnel.Layer {
	t.Helper()
	parsed, err := manifest.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := manifest.Set{Namespace: "ns", Objects: parsed}
	var plain, sealed bytes.Buffer
	if _, err := set.Write(&plain, &sealed, []byte("mac key of the test"), bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(plain.Bytes())
	layer := &tunnel.Layer{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(plain.Len())}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.source[layer.Digest] = plain.Bytes()
	return layer
}

// bubble is an engine in a bubble of synctest, on a server that does not answer all.
type bubble struct {
	t       *testing.T
	state   *kept
	server  *deaf
	runner  *Runner
	reports chan tunnel.Report
}

// inBubble runs a test with an engine, and ends that.
func inBubble(t *testing.T, never func(*http.Request) bool, test func(*bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{
			t: t, state: &kept{layers: map[string][]byte{}, source: map[string][]byte{}},
			server: &deaf{never: never, have: map[string]string{}}, reports: make(chan tunnel.Report, 10000),
		}
		rn, err := New(Options{
			Config: &rest.Config{Host: "http://target", Transport: b.server}, HubID: "hub", ClusterUID: "cluster",
			State: b.state, Blobs: b.state, Report: func(r tunnel.Report) { b.reports <- r },
		})
		if err != nil {
			t.Fatal(err)
		}
		b.runner = rn
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- rn.Run(ctx) }()
		test(b)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// order gives an apply order to the engine.
func (b *bubble) order(uid, text string, seconds int64, options ...func(*tunnel.Order)) {
	b.t.Helper()
	order := tunnel.Order{
		Verb: tunnel.VerbApply, Hub: "hub", ClusterUID: "cluster", Sequence: time.Now().UnixMilli(), Objects: b.state.render(b.t, text),
		Release: tunnel.ReleaseRef{UID: uid, Namespace: "apps", Name: uid}, Requires: []string{tunnel.FeatureApply},
	}
	order.Policy.TimeoutSeconds, order.Policy.Namespace = seconds, "ns"
	for _, option := range options {
		option(&order)
	}
	if err := b.runner.Accept(order, tunnel.Signed{}); err != nil {
		b.t.Fatal(err)
	}
}

// settled is the first report that says that an operation has ended, for a reason if one
// is given.
func (b *bubble) settled(uid string, reason ...string) tunnel.Report {
	for r := range b.reports {
		if r.Release.UID == uid && r.Settled && (len(reason) == 0 || r.Applied.Reason == reason[0]) {
			return r
		}
	}
	return tunnel.Report{}
}

func noRetry(o *tunnel.Order) { o.Policy.Retry = &tunnel.Retry{MinSeconds: 1, MaxSeconds: 1} }

func TestAnOperationEndsAtItsDeadlineHoweverMuchTheServerOwesAnswers(t *testing.T) {
	dry := func(req *http.Request) bool { return req.URL.Query().Get("dryRun") != "" }
	write := func(req *http.Request) bool { return req.Method == http.MethodPatch && !dry(req) }
	const minute = time.Minute
	for name, c := range map[string]struct {
		never   func(*http.Request) bool
		late    time.Duration // of the layer
		objects int
		seconds int64
		within  time.Duration
		reason  string
		message string
	}{
		"a dry run of many objects": {dry, 0, 400, 10, defaultTimeout + minute, "Unknown", "the dry run had not ended after 5m0s"},
		"a wave of many objects":    {write, 0, 400, 120, 4 * minute, "DeadlinePassed", "after 2m0s still waiting for ConfigMap ns/c0"},
		"a wave of one":             {write, 0, 1, 120, 4 * minute, "DeadlinePassed", "after 2m0s still waiting for ConfigMap ns/c000"},
		"a layer":                   {dry, minute, 1, 10, 2 * minute, "Progressing", "no byte came"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.never, func(b *bubble) {
				b.state.late = c.late
				began := time.Now()
				b.order("r", configMaps(c.objects), c.seconds)
				r := b.settled("r")
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %s, want %s at most", took, c.within)
				}
				if r.Applied.Status == tunnel.True || r.Applied.Reason != c.reason || !strings.Contains(r.Applied.Message, c.message) ||
					r.Operation == nil || r.Operation.Phase != "Failed" || r.Operation.FinishedAt == nil {
					t.Errorf("applied is %+v, operation %+v", r.Applied, r.Operation)
				}
			})
		})
	}
}

func TestAHookThatDoesNotEndHasFailedAtItsTimeoutOrThatOfTheSync(t *testing.T) {
	for name, c := range map[string]struct{ annotations, want string }{
		"its own":          {`convoy.kumodo.io/hook: PreSync, convoy.kumodo.io/hook-timeout: "30"`, "DeadlinePassed: after 30s"},
		"that of the sync": {`convoy.kumodo.io/hook: PreSync`, "DeadlinePassed: after 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(*http.Request) bool { return false }, func(b *bubble) {
				b.order("r", configMaps(1)+"apiVersion: batch/v1\nkind: Job\nmetadata: {name: endless, namespace: ns, annotations: {"+c.annotations+"}}\n", 120, noRetry,
					func(o *tunnel.Order) { o.Requires = append(o.Requires, tunnel.FeatureHooks) })
				r := b.settled("r")
				if r.Applied.Status != tunnel.False || !strings.Contains(r.Applied.Message, "Job ns/endless failed: "+c.want) || r.Operation.Phase != "Failed" {
					t.Errorf("applied is %+v, operation %+v", r.Applied, r.Operation)
				}
				b.server.mu.Lock()
				defer b.server.mu.Unlock()
				if len(b.server.have) != 0 {
					t.Errorf("there are %v: want the Job stopped, and nothing applied", b.server.have)
				}
			})
		})
	}
}

func TestAReleaseWaitsForALowerWaveAsLongAsItTakesAndSaysSo(t *testing.T) {
	wave := func(n int32) func(*tunnel.Order) {
		return func(o *tunnel.Order) { o.Wave, o.Requires = n, append(o.Requires, tunnel.FeatureWave) }
	}
	never := func(req *http.Request) bool {
		return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "c000")
	}
	inBubble(t, never, func(b *bubble) {
		b.order("low", configMaps(1), 10, wave(-1), noRetry)
		b.order("high", strings.ReplaceAll(configMaps(1), "c000", "high"), 10, wave(0))
		if r := b.settled("low", "RetriesExhausted"); !strings.Contains(r.Applied.Message, "DeadlinePassed") {
			t.Errorf("low: applied is %+v", r.Applied)
		}
		<-time.After(24 * time.Hour)
		r, ok := b.runner.Newest("high")
		if !ok || r.Settled || r.Applied.Status != tunnel.Unknown || r.Applied.Reason != "WaitingForWave" || !strings.Contains(r.Applied.Message, "Release apps/low of wave -1") {
			t.Errorf("high: %+v", r)
		}
		// A person mends the lower one, or lets go of it.
		remove := tunnel.Order{
			Verb: tunnel.VerbRelease, Hub: "hub", ClusterUID: "cluster", Sequence: time.Now().UnixMilli(), IssuedAt: time.Now(),
			Release: tunnel.ReleaseRef{UID: "low", Namespace: "apps", Name: "low"}, Requires: []string{tunnel.FeatureRelease},
		}
		if err := b.runner.Accept(remove, tunnel.Signed{}); err != nil {
			t.Fatal(err)
		}
		if r = b.settled("high"); r.Applied.Status != tunnel.True {
			t.Errorf("high: applied is %+v", r.Applied)
		}
	})
}
