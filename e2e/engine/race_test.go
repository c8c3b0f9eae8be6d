// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

// racer answers dry runs of one object as the server does when it changed meanwhile.
type racer struct {
	path  string
	races atomic.Int64 // that are left
}

const racedStatus = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,` +
	`"message":"Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again"}`

func (c *racer) around(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Query().Get("dryRun") == "" || !strings.HasSuffix(req.URL.Path, c.path) || c.races.Add(-1) < 0 {
			return next.RoundTrip(req)
		}
		return &http.Response{
			Status: "409 Conflict", StatusCode: http.StatusConflict, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(racedStatus)),
		}, nil
	})
}

func TestAnObjectThatChangesWhileItIsComparedIsLookedAtAgainWithoutAWord(t *testing.T) {
	inModes(t, testAnObjectThatChangesWhileItIsComparedIsLookedAtAgainWithoutAWord)
}

func testAnObjectThatChangesWhileItIsComparedIsLookedAtAgainWithoutAWord(t *testing.T) {
	t.Parallel()
	b := newIdleBench(t)
	races := &racer{path: "/configmaps/busy"}
	b.config.Wrap(races.around)
	ns := b.namespace("races")
	b.start()
	b.apply("races", ns, configMap(ns, "busy", "k", "v"))
	races.races.Store(20)
	b.edit(configmaps, ns, "busy", "somebody", `{"data":{"k":"theirs"}}`)
	b.report("uid-races", "repaired", func(r tunnel.Report) bool { return r.Operation != nil && strings.Contains(r.Operation.Message, "busy") })
	if got := data(b.get(configmaps, ns, "busy"), "k"); got != "v" {
		t.Errorf("it is %q", got)
	}
	if left := races.races.Load(); left > 0 {
		t.Errorf("%d races were not run", left)
	}
	b.mu.Lock()
	for _, r := range b.all {
		for _, e := range r.Exceptions {
			if strings.Contains(e.Message, "cannot be compared") || strings.Contains(e.Message, "cannot be repaired") {
				t.Errorf("a race was told: %+v", e)
			}
		}
	}
	b.mu.Unlock()

	manual := func(o *tunnel.Order) { o.Policy.Automatic = false }
	b.apply("races", ns, configMap(ns, "busy", "k", "v"), manual)
	b.edit(configmaps, ns, "busy", "somebody", `{"data":{"k":"theirs"}}`)
	b.report("uid-races", "drifted", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.False })
	races.races.Store(5)
	rows, _, err := b.detail("uid-races", tunnel.LiveDiff)
	if err != nil || len(rows) != 1 || rows[0].InSync != tunnel.False || len(rows[0].Drift) != 1 {
		t.Errorf("the detail is %+v: %v", rows, err)
	}
}
