// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/tunnel"
)

func TestWhatWasWrittenOfLiveObjectsIsReadBack(t *testing.T) {
	at := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	want := []tunnel.LiveObject{
		{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "one", State: "Healthy", InSync: tunnel.True},
		{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team", Name: "two", State: "Degraded", Message: "no pods", Since: at,
			InSync: tunnel.False, Reason: "Drifted", Drift: []tunnel.Difference{{Path: "spec.replicas", Wanted: "3", Live: "5", Manager: "somebody"}}, MoreDrift: 2,
		},
	}
	var wire bytes.Buffer
	for i := range want {
		if err := tunnel.WriteLiveLine(&wire, tunnel.LiveLine{Object: &want[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tunnel.WriteLiveLine(&wire, tunnel.LiveLine{End: &tunnel.LiveEnd{Sequence: 7, Objects: 2, Left: 1, At: at}}); err != nil {
		t.Fatal(err)
	}
	var got []tunnel.LiveObject
	end, err := tunnel.ReadLive(&wire, func(o tunnel.LiveObject) error {
		got = append(got, o)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tunnel.LiveEnd{Sequence: 7, Objects: 2, Left: 1, At: at}, end); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
}

func TestALiveAnswerThatIsNotWholeIsNoAnswer(t *testing.T) {
	object := `{"object":{"kind":"ConfigMap","name":"` + strings.Repeat("x", 2000) + `"}}` + "\n"
	tests := []struct {
		name, answer string
		want         error
	}{
		{"empty", "", io.ErrUnexpectedEOF},
		{"cut after an object", object, io.ErrUnexpectedEOF},
		{"a line without end", strings.Repeat("x", tunnel.MaxLiveBody+10), tunnel.ErrTooLong},
		{"more than may be sent", strings.Repeat(object, tunnel.MaxLiveBody/len(object)+10) + `{"end":{}}`, nil},
		{"no JSON", "{{\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := tunnel.ReadLive(strings.NewReader(test.answer), func(tunnel.LiveObject) error { return nil })
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
