// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"io"
	"iter"
	"maps"
)

// Names are the identities of a render, without any content. The nil Names are those
// of no render. They are not changed once they are read.
type Names struct {
	written map[Identity]struct{} // where no namespace is written, it is empty
	bare    map[Identity]struct{} // the same, all without a namespace
}

// ReadNames reads which objects an objects layer names, to its end.
func ReadNames(objects io.Reader) (*Names, error) {
	reader, err := NewReader(objects, nil)
	if err != nil {
		return nil, err
	}
	n := &Names{written: map[Identity]struct{}{}, bare: map[Identity]struct{}{}}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return nil, err
		}
		id := entry.Identity
		n.written[id] = struct{}{}
		id.Namespace = ""
		n.bare[id] = struct{}{}
	}
}

// Has says whether an object of a target may be in the render. namespace is that of
// objects for which none is written; an object that is in no namespace may be written
// with any.
func (n *Names) Has(id Identity, namespace string) bool {
	if n == nil {
		return false
	}
	if _, ok := n.written[id]; ok {
		return true
	}
	if id.Namespace == "" {
		_, ok := n.bare[id]
		return ok
	}
	if id.Namespace != namespace {
		return false
	}
	id.Namespace = ""
	_, ok := n.written[id]
	return ok
}

// Len is how many there are.
func (n *Names) Len() int {
	if n == nil {
		return 0
	}
	return len(n.written)
}

// All gives the identities as they are written, in no order.
func (n *Names) All() iter.Seq[Identity] {
	if n == nil {
		return func(func(Identity) bool) {}
	}
	return maps.Keys(n.written)
}
