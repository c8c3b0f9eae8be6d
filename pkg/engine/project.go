// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// projection is the hash of an object's live values at exactly the paths that we
// applied, and of those paths. The paths are those of our entry in managedFields:
// they follow the server's own idea of the object's structure, list keys included.
//
// Two projections are compared only with each other, the one taken from the answer
// to our last apply with the one seen now. So whatever the server did to what we
// sent (defaults, quantities, order) is on both sides.
type projection [16]byte

func (p projection) String() string { return base64.RawStdEncoding.EncodeToString(p[:]) }

func parseProjection(s string) (projection, bool) {
	var p projection
	raw, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || len(raw) != len(p) {
		return p, false
	}
	copy(p[:], raw)
	return p, true
}

// project computes the projection of a live object, without what is left to others. It
// is false when our entry is gone from managedFields.
func project(live map[string]any, t spared) (projection, bool) {
	var p projection
	entry := ownEntry(live)
	if entry == nil {
		return p, false
	}
	h := sha256.New()
	t.mark(h)
	ours, _ := t.split(entry, live)
	walk(h, ours, t.stripped(live), true)
	copy(p[:], h.Sum(nil))
	return p, true
}

// ownEntry returns the paths that we own by apply.
func ownEntry(live map[string]any) map[string]any {
	for _, e := range managers(live) {
		if e.manager == v1alpha1.FieldManager && e.applied && e.subresource == "" {
			return e.fields
		}
	}
	return nil
}

// managerEntry is one entry of managedFields.
type managerEntry struct {
	manager     string
	applied     bool
	subresource string
	fields      map[string]any
}

func managers(live map[string]any) []managerEntry {
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	list, ok := metadata["managedFields"].([]any)
	if !ok {
		return nil
	}
	entries := make([]managerEntry, 0, len(list))
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		fields, ok := m["fieldsV1"].(map[string]any)
		if !ok {
			continue
		}
		operation, subresource := text(m["operation"]), text(m["subresource"])
		entries = append(entries, managerEntry{
			manager: text(m["manager"]), applied: operation == "Apply", subresource: subresource, fields: fields,
		})
	}
	return entries
}

func text(v any) string {
	s, ok := v.(string)
	if !ok {
		return ""
	}
	return s
}

// Markers of the hash, so that no two structures give the same bytes.
const (
	markMissing byte = iota
	markNull
	markFalse
	markTrue
	markString
	markNumber
	markList
	markMap
	markPath
	markPresent
	markUp
)

// walk feeds paths and the values at them to the hash.
func walk(h hash.Hash, fields map[string]any, live any, present bool) {
	if len(fields) == 0 {
		if !present {
			writeMark(h, markMissing)
			return
		}
		writeValue(h, live)
		return
	}
	for _, key := range sortedKeys(fields) {
		writeMark(h, markPath)
		writeText(h, key)
		if key == "." {
			if present {
				writeMark(h, markPresent)
			} else {
				writeMark(h, markMissing)
			}
			continue
		}
		child, found := any(nil), false
		if present {
			child, found = step(live, key)
		}
		sub, ok := fields[key].(map[string]any)
		if !ok {
			sub = nil
		}
		walk(h, sub, child, found)
	}
	writeMark(h, markUp)
}

// step follows one path element of managedFields: f:name, k:{keys}, v:value, i:index.
func step(live any, key string) (any, bool) {
	kind, rest, ok := strings.Cut(key, ":")
	if !ok {
		return nil, false
	}
	switch kind {
	case "f":
		m, ok := live.(map[string]any)
		if !ok {
			return nil, false
		}
		v, ok := m[rest]
		return v, ok
	case "k":
		var keys map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(rest), &keys); err != nil {
			return nil, false
		}
		list, ok := live.([]any)
		if !ok {
			return nil, false
		}
		for _, item := range list {
			if m, ok := item.(map[string]any); ok && hasKeys(m, keys) {
				return m, true
			}
		}
		return nil, false
	case "v":
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(rest), &value); err != nil {
			return nil, false
		}
		list, ok := live.([]any)
		if !ok {
			return nil, false
		}
		for _, item := range list {
			if same(item, value) {
				return item, true
			}
		}
		return nil, false
	case "i":
		index, err := strconv.Atoi(rest)
		list, ok := live.([]any)
		if err != nil || !ok || index < 0 || index >= len(list) {
			return nil, false
		}
		return list[index], true
	}
	return nil, false
}

// hasKeys says whether a list item has these values. A key that the item lacks may
// have been left at its default by the server, as a port's protocol is; then only
// the keys that it has decide.
func hasKeys(item, keys map[string]any) bool {
	matched := false
	for k, want := range keys {
		have, ok := item[k]
		if !ok {
			continue
		}
		if !same(have, want) {
			return false
		}
		matched = true
	}
	return matched
}

