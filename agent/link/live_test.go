// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/pkg/tunnel"
)

var errCut = errors.New("cut off")

// details answers for one Release.
type details struct {
	objects []tunnel.LiveObject
	fail    error // after the objects
}

func (d *details) Live(_ context.Context, uid string, _ tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error) {
	if uid != "known" {
		return tunnel.LiveEnd{}, tunnel.ErrNoRelease
	}
	for _, o := range d.objects {
		if err := yield(o); err != nil {
			return tunnel.LiveEnd{}, err
		}
	}
	return tunnel.LiveEnd{Sequence: 3, Objects: int32(len(d.objects))}, d.fail
}

func TestTheHubAsksForLiveDetailOverTheSession(t *testing.T) {
	some := []tunnel.LiveObject{
		{Version: "v1", Kind: "ConfigMap", Name: "one", State: "Healthy", InSync: tunnel.False, Drift: []tunnel.Difference{{Path: "data.k", Wanted: `"a"`, Live: `"b"`}}},
		{Version: "v1", Kind: "ConfigMap", Name: "two", State: "Healthy", InSync: tunnel.True, Message: strings.Repeat("long ", 10000)},
	}
	tests := []struct {
		name      string
		inspector *details
		uid       string
		view      tunnel.LiveView
		want      []tunnel.LiveObject
		err       error
	}{
		{"all of it", &details{objects: some}, "known", tunnel.LiveDiff, some, nil},
		{"a Release without objects", &details{}, "known", tunnel.LiveHealth, nil, nil},
		{"a Release that is not known", &details{}, "other", tunnel.LiveHealth, nil, tunnel.ErrNoRelease},
		{"an answer that fails in the middle is not whole", &details{objects: some, fail: errCut}, "known", tunnel.LiveDiff, some, io.ErrUnexpectedEOF},
		{"an agent that is too old", nil, "known", tunnel.LiveHealth, nil, tunnel.ErrNoLive},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := setUp(t)
			if test.inspector != nil {
				r.options.Inspector = test.inspector
			}
			r.run(t)
			r.engine.wait(t, "a head", func() bool { return len(r.engine.heads) > 0 })
			ctx, cancel := context.WithTimeout(r.ctx, patience)
			defer cancel()
			var got []tunnel.LiveObject
			end, err := r.gateway.Sessions().Live(ctx, r.id.UID, test.uid, test.view, func(o tunnel.LiveObject) error {
				got = append(got, o)
				return nil
			})
			if !errors.Is(err, test.err) {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err == nil && int(end.Objects) != len(got) {
				t.Errorf("the end is %+v", end)
			}
		})
	}
}

func TestLiveDetailOfAClusterThatIsAwayIsAskedForInVain(t *testing.T) {
	r := setUp(t)
	_, err := r.gateway.Sessions().Live(r.ctx, r.id.UID, "known", tunnel.LiveHealth, func(tunnel.LiveObject) error { return nil })
	if !errors.Is(err, gateway.ErrAway) {
		t.Errorf("got %v", err)
	}
	r.run(t)
	r.engine.wait(t, "a head", func() bool { return len(r.engine.heads) > 0 })
	var status *tunnel.StatusError
	r.options.Inspector = nil
	_, err = r.gateway.Sessions().Live(r.ctx, r.id.UID, "known", "all", func(tunnel.LiveObject) error { return nil })
	if err == nil || errors.As(err, &status) && status.Code == 500 {
		t.Errorf("a view that is none: %v", err)
	}
}
