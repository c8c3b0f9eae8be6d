// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

func newTransformer(t *testing.T) value.Transformer {
	t.Helper()
	all, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return all.TransformerForResource(schema.GroupResource{Resource: "releases"})
}

func TestWhatIsPackedIsSmallAndComesBack(t *testing.T) {
	tr := newTransformer(t)
	object := []byte(`{"spec":"` + strings.Repeat("the same again ", 200) + `"}`)
	packed, err := tr.TransformToStorage(t.Context(), object, value.DefaultContext("k"))
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > len(object)/5 {
		t.Errorf("%d bytes became %d", len(object), len(packed))
	}
	got, stale, err := tr.TransformFromStorage(t.Context(), packed, value.DefaultContext("k"))
	if err != nil {
		t.Fatal(err)
	}
	if stale || !bytes.Equal(got, object) {
		t.Errorf("stale %t, equal %t", stale, bytes.Equal(got, object))
	}
}

func TestWhatLiesThereUnpackedIsReadAndStale(t *testing.T) {
	tr := newTransformer(t)
	got, stale, err := tr.TransformFromStorage(t.Context(), []byte(`{"a":1}`), value.DefaultContext("k"))
	if err != nil {
		t.Fatal(err)
	}
	if !stale || string(got) != `{"a":1}` {
		t.Errorf("%q, stale %t", got, stale)
	}
}

func TestABrokenOrHugeValueIsAnErrorAndNoCrash(t *testing.T) {
	tr := newTransformer(t)
	huge, err := tr.TransformToStorage(t.Context(), make([]byte, maxObject+1), value.DefaultContext("k"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"torn":               huge[:len(huge)/2],
		"not what it claims": append(append([]byte{}, magic...), "nonsense"...),
		"too large unpacked": huge,
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := tr.TransformFromStorage(t.Context(), data, value.DefaultContext("k")); err == nil {
				t.Error("no error")
			}
		})
	}
}
