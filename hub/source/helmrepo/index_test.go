// SPDX-License-Identifier: Apache-2.0

package helmrepo_test

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/hub/source/fault"
	"kumodo.io/convoy/hub/source/helmrepo"
)

const (
	digestA = "1111111111111111111111111111111111111111111111111111111111111111"
	digestB = "2222222222222222222222222222222222222222222222222222222222222222"
)

// As `helm repo index` writes it: lists at the column of their key.
const index = `apiVersion: v1
entries:
  other:
  - name: other
    version: 9.0.0
    urls: [https://elsewhere.test/other-9.0.0.tgz]
  web:
  - annotations:
      text: |
        a line
        web:
        - name: not-this
    created: "2024-01-01T00:00:00Z"
    description: "A web server: fast"
    digest: ` + digestA + `
    name: web
    urls:
    - web-1.2.0.tgz
    version: 1.2.0
  - digest: sha256:` + digestB + `
    name: web
    urls:
    - https://cdn.test/web-1.10.0.tgz
    version: 1.10.0
  # a remark
  - name: web
    version: 2.0.0-rc.1
    urls: [charts/web-2.0.0-rc.1.tgz]

  - name: web
    version: 1.3
    urls: [oci://registry.test/charts/web:1.3.0]
generated: "2024-01-01T00:00:00Z"
`

// The same, as a tool writes it that indents lists.
const indented = `# comment
---
entries:
    "web":
        - name: web
          version: 1.2.0
          digest: ` + digestA + `
          urls:
            - web-1.2.0.tgz
    web-more:
        - name: web-more
          version: 7.0.0
          urls: [x.tgz]
apiVersion: v1
`

const inJSON = `{"apiVersion":"v1","entries":{"other":[{"version":"1.0.0","urls":["x"]}],
 "web":[{"name":"web","version":"1.2.0","digest":"` + digestA + `","urls":["web-1.2.0.tgz"]}]},"generated":"x"}`

// The same in flow style, as a tool writes it that knows no blocks.
const flow = `apiVersion: v1
entries: {other: [{version: 1.0.0, urls: [x]}],
  web: [{name: web, version: 1.2.0, digest: ` + digestA + `, urls: ["web-1.2.0.tgz"]}]}
generated: x
`

func find(t testing.TB, index, chart, version string) (helmrepo.Resolved, error) {
	t.Helper()
	base, err := url.Parse("https://charts.test/stable")
	if err != nil {
		t.Fatal(err)
	}
	return helmrepo.Find(strings.NewReader(index), base, chart, version)
}

