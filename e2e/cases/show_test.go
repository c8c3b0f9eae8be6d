// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"kumodo.io/convoy/e2e/harness"
)

// silent is an API server that does not answer.
type silent struct{}

func (silent) ServerVersion() (*version.Info, error) { return nil, errors.New("connection refused") }

func TestWhatCannotBeReadIsNotSaidToBeGone(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	q := &cube{plane: &harness.Plane{}, version: silent{}}
	p := &Player{opts: Options{Out: &out}}
	for _, name := range []string{"a", "b"} {
		p.seen = append(p.seen, &seen{cube: q, gvk: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespace: "team", name: name})
	}
	if err := p.showLive(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if err := p.showObject(p.seen[0], &look{err: errors.New("went away in between")}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	if strings.Contains(text, "GONE") || strings.Count(text, "connection refused") != 1 || strings.Count(text, "cannot be read") != 2 {
		t.Errorf("printed\n%s", text)
	}
}
