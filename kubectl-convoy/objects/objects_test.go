// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/manifest"
)

func set(t *testing.T, text string) *manifest.Set {
	t.Helper()
	list, err := manifest.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &manifest.Set{Namespace: "shop", Objects: list}
}

const app = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 2, weight: 1.50}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: correct-horse}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
`

func masked(t *testing.T, m *Masker, text string) []Object {
	t.Helper()
	list, err := m.Mask(set(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestObjectsAreShownInApplyOrderWithoutSecrets(t *testing.T) {
	t.Parallel()
	list := Blank(masked(t, NewMasker(), app))
	tests := map[string]string{
		Names: "secret/login\nconfigmap/settings\ndeployment.apps/web -n shop\n",
		YAML: `---
apiVersion: v1
data:
  password: <sealed>
kind: Secret
metadata:
  name: login
---
apiVersion: v1
data:
  color: red
kind: ConfigMap
metadata:
  name: settings
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 2
  weight: 1.5
`,
	}
	for format, want := range tests {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := Print(&out, format, list); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var out bytes.Buffer
	if err := Print(&out, JSON, list); err != nil || !strings.Contains(out.String(), `"kind": "List"`) || !strings.Contains(out.String(), "1.50") || strings.Contains(out.String(), "correct") {
		t.Errorf("%v: %s", err, out.String())
	}
	if err := Print(&out, "wide", list); !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want ErrFormat", err)
	}
}

func TestDifferencesAreToldObjectByObject(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ before, after, want string }{
		"nothing, in another order and form": {before: strings.ReplaceAll(app, "stringData: {password: correct-horse}", "data: {password: Y29ycmVjdC1ob3JzZQ==}"), after: app},
		"a namespace that is said and one that is not": {before: strings.Replace(app, "{name: settings}", "{name: settings, namespace: shop}", 1), after: app, want: `--- configmap/settings
+++ configmap/settings
@@ -4,4 +4,3 @@
 kind: ConfigMap
 metadata:
   name: settings
-  namespace: shop
`},
		"a field": {before: strings.Replace(app, "replicas: 2", "replicas: 3", 1), after: app, want: `--- deployment.apps/web -n shop
+++ deployment.apps/web -n shop
@@ -4,5 +4,5 @@
   name: web
   namespace: shop
 spec:
-  replicas: 3
+  replicas: 2
   weight: 1.5
`},
		"a Secret's value, which is not told": {before: strings.Replace(app, "correct", "wrong", 1), after: app, want: `--- secret/login
+++ secret/login
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  password: <sealed:1>
+  password: <sealed:2>
 kind: Secret
 metadata:
   name: login
`},
		"an object that is new, and one that is gone": {before: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", after: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n", want: `--- /dev/null
+++ configmap/b
@@ -0,0 +1,4 @@
+apiVersion: v1
+kind: ConfigMap
+metadata:
+  name: b
--- configmap/a
+++ /dev/null
@@ -1,4 +0,0 @@
-apiVersion: v1
-kind: ConfigMap
-metadata:
-  name: a
`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMasker()
			var out bytes.Buffer
			found, err := m.Diff(&out, "shop", masked(t, m, test.before), masked(t, m, test.after))
			if err != nil || found != (test.want != "") {
				t.Errorf("different: %v, %v", found, err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was printed before can be compared with: its masked values are unknown, and all
// else counts.
func TestWhatWasPrintedCanBeComparedWith(t *testing.T) {
	t.Parallel()
	m := NewMasker()
	printed := map[string][]Object{"by render": Blank(masked(t, m, app)), "by preview, with the marks of a hub": masked(t, NewMasker(), app)}
	for name, list := range printed {
		for _, format := range []string{YAML, JSON} {
			t.Run(name+" as "+format, func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "saved."+format)
				var text bytes.Buffer
				if err := Print(&text, format, list); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				saved, err := Load(file, "shop")
				if err != nil {
					t.Fatal(err)
				}
				before, err := m.Mask(saved)
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				if found, err := m.Diff(&out, "shop", before, masked(t, m, app)); err != nil || found {
					t.Errorf("%v: %s", err, out.String())
				}
				if found, err := m.Diff(&out, "shop", before, masked(t, m, strings.Replace(app, "red", "blue", 1))); err != nil || !found || !strings.Contains(out.String(), "+  color: blue") {
					t.Errorf("%v: %s", err, out.String())
				}
			})
		}
	}
}

func TestAFolderIsReadWholeAndFaultsNameTheirPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": app, "sub/b.yml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n", "README.md": "no manifest", ".git/c.yaml": "x: [",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Load(dir, "shop")
	if err != nil || len(all.Objects) != 4 {
		t.Fatalf("%d objects, %v", len(all.Objects), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sub", "b.yml"), []byte("a: 1\n---\nb: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "shop"); err == nil || !strings.Contains(err.Error(), "b.yml, document 2, line 3") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none"), "shop"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Whatever changed, the edits turn the one into the other, and hunks count right.
func TestEditsLeadFromBeforeToAfter(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := func() []string {
		lines := make([]string, random.IntN(30))
		for i := range lines {
			lines[i] = fmt.Sprint(random.IntN(4))
		}
		return lines
	}
	for range 3000 {
		before, after := some(), some()
		var left, right []string
		for _, e := range edits(before, after) {
			if e.kind != '+' {
				left = append(left, e.line)
			}
			if e.kind != '-' {
				right = append(right, e.line)
			}
		}
		if !slices.Equal(left, before) || !slices.Equal(right, after) {
			t.Fatalf("before %v after %v: %v", before, after, edits(before, after))
		}
		if hunks := unified(before, after); (hunks == "") != slices.Equal(before, after) {
			t.Fatalf("before %v after %v: %q", before, after, hunks)
		}
	}
	long, other := make([]string, 5000), make([]string, 5000)
	for i := range long {
		long[i], other[i] = fmt.Sprint("a", i), fmt.Sprint("b", i)
	}
	if n := len(edits(long, other)); n != 10_000 {
		t.Errorf("%d edits of two texts that have nothing in common", n)
	}
}
