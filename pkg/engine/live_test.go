// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// known is a Release with objects that are all well, but the last ones.
func known(t *testing.T, objects, drifted int) *Runner {
	t.Helper()
	rn, _ := unstarted(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := rn.newRelease("r")
	rn.releases["r"] = r
	r.order = tunnel.Order{Verb: tunnel.VerbApply, Sequence: 7}
	for i := range objects {
		id := manifest.Identity{Kind: "ConfigMap", Namespace: "a-namespace-of-a-usual-length", Name: fmt.Sprintf("an-object-of-a-usual-length-%05d", i)}
		o := &object{id: id, version: "v1", line: int32(i + 1), applied: true, seen: true, health: healthy, since: rn.clock.Now()}
		if i >= objects-drifted {
			o.missing, o.health, o.why = true, progressing, "does not exist"
		}
		r.objects[id] = o
	}
	return rn
}

func TestAnAnswerAboutManyObjectsIsBoundedAndNamesTheWorstFirst(t *testing.T) {
	t.Parallel()
	const many = 10000
	rn := known(t, many, 3)
	for _, view := range []tunnel.LiveView{tunnel.LiveHealth, tunnel.LiveDiff} {
		var all []tunnel.LiveObject
		end, err := rn.Live(t.Context(), "r", view, func(o tunnel.LiveObject) error {
			all = append(all, o)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if end.Left == 0 || int(end.Objects) != len(all) || len(all)+int(end.Left) != many || end.Sequence != 7 {
			t.Errorf("%s: %d objects, %+v", view, len(all), end)
		}
		for i, one := range all[:4] {
			if bad := one.InSync == tunnel.False; bad != (i < 3) {
				t.Errorf("%s: object %d is told as %+v", view, i, one)
			}
		}
	}
}

func TestAnAnswerEndsWithWhoAskedAndIsNotMadeForThoseWhoAskForNothing(t *testing.T) {
	t.Parallel()
	rn := known(t, 5, 0)
	gone := errors.New("gone")
	calls := 0
	_, err := rn.Live(t.Context(), "r", tunnel.LiveHealth, func(tunnel.LiveObject) error {
		calls++
		return gone
	})
	if !errors.Is(err, gone) || calls != 1 {
		t.Errorf("%v after %d objects", err, calls)
	}
	never := func(tunnel.LiveObject) error { t.Error("an object was told"); return nil }
	if _, err := rn.Live(t.Context(), "other", tunnel.LiveHealth, never); !errors.Is(err, tunnel.ErrNoRelease) {
		t.Errorf("of another Release: %v", err)
	}
	if _, err := rn.Live(t.Context(), "r", "everything", never); !errors.Is(err, ErrUnknownView) {
		t.Errorf("of a view that is none: %v", err)
	}
}

func TestValuesThatWereSealedAreMaskedWhereverTheyStand(t *testing.T) {
	t.Parallel()
	masked := yamlObject(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  list: [{deep: "<sealed:abc>"}, plain]
  containers:
  - {name: c, env: [{name: TOKEN, value: "<sealed:abc>"}, {name: OPEN, value: "yes"}]}
`)
	tests := []struct {
		name string
		keys []string
		want bool
	}{
		{"a plain value", []string{"f:spec", "f:replicas"}, false},
		{"a sealed value in an item", []string{"f:spec", "f:containers", `k:{"name":"c"}`, "f:env", `k:{"name":"TOKEN"}`, "f:value"}, true},
		{"a plain value beside it", []string{"f:spec", "f:containers", `k:{"name":"c"}`, "f:env", `k:{"name":"OPEN"}`, "f:value"}, false},
		{"a value that holds one", []string{"f:spec", "f:list"}, true},
		{"below a sealed value", []string{"f:spec", "f:containers", `k:{"name":"c"}`, "f:env", `k:{"name":"TOKEN"}`, "f:value", "f:more"}, true},
		{"a value that the render has not", []string{"f:spec", "f:other"}, true},
	}
	for _, test := range tests {
		if got := sealedAt(masked, test.keys); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
	c := change{path: "data.members[hunter2]", keys: []string{"f:data", "f:members", `v:"hunter2"`}}
	if got := c.shown(map[string]any{}, map[string]any{}, true); got.Path != "data.members[***]" {
		t.Errorf("the path is %s", got.Path)
	}
}
