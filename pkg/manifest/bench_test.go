// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/manifest"
)

// benchFile is a ConfigMap of about 1 KiB.
func benchFile(i int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cm-%04d\n  namespace: bench\n  labels:\n    app: bench\ndata:\n", i)
	for k := range 16 {
		fmt.Fprintf(&b, "  key-%02d: \"%s\"\n", k, strings.Repeat("v", 44))
	}
	return []byte(b.String())
}

func benchSet(b *testing.B, n int) *manifest.Set {
	b.Helper()
	set := &manifest.Set{Namespace: "bench"}
	for i := range n {
		objects, err := manifest.Parse("cm.yaml", benchFile(i))
		if err != nil {
			b.Fatal(err)
		}
		set.Objects = append(set.Objects, objects...)
	}
	return set
}

func BenchmarkParse(b *testing.B) {
	file := benchFile(1)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := manifest.Parse("cm.yaml", file); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite1000(b *testing.B) {
	set := benchSet(b, 1000)
	salt := make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := set.Write(io.Discard, io.Discard, []byte("key"), salt); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead1000(b *testing.B) {
	var objects bytes.Buffer
	if _, err := benchSet(b, 1000).Write(&objects, io.Discard, []byte("key"), make([]byte, 32)); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(objects.Len()))
	b.ReportAllocs()
	for b.Loop() {
		reader, err := manifest.NewReader(bytes.NewReader(objects.Bytes()), nil)
		if err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := reader.Next(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkRender1000 is a whole render: 1,000 manifests of 1 KiB parsed, arranged and
// written. The budget is 100 ms.
func BenchmarkRender1000(b *testing.B) {
	var source [][]byte
	for i := range 1000 {
		source = append(source, benchFile(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		set := &manifest.Set{Namespace: "bench"}
		for _, file := range source {
			objects, err := manifest.Parse("cm.yaml", file)
			if err != nil {
				b.Fatal(err)
			}
			set.Objects = append(set.Objects, objects...)
		}
		if _, err := set.WritePlain(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
