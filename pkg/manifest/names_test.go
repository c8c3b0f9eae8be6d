// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/manifest"
)

func namesOf(t *testing.T, documents string) *manifest.Names {
	t.Helper()
	objects, err := manifest.Parse("test.yaml", []byte(documents))
	if err != nil {
		t.Fatal(err)
	}
	var plain, sealed bytes.Buffer
	set := manifest.Set{Namespace: "shop", Objects: objects}
	if _, err := set.Write(&plain, &sealed, []byte("mac key of the test"), bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	names, err := manifest.ReadNames(&plain)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestARenderNamesAnObjectHoweverItsNamespaceIsWritten(t *testing.T) {
	names := namesOf(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: of-the-order}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: written, namespace: other}
---
apiVersion: example.test/v1
kind: Fleet
metadata: {name: cluster-scoped, namespace: odd}
`)
	for _, c := range []struct {
		name string
		id   manifest.Identity
		want bool
	}{
		{"none is written, and it is in the order's", manifest.Identity{Kind: "ConfigMap", Namespace: "shop", Name: "of-the-order"}, true},
		{"none is written, and it is in another", manifest.Identity{Kind: "ConfigMap", Namespace: "other", Name: "of-the-order"}, false},
		{"written", manifest.Identity{Kind: "ConfigMap", Namespace: "other", Name: "written"}, true},
		{"written as another", manifest.Identity{Kind: "ConfigMap", Namespace: "shop", Name: "written"}, false},
		{"written for an object of the cluster", manifest.Identity{Group: "example.test", Kind: "Fleet", Name: "cluster-scoped"}, true},
		{"of another group", manifest.Identity{Kind: "Fleet", Name: "cluster-scoped"}, false},
		{"another name", manifest.Identity{Kind: "ConfigMap", Namespace: "shop", Name: "none"}, false},
	} {
		if got := names.Has(c.id, "shop"); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	count := 0
	for id := range names.All() {
		count++
		if !names.Has(id, "") {
			t.Errorf("%s is listed, and not there", id)
		}
	}
	if count != 3 || names.Len() != 3 {
		t.Errorf("%d are listed, Len is %d, want 3", count, names.Len())
	}
}

func TestWhereThereIsNoRenderNothingIsNamed(t *testing.T) {
	var none *manifest.Names
	if none.Has(manifest.Identity{Kind: "ConfigMap", Name: "any"}, "shop") || none.Len() != 0 {
		t.Error("there is something in nothing")
	}
	for id := range none.All() {
		t.Errorf("%s is listed", id)
	}
}

func TestALayerThatIsCutOffNamesNothing(t *testing.T) {
	if _, err := manifest.ReadNames(strings.NewReader("")); err == nil {
		t.Error("an empty layer was read")
	}
	var plain, sealed bytes.Buffer
	objects, err := manifest.Parse("test.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n"))
	if err != nil {
		t.Fatal(err)
	}
	set := manifest.Set{Objects: objects}
	if _, err := set.Write(&plain, &sealed, []byte("mac key of the test"), bytes.Repeat([]byte{7}, 32)); err != nil {
		t.Fatal(err)
	}
	names, err := manifest.ReadNames(bytes.NewReader(plain.Bytes()[:plain.Len()-20]))
	if err == nil || names != nil {
		t.Errorf("of a layer that ends too early %v was read, error %v", names, err)
	}
	if errors.Is(err, manifest.ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
}
