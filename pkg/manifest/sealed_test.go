// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

const withToken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, namespace: team}\ndata: {a/b~c: hunter2, open: yes-it-is}\nlist: [x, {deep: hunter2}]\n" +
	"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: hunter2}\n"

// sealedSet is withToken with pointers on its ConfigMap.
func sealedSet(t *testing.T, pointers ...string) *manifest.Set {
	t.Helper()
	found, err := manifest.Parse("a.yaml", []byte(withToken))
	if err != nil {
		t.Fatal(err)
	}
	found[0].Sealed = pointers
	return &manifest.Set{Namespace: "team", Objects: found}
}

func TestValuesThatAnObjectPointsAtAreSealedLikeThoseOfASecret(t *testing.T) {
	pointers := []string{"/list/1/deep", "/data/a~1b~0c", "/list/1/deep"}
	var objects, sealed bytes.Buffer
	summary, err := sealedSet(t, pointers...).Write(&objects, &sealed, []byte("key"), salt)
	if err != nil || summary.SealedLines != 2 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if text := objects.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "yes-it-is") {
		t.Errorf("objects layer: %s", text)
	}
	var plain, objects2, sealed2 bytes.Buffer
	if summary, err := sealedSet(t, pointers...).WritePlain(&plain); err != nil || summary.SealedLines != 2 {
		t.Fatalf("%+v, %v", summary, err)
	}
	if _, err := manifest.Seal(&plain, &objects2, &sealed2, []byte("key"), salt); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(objects.String(), objects2.String()); diff != "" {
		t.Errorf("the two ways differ in objects (-write +seal):\n%s", diff)
	}
	if diff := cmp.Diff(sealed.String(), sealed2.String()); diff != "" {
		t.Errorf("the two ways differ in sealed (-write +seal):\n%s", diff)
	}
	back, err := readAll(&objects, &sealed)
	if err != nil {
		t.Fatal(err)
	}
	if got := at(t, back[1], "list", 1, "deep"); got != "hunter2" {
		t.Errorf("read back %v", got)
	}
}

func TestAValueThatCannotBeSealedIsNeverWrittenInClear(t *testing.T) {
	tests := []struct {
		name, pointer string
		want          error
	}{
		{"a pointer to nothing", "/data/none", manifest.ErrFormat},
		{"a pointer to a map", "/data", manifest.ErrFormat},
		{"the object's name", "/metadata/name", manifest.ErrSealed},
		{"the object's namespace", "/metadata/namespace", manifest.ErrSealed},
		{"the kind", "/kind", manifest.ErrSealed},
		{"the wave", "/metadata/annotations/convoy.kumodo.io~1sync-wave", manifest.ErrSealed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var objects, sealed bytes.Buffer
			_, err := sealedSet(t, test.pointer).Write(&objects, &sealed, []byte("key"), salt)
			if !errors.Is(err, test.want) {
				t.Errorf("Write: %v", err)
			}
			wantError(t, err, "a.yaml, document 1, line 1: ConfigMap team/cm: ")
			_, err = sealedSet(t, test.pointer).WritePlain(&objects)
			if !errors.Is(err, test.want) {
				t.Errorf("WritePlain: %v", err)
			}
		})
	}
}
