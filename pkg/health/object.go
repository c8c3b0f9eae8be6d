// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// object is a live object. Its fields may be of any shape: what is not of the one that is
// asked for counts as not there.
type object map[string]any

// fields gives a map inside; nil when there is none. A nil one can be asked on.
func (o object) fields(path ...string) object {
	for _, key := range path {
		inner, ok := o[key].(map[string]any)
		if !ok {
			return nil
		}
		o = inner
	}
	return o
}

func (o object) meta() object   { return o.fields("metadata") }
func (o object) spec() object   { return o.fields("spec") }
func (o object) status() object { return o.fields("status") }

func (o object) text(key string) string {
	text, ok := o[key].(string)
	if !ok {
		return ""
	}
	return text
}

// number gives a whole number; false when there is none.
func (o object) number(key string) (int64, bool) {
	switch n := o[key].(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case float64:
		if n == float64(int64(n)) {
			return int64(n), true
		}
	}
	return 0, false
}

// count gives a whole number, 0 when there is none.
func (o object) count(key string) int64 {
	n, ok := o.number(key)
	if !ok {
		return 0
	}
	return n
}

// countOr gives a whole number, or what it is by default.
func (o object) countOr(key string, missing int64) int64 {
	n, ok := o.number(key)
	if !ok {
		return missing
	}
	return n
}

func (o object) is(key string) bool { return o[key] == true }

func (o object) list(key string) []any {
	list, ok := o[key].([]any)
	if !ok {
		return nil
	}
	return list
}

// groupKind of the object.
func (o object) groupKind() (group, kind string) {
	version := o.text("apiVersion")
	if slash := strings.LastIndexByte(version, '/'); slash >= 0 {
		group = version[:slash]
	}
	return group, o.text("kind")
}

// clipped cuts the message of a verdict to what one may have.
func clipped(v Verdict) Verdict {
	v.Message = clip(v.Message, maxMessage)
	return v
}

func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= n {
		return s
	}
	const mark = "..."
	cut := n - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// named lists the first few of some names.
func named(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