func TestAVersionIsFoundInAnIndex(t *testing.T) {
	t.Parallel()
	twelve := helmrepo.Resolved{Chart: "web", Version: "1.2.0", URL: "https://charts.test/stable/web-1.2.0.tgz", Digest: "sha256:" + digestA}
	ten := helmrepo.Resolved{Chart: "web", Version: "1.10.0", URL: "https://cdn.test/web-1.10.0.tgz", Digest: "sha256:" + digestB}
	for _, c := range []struct {
		name, index, version string
		want                 helmrepo.Resolved
	}{
		{"without a version the highest that is no pre-release", index, "", ten},
		{"an exact version", index, "1.2.0", twelve},
		{"a range", index, "~1.2", twelve},
		{"a pre-release is taken when it is named", index, "2.0.0-rc.1", helmrepo.Resolved{Chart: "web", Version: "2.0.0-rc.1", URL: "https://charts.test/stable/charts/web-2.0.0-rc.1.tgz"}},
		{"a version that looks like a number stays text, and a URL may lead to a registry", index, "1.3", helmrepo.Resolved{Chart: "web", Version: "1.3", URL: "oci://registry.test/charts/web:1.3.0"}},
		{"a digest", index, "sha256:" + digestA, twelve},
		{"lists that are indented, names in quotes", indented, "", twelve},
		{"JSON", inJSON, ">=1", twelve},
		{"flow style", flow, "", twelve},
		{"flow style from the first byte", "{" + strings.ReplaceAll(strings.ReplaceAll(flow, "\nentries", ",\nentries"), "generated: x\n", "") + "}", "", twelve},
		{"a chart in flow style in block style", "entries:\n  other: []\n  web: [{version: 1.2.0, digest: " + digestA + ",\n    urls: [web-1.2.0.tgz]}]\n", "", twelve},
		{"line ends of Windows", strings.ReplaceAll(indented, "\n", "\r\n"), "", twelve},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := find(t, c.index, "web", c.version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnIndexWithoutWhatIsWantedSaysSo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, index, chart, version string
		class                       fault.Class
		says                        string
	}{
		{"no such chart", index, "nope", "", fault.ClassNotFound, "has no chart nope"},
		{"no such version", index, "web", "^5", fault.ClassNotFound, "4 versions of web, none"},
		{"no range", index, "web", "not a version", fault.ClassInvalid, "neither a version nor a range"},
		{"a page of a web server", "<html>\n<body>not found</body></html>\n", "web", "", fault.ClassInvalid, "not with an index"},
		{"an empty answer", "", "web", "", fault.ClassInvalid, "not with an index"},
		{"an index without charts", "apiVersion: v1\nentries: {}\n", "web", "", fault.ClassNotFound, "has no chart web"},
		{"JSON that is cut", inJSON[:90], "web", "", fault.ClassInvalid, "not YAML"},
		{"JSON that is cut behind a version", inJSON[:len(inJSON)-16], "web", "^5", fault.ClassInvalid, "begins as JSON"},
		{"a digest that is none", "entries:\n  web:\n  - {name: web, version: 1.0.0, digest: abc, urls: [x]}\n", "web", "", fault.ClassInvalid, "no proper digest"},
		{"a URL with another scheme", "entries:\n  web:\n  - {name: web, version: 1.0.0, urls: ['file:///etc/passwd']}\n", "web", "", fault.ClassInvalid, "no URL"},
		{"an entry that is no YAML", "entries:\n  web:\n  - name: [\n", "web", "", fault.ClassInvalid, "can be read in the index"},
		{"an entry in flow style that is no text", "entries: {web: [{version: {}}]}\n", "web", "", fault.ClassInvalid, "can be read in the index"},
		{"flow style that is cut", "entries: {web: [{version: 1.0.0}\n", "web", "", fault.ClassInvalid, "not YAML"},
		{"flow style in which a chart has no list", "entries: {web: {version: 1.0.0}}\n", "web", "", fault.ClassInvalid, "no list"},
		{"flow style beyond the limit", "entries: {web: [{version: 1.0.0, description: " + strings.Repeat("x", 3<<20) + "}]}\n", "web", "", fault.ClassTooLarge, "flow style and has more than 2 MiB"},
		{"brackets without end", "entries: " + strings.Repeat("[", 1<<20), "web", "", fault.ClassInvalid, "not YAML"},
		{"aliases that explode", "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\nentries: {web: [{version: 1.0.0, urls: *d}]}\n", "web", "", fault.ClassInvalid, "can be read in the index"},
		{"an entry beyond the limit", "entries:\n  web:\n  - version: 1.0.0\n" + strings.Repeat("    # "+strings.Repeat("x", 1000)+"\n", 1100), "web", "", fault.ClassInvalid, "more than 1024 KiB"},
		{"a piece of JSON beyond the limit", `{"entries":{"web":[{"version":"` + strings.Repeat("1", 2<<20) + `"}]}}`, "web", "", fault.ClassTooLarge, "more than 1024 KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := find(t, c.index, c.chart, c.version)
			if err == nil || fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v of class %s, want %s with %q", got, err, fault.ClassOf(err), c.class, c.says)
			}
		})
	}
}

// large makes an index of some size, line by line.
func large(size int) io.Reader {
	reader, writer := io.Pipe()
	go func() { // ends with the text, or with the reader
		var text bytes.Buffer // used again and again: the test looks at the memory
		fmt.Fprint(&text, "apiVersion: v1\nentries:\n")
		words := strings.Repeat("words ", 50)
		for chart, written := 0, 0; written < size; chart++ {
			fmt.Fprintf(&text, "  chart-%05d:\n", chart)
			for version := range 100 {
				fmt.Fprintf(&text, "  - name: chart-%05d\n    version: 1.%d.0\n    digest: %s\n    description: %s\n    urls:\n    - chart-%d.0.tgz\n", chart, version, digestA, words, version)
			}
			n, err := writer.Write(text.Bytes())
			if err != nil {
				return
			}
			written += n
			text.Reset()
		}
		writer.CloseWithError(nil)
	}()
	return reader
}

func TestAnIndexOf50MBIsReadInBoundedMemory(t *testing.T) {
	// Not in parallel: it looks at the memory of the process.
	base := &url.URL{Scheme: "https", Host: "charts.test"}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got, err := helmrepo.Find(large(50_000_000), base, "chart-01000", "")
	runtime.ReadMemStats(&after)
	if err != nil || got.Version != "1.99.0" {
		t.Fatalf("got %+v, %v", got, err)
	}
	grown := int64(after.HeapSys) - int64(before.HeapSys)
	t.Logf("heap grown by %d KiB, %d KiB allocated in all", grown>>10, (after.TotalAlloc-before.TotalAlloc)>>10)
	if grown > 16<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
}

func FuzzFind(f *testing.F) {
	for _, text := range []string{index, indented, inJSON, "entries:\n  web:\n  - *a\n", "entries:\n- web\n", flow, "{\"entries\":[[[", "entries:\n\tweb:\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := find(t, text, "web", "")
		if err == nil && (got.URL == "" || got.Chart != "web") {
			t.Errorf("got %+v", got)
		}
	})
}