// same compares two decoded JSON values.
func same(a, b any) bool {
	x, y := sha256.New(), sha256.New()
	switch av := a.(type) {
	case string:
		bv, ok := b.(string)
		return ok && av == bv
	case bool:
		bv, ok := b.(bool)
		return ok && av == bv
	case int64:
		if bv, ok := b.(int64); ok {
			return av == bv
		}
	}
	writeValue(x, a)
	writeValue(y, b)
	return bytes.Equal(x.Sum(nil), y.Sum(nil))
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// A hash.Hash never returns an error from Write; that is its contract.

func writeMark(h hash.Hash, mark byte) { h.Write([]byte{mark}) }

func writeText(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

func writeNumber(h hash.Hash, f float64) {
	var n [9]byte
	n[0] = markNumber
	binary.BigEndian.PutUint64(n[1:], math.Float64bits(f))
	h.Write(n[:])
}

func writeValue(h hash.Hash, v any) {
	switch v := v.(type) {
	case nil:
		writeMark(h, markNull)
	case bool:
		if v {
			writeMark(h, markTrue)
		} else {
			writeMark(h, markFalse)
		}
	case string:
		writeMark(h, markString)
		writeText(h, v)
	case int64:
		if f := float64(v); int64(f) == v {
			writeNumber(h, f) // 1 and 1.0 are the same number
			return
		}
		writeMark(h, markString)
		writeText(h, strconv.FormatInt(v, 10))
	case float64:
		writeNumber(h, v)
	case []any:
		writeMark(h, markList)
		for _, item := range v {
			writeValue(h, item)
		}
		writeMark(h, markUp)
	case map[string]any:
		writeMark(h, markMap)
		for _, k := range sortedKeys(v) {
			writeText(h, k)
			writeValue(h, v[k])
		}
		writeMark(h, markUp)
	}
}

// change is one path at which two objects differ.
type change struct {
	path    string
	keys    []string // path elements as in managedFields
	managed string   // who manages it in the live object, if known
	own     bool     // nobody but our own name does
}

// changes compares a live object with what it would be after our apply, at the
// paths that this apply owns, without what is left to others. Amounts that are spelt
// differently are the same.
func changes(live, want map[string]any, t spared) []change {
	entry := ownEntry(want)
	if entry == nil {
		return nil
	}
	entry, _ = t.split(entry, live)
	var found []change
	compare(entry, live, true, want, true, nil, &found)
	others := managers(live)
	for i := range found {
		found[i].path = displayPath(found[i].keys)
		found[i].managed = managerOf(others, found[i].keys)
		found[i].own = found[i].managed == "" && owns(ownEntry(live), found[i].keys)
	}
	return found
}

func compare(fields map[string]any, live any, liveThere bool, want any, wantThere bool, keys []string, found *[]change) {
	if len(fields) == 0 || liveThere != wantThere {
		if liveThere != wantThere || (liveThere && !equivalent(live, want)) {
			*found = append(*found, change{keys: slices.Clone(keys)})
		}
		return
	}
	for _, key := range sortedKeys(fields) {
		if key == "." {
			continue
		}
		lv, lok := step(live, key)
		wv, wok := step(want, key)
		sub, ok := fields[key].(map[string]any)
		if !ok {
			sub = nil
		}
		compare(sub, lv, lok, wv, wok, append(keys, key), found)
	}
}

// equivalent is same, and true of two spellings of one amount.
func equivalent(a, b any) bool {
	if same(a, b) {
		return true
	}
	x, xok := amount(a)
	y, yok := amount(b)
	return xok && yok && x.Cmp(y) == 0
}

func amount(v any) (quantity.Quantity, bool) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case int64:
		s = strconv.FormatInt(v, 10)
	default:
		return quantity.Quantity{}, false
	}
	q, err := quantity.ParseQuantity(s)
	return q, err == nil
}

// displayPath writes path elements for people. Values of sets and keys of lists can
// be part of it, field values never.
func displayPath(keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		kind, rest, _ := strings.Cut(key, ":")
		if kind == "f" {
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(rest)
			continue
		}
		b.WriteByte('[')
		b.WriteString(clip(rest, 60))
		b.WriteByte(']')
	}
	return b.String()
}

// managerOf names who manages a path, other than ourselves by apply.
func managerOf(entries []managerEntry, keys []string) string {
	for _, e := range entries {
		if e.manager == v1alpha1.FieldManager && e.applied {
			continue
		}
		if owns(e.fields, keys) {
			return e.manager
		}
	}
	return ""
}

func owns(fields map[string]any, keys []string) bool {
	for _, key := range keys {
		sub, ok := fields[key].(map[string]any)
		if !ok {
			return false
		}
		fields = sub
	}
	return true
}
