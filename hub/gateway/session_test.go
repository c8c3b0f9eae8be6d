// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

func TestASessionStartsWithHello(t *testing.T) {
	r := start(t)
	_, p := r.cluster(t, "edge")
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	s, err := p.Open(r.ctx, p.Cert)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := tunnel.NewClient(s)
	for _, path := range []string{"/v1/orders", "/v1/reports", "/v1/renew"} {
		if got := reason(c.Call(r.ctx, http.MethodPost, path, tunnel.OrdersRequest{}, nil)); got != tunnel.ReasonHelloFirst {
			t.Errorf("%s: got %q", path, got)
		}
	}
	var answer tunnel.HelloAnswer
	if err := c.Call(r.ctx, http.MethodPost, "/v1/hello", tunnel.Hello{KubernetesVersion: "v1.37.2"}, &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Hub != r.ID || len(answer.OrderKeys) != 1 || time.Since(answer.Now).Abs() > time.Minute {
		t.Errorf("got %+v", answer)
	}
	if got := reason(c.Call(r.ctx, http.MethodGet, "/v1/secrets", nil, nil)); got != tunnel.ReasonNotFound {
		t.Errorf("an unknown path: got %q", got)
	}
}

func TestHelloIsRecordedAndAReconnectWritesNothing(t *testing.T) {
	r := start(t)
	id, p, _, _ := r.session(t, "edge")
	got, _ := r.ByUID(id.UID)
	if !got.Status.Reachable || got.Status.KubernetesVersion != "v1.37.2" || got.Status.AgentVersion != "test" || got.Status.ClusterUID != "target" {
		t.Errorf("recorded %+v", got.Status)
	}
	before := r.Writes()
	for range 3 {
		r.open(t, p)
	}
	if n := r.Writes() - before; n != 0 {
		t.Errorf("three reconnects made %d writes", n)
	}
}

// counting counts what would cost a read or a write of storage.
type counting struct {
	*gatewaytest.Hub
	blobs atomic.Int64
}

func (c *counting) Open(ctx context.Context, digest string, sealed bool) (io.ReadCloser, int64, error) {
	c.blobs.Add(1)
	return c.Hub.Open(ctx, digest, sealed)
}

func TestAReconnectInWhichNothingChangedNeitherReadsNorWritesStorage(t *testing.T) {
	count := &counting{}
	r := start(t, func(h *gatewaytest.Hub, o *gateway.Options) { count.Hub, o.Blobs = h, count })
	id, p := r.cluster(t, "edge")
	p.Hello.APIVersions, p.Hello.Now = []string{"v1", "apps/v1", "apps/v1"}, time.Now().Add(-3*time.Hour)
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	layer := r.AddBlob([]byte("x"))
	if err := errors.Join(r.Order(id.UID, "a", 1, &layer, nil), r.Order(id.UID, "b", 2, &layer, nil)); err != nil {
		t.Fatal(err)
	}
	have := map[string]int64{"a": 1, "b": 2}
	connect := func() {
		s, c := r.open(t, p)
		follow := orders(t, r, c, have)
		if sent, unknown, _ := follow.set(); len(sent)+len(unknown) != 0 {
			t.Errorf("sent %v and %v to an agent that has all", sent, unknown)
		}
		follow.close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for r.gateway.Sessions().Connected(id.UID) {
			runtime.Gosched()
		}
	}
	connect()
	updates, writes := r.Updates(), r.Writes()
	for range 5 {
		p.Hello.Now = time.Now().Add(-3 * time.Hour)
		connect()
	}
	if n := r.Updates() - updates; n != 0 {
		t.Errorf("five reconnects asked %d times for an update of a status, which reads at least", n)
	}
	if n := r.Writes() - writes + int(count.blobs.Load()) + len(r.Resets()); n != 0 {
		t.Errorf("five reconnects made %d calls of storage", n)
	}
}

func TestAHostileHelloIsCutShort(t *testing.T) {
	r := start(t)
	id, p := r.cluster(t, "edge")
	if err := p.Join(r.ctx, false); err != nil {
		t.Fatal(err)
	}
	s, err := p.Open(r.ctx, p.Cert)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := tunnel.NewClient(s)
	if got := reason(c.Call(r.ctx, http.MethodPost, "/v1/hello", tunnel.Hello{AgentVersion: strings.Repeat("x", tunnel.MaxHelloBody)}, nil)); got != tunnel.ReasonBadRequest {
		t.Errorf("a hello without end: got %q", got)
	}
	long := strings.Repeat("x", 50000)
	hello := tunnel.Hello{AgentVersion: long, KubernetesVersion: long[:127] + "\u00e4" + long, TargetUID: long, APIVersions: []string{long, "v1"}}
	if err := c.Call(r.ctx, http.MethodPost, "/v1/hello", hello, nil); err != nil {
		t.Fatal(err)
	}
	got, _ := r.ByUID(id.UID)
	if n := len(got.Status.AgentVersion) + len(got.Status.KubernetesVersion) + len(got.Status.ClusterUID); n > 3*128 {
		t.Errorf("%d bytes were kept", n)
	}
	if !utf8.ValidString(got.Status.KubernetesVersion) || len(got.Status.APIVersions) != 1 {
		t.Errorf("kept %+v", got.Status)
	}
	var status *tunnel.StatusError
	if err := c.Call(r.ctx, http.MethodPost, "/v1/hello", hello, nil); !errors.As(err, &status) || status.Code != http.StatusConflict {
		t.Errorf("a second hello: got %v", err)
	}
}

func TestTheNewestSessionWins(t *testing.T) {
	var seen []string
	r := start(t, func(_ *gatewaytest.Hub, o *gateway.Options) {
		o.Changed = func(id tunnel.ClusterID, connected bool) { seen = append(seen, fmt.Sprint(id.Name, connected)) }
	})
	id, p, first, _ := r.session(t, "edge")
	second, _ := r.open(t, p)
	within(t, "the end of the older session", first.Done())
	resp, err := r.gateway.Sessions().Call(id.UID, request(t, r))
	if err == nil {
		t.Error("the test's agent answers, which serves nothing")
		resp.Body.Close()
	}
	if !r.gateway.Sessions().Connected(id.UID) || r.gateway.Sessions().Len() != 1 {
		t.Error("the newer session is not in the table")
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	for r.gateway.Sessions().Connected(id.UID) {
		runtime.Gosched()
	}
	resp, err = r.gateway.Sessions().Call(id.UID, request(t, r))
	if !errors.Is(err, gateway.ErrAway) {
		t.Errorf("got %v, want ErrAway", err)
	}
	if err == nil {
		resp.Body.Close()
	}
	if got := strings.Join(seen, " "); got != "edgetrue edgefalse" {
		t.Errorf("told of %q", got)
	}
}

func request(t *testing.T, r *rig) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/v1/ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestTheHubAsksTheAgent(t *testing.T) {
	r := start(t)
	id, _, s, _ := r.session(t, "edge")
	handler := http.NewServeMux()
	handler.HandleFunc("GET /v1/ping", func(w http.ResponseWriter, req *http.Request) {
		if v := req.Header.Get("Impersonate-User"); v != "" {
			t.Errorf("impersonation of %s arrived at the agent", v)
		}
		if _, err := io.WriteString(w, "pong"); err != nil {
			t.Error(err)
		}
	})
	handler.HandleFunc("GET /v1/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	server := tunnel.NewServer(handler, func(ctx context.Context, _ any) context.Context { return ctx })
	served := make(chan error, 1)
	go func() { served <- server.Serve(tunnel.Listener(s)) }()
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, "http://169.254.169.254/v1/ping", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Impersonate-User", "admin")
	resp, err := r.gateway.Sessions().Call(id.UID, req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || string(body) != "pong" {
		t.Errorf("got %q, %v", body, err)
	}
	req.URL.Path = "/v1/endless"
	if resp, err = r.gateway.Sessions().Call(id.UID, req); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil || n > tunnel.MaxAnswerBody {
		t.Errorf("read %d bytes of an endless answer, %v", n, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err == nil {
		t.Error("the agent's server ended without a reason")
	}
}

// fetched is an answer with its body.
type fetched struct {
	code     int
	length   int64
	encoding string
	body     []byte
}

func fetch(t *testing.T, r *rig, c *tunnel.Client, digest string, header http.Header) fetched {
	t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, http.MethodGet, "http://x/v1/blobs/"+digest, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	if req.Header == nil {
		req.Header = http.Header{}
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Logf("body: %v", err)
	}
	return fetched{resp.StatusCode, resp.ContentLength, resp.Header.Get("Content-Encoding"), body}
}

func TestAnAgentGetsItsOwnRendersAndNoOthers(t *testing.T) {
	r := start(t)
	one, _, _, c1 := r.session(t, "one")
	two, _, _, c2 := r.session(t, "two")
	mine, foreign, secret := r.AddBlob([]byte("mine")), r.AddBlob([]byte("foreign")), r.AddBlob([]byte("sealed of two"))
	shared := r.AddBlob([]byte("shared"))
	unordered := r.AddBlob([]byte("ordered by nobody"))
	for uid, layers := range map[string][2]*tunnel.Layer{one.UID: {&mine, nil}, two.UID: {&foreign, &secret}} {
		if err := errors.Join(r.Order(uid, "r-"+uid, 1, layers[0], layers[1]), r.Order(uid, "s-"+uid, 1, &shared, nil)); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct {
		who    string
		c      *tunnel.Client
		digest string
		code   int
	}{
		{"one, its own", c1, mine.Digest, 200},
		{"one, what both have", c1, shared.Digest, 200},
		{"two, what both have", c2, shared.Digest, 200},
		{"two, its sealed layer", c2, secret.Digest, 200},
		{"one, of two", c1, foreign.Digest, 403},
		{"one, the sealed layer of two", c1, secret.Digest, 403},
		{"two, of one", c2, mine.Digest, 403},
		{"one, ordered by nobody", c1, unordered.Digest, 403},
		{"one, which does not exist", c1, "sha256:" + strings.Repeat("0", 64), 403},
		{"one, no digest", c1, "..%2f..%2fetc", 403},
	}
	for _, tc := range cases {
		if got := fetch(t, r, tc.c, tc.digest, nil); got.code != tc.code {
			t.Errorf("%s: got %d, want %d", tc.who, got.code, tc.code)
		}
		if got := fetch(t, r, tc.c, tc.digest, http.Header{"Range": {"bytes=1-"}}); got.code != tc.code && (tc.code != 200 || got.code != 206) {
			t.Errorf("%s, a range: got %d", tc.who, got.code)
		}
	}
	t.Run("and of reports", func(t *testing.T) {
		var answer tunnel.ReportsAnswer
		err := c1.Call(r.ctx, http.MethodPost, "/v1/reports", tunnel.ReportsRequest{Reports: []tunnel.Report{
			{Release: tunnel.ReleaseRef{UID: "r-" + one.UID}, Counter: 3}, {Release: tunnel.ReleaseRef{UID: "r-" + two.UID}, Counter: 4},
		}}, &answer)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Taken["r-"+one.UID] != 3 || answer.Refused["r-"+two.UID] == "" || len(answer.Taken) != 1 {
			t.Errorf("got %+v", answer)
		}
	})
}

func TestRendersArriveWholePackedAndInParts(t *testing.T) {
	r := start(t)
	id, _, _, c := r.session(t, "edge")
	noise := make([]byte, 300000)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	blob := append(bytes.Repeat([]byte(`{"kind":"ConfigMap"}`+"\n"), 20000), noise...)
	layer := r.AddBlob(blob)
	if err := r.Order(id.UID, "r", 1, &layer, nil); err != nil {
		t.Fatal(err)
	}
	if got := fetch(t, r, c, layer.Digest, nil); got.length != layer.Size || !bytes.Equal(got.body, blob) {
		t.Errorf("whole: %d bytes", len(got.body))
	}
	packed := fetch(t, r, c, layer.Digest, http.Header{"Accept-Encoding": {"br, zstd"}})
	dec, err := zstd.NewReader(bytes.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	got, err := io.ReadAll(dec)
	if err != nil || packed.encoding != "zstd" || !bytes.Equal(got, blob) || len(packed.body) > len(noise)+50000 {
		t.Errorf("packed: %d of %d bytes, %v", len(got), len(packed.body), err)
	}
	part := fetch(t, r, c, layer.Digest, http.Header{"Range": {"bytes=100000-"}, "Accept-Encoding": {"zstd"}})
	if part.code != 206 || !bytes.Equal(part.body, blob[100000:]) {
		t.Errorf("part: %d, %d bytes", part.code, len(part.body))
	}
	for _, bad := range []string{"bytes=0-10", "bytes=-5", "bytes=99999999-", "lines=1-", "bytes=1-,5-"} {
		if got := fetch(t, r, c, layer.Digest, http.Header{"Range": {bad}}); got.code != 416 {
			t.Errorf("range %q: got %d", bad, got.code)
		}
	}
	t.Run("a blob that fails in the middle never passes for the whole", func(t *testing.T) {
		r.Corrupt(func(_ string, b []byte) []byte { return b[:len(b)/2] })
		if got := fetch(t, r, c, layer.Digest, nil); int64(len(got.body)) >= got.length {
			t.Errorf("%d bytes of %d", len(got.body), got.length)
		}
	})
}

func TestReportsAreBounded(t *testing.T) {
	r := start(t)
	id, _, _, c := r.session(t, "edge")
	layer := r.AddBlob([]byte("x"))
	if err := r.Order(id.UID, "r", 1, &layer, nil); err != nil {
		t.Fatal(err)
	}
	report := func(entries int) tunnel.ReportsRequest {
		one := tunnel.Report{Release: tunnel.ReleaseRef{UID: "r"}, Counter: int64(entries)}
		for i := range entries {
			one.Inventory = append(one.Inventory, tunnel.InventoryEntry{
				Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "a-namespace-of-usual-length", Name: fmt.Sprintf("a-name-of-usual-length-%d", i),
				UID: "7c0b1f2e-5d5a-4c5e-9a39-2f1d3f0a1b2c", Digest: "sha256:" + strings.Repeat("ab", 32), Health: "Healthy",
			})
		}
		return tunnel.ReportsRequest{Reports: []tunnel.Report{one}}
	}
	var answer tunnel.ReportsAnswer
	if err := c.Call(r.ctx, http.MethodPost, "/v1/reports", report(10000), &answer); err != nil || answer.Taken["r"] != 10000 {
		t.Errorf("an inventory of 10,000: %+v, %v", answer, err)
	}
	if got := reason(c.Call(r.ctx, http.MethodPost, "/v1/reports", report(40000), nil)); got == "" {
		t.Error("an inventory of 40,000 was taken")
	}
	req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, "http://x/v1/reports", io.MultiReader(strings.NewReader(`{"reports":[]}`)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusLengthRequired {
		t.Errorf("without a length: got %d", resp.StatusCode)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}
