// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/tunnel"
)

// detail asks for live detail as the hub does in this mode.
func (b *bench) detail(uid string, view tunnel.LiveView) ([]tunnel.LiveObject, tunnel.LiveEnd, error) {
	b.t.Helper()
	var all []tunnel.LiveObject
	take := func(o tunnel.LiveObject) error {
		all = append(all, o)
		return nil
	}
	if b.room != nil {
		end, err := b.room.manager.Live(b.ctx, clusterUID, uid, view, take)
		return all, end, err
	}
	end, err := b.runner.Live(b.ctx, uid, view, take)
	return all, end, err
}

func TestEachObjectIsToldAsItIsNowAndSecretsStayMasked(t *testing.T) {
	inModes(t, testEachObjectIsToldAsItIsNowAndSecretsStayMasked)
}

func testEachObjectIsToldAsItIsNowAndSecretsStayMasked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("detail")
	o, _ := b.apply("detail", ns, configMap(ns, "calm", "k", "v")+configMap(ns, "edited", "k", "v", "l", "w")+`
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: swordfish}
---
`+web("replicas: 1", "example/app:1"), func(o *tunnel.Order) { o.Policy.Automatic = false })
	from := b.calls.n.Load()
	all, end, err := b.detail(o.Release.UID, tunnel.LiveHealth)
	if err != nil || len(all) != 4 || end.Objects != 4 || end.Sequence != o.Sequence || end.At.IsZero() {
		t.Fatalf("%d objects, %+v, %v", len(all), end, err)
	}
	for _, one := range all {
		if one.State != "Healthy" || one.InSync != tunnel.True || one.Reason != "" || one.Since.IsZero() {
			t.Errorf("%s is told as %+v", one.Name, one)
		}
	}
	if made := b.calls.since(from); len(made) > 0 {
		t.Errorf("the health of objects cost calls: %v", made)
	}
	b.edit(configmaps, ns, "edited", "somebody", `{"data":{"k":"other","l":null,"mine":"x"}}`)
	b.edit(secrets, ns, "login", "thief", `{"data":{"password":"aHVudGVyMg=="}}`)
	b.report(o.Release.UID, "two that differ", func(r tunnel.Report) bool { return r.Settled && r.Counts.Drifted == 2 })
	from = b.calls.n.Load()
	all, _, err = b.detail(o.Release.UID, tunnel.LiveDiff)
	if err != nil {
		t.Fatal(err)
	}
	if made := b.changing(from); len(made) > 0 {
		t.Errorf("to look at objects changed something: %v", made)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"swordfish", "c3dvcmRmaXNo", "hunter2", "aHVudGVyMg"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("the answer holds a value of a Secret: %s", raw)
		}
	}
	got := map[string]any{}
	for _, one := range all[:2] {
		if one.InSync != tunnel.False || one.Reason != "Drifted" {
			t.Errorf("%s is told as %+v", one.Name, one)
		}
		got[one.Name] = one.Drift
	}
	want := map[string]any{
		"edited": []tunnel.Difference{
			{Path: "data.k", Wanted: `"v"`, Live: `"other"`, Manager: "somebody"},
			{Path: "data.l", Wanted: `"w"`},
		},
		"login": []tunnel.Difference{{Path: "data.password", Wanted: "***", Live: "***", Manager: "thief"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, one := range all[2:] {
		if one.InSync != tunnel.True || len(one.Drift) > 0 {
			t.Errorf("%s is told as %+v", one.Name, one)
		}
	}
	if _, _, err := b.detail("uid-none", tunnel.LiveHealth); !errors.Is(err, tunnel.ErrNoRelease) {
		t.Errorf("of a Release that is not there: %v", err)
	}
	if _, _, err := b.detail(o.Release.UID, "all"); err == nil {
		t.Error("a view that does not exist was answered")
	}
}
