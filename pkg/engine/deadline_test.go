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
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// deaf is an API server that has ConfigMaps, remembers what it was told, and never
// answers some requests.
type deaf struct {
	never func(*http.Request) bool

	mu   sync.Mutex
	have map[string]string // by path
}

// RoundTrip implements http.RoundTripper.
func (d *deaf) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") != "" || d.never(req) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	code, body := http.StatusOK, ""
	switch path := req.URL.Path; {
	case path == "/api/v1":
		body = `{"resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list","watch"]}]}`
	case path == "/api/v1/configmaps":
		body = `{"metadata":{"resourceVersion":"1"},"items":[]}`
	case req.Method == http.MethodPatch:
		body = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"ns","uid":%[1]q,"resourceVersion":"1","annotations":{"convoy.kumodo.io/owner":"hub/r"}}}`,
			path[strings.LastIndex(path, "/")+1:])
		if req.URL.Query().Get("dryRun") == "" {
			d.have[path] = body
		}
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

// render stores one of so many ConfigMaps and gives its layer.
func (k *kept) render(t *testing.T, objects int) *tunnel.Layer {
	t.Helper()
	var text strings.Builder
	for i := range objects {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%03d, namespace: ns}\n---\n", i)
	}
	parsed, err := manifest.Parse("test.yaml", []byte(text.String()))
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
	k.source[layer.Digest] = plain.Bytes()
	return layer
}

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
			synctest.Test(t, func(t *testing.T) {
				state := &kept{late: c.late, layers: map[string][]byte{}, source: map[string][]byte{}}
				reports := make(chan tunnel.Report, 1000)
				rn, err := New(Options{
					Config: &rest.Config{Host: "http://target", Transport: &deaf{never: c.never, have: map[string]string{}}},
					HubID:  "hub", ClusterUID: "cluster", State: state, Blobs: state, Report: func(r tunnel.Report) { reports <- r },
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- rn.Run(ctx) }()
				order := tunnel.Order{
					Verb: tunnel.VerbApply, Hub: "hub", ClusterUID: "cluster", Sequence: time.Now().UnixMilli(), Objects: state.render(t, c.objects),
					Release: tunnel.ReleaseRef{UID: "r", Namespace: "apps", Name: "n"}, Requires: []string{tunnel.FeatureApply},
				}
				order.Policy.TimeoutSeconds, order.Policy.Namespace = c.seconds, "ns"
				began := time.Now()
				if err := rn.Accept(order, tunnel.Signed{}); err != nil {
					t.Fatal(err)
				}
				for r := range reports {
					if !r.Settled {
						continue
					}
					if took := time.Since(began); took > c.within {
						t.Errorf("it took %s, want %s at most", took, c.within)
					}
					if r.Applied.Status == tunnel.True || r.Applied.Reason != c.reason || !strings.Contains(r.Applied.Message, c.message) ||
						r.Operation == nil || r.Operation.Phase != "Failed" || r.Operation.FinishedAt == nil {
						t.Errorf("applied is %+v, operation %+v", r.Applied, r.Operation)
					}
					break
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
