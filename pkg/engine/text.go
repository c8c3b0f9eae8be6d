// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
)

// clip shortens text to at most n bytes, at a rune's edge, and says so.
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

// joinFields names the first few fields and counts the rest.
func joinFields(fields []string) string {
	if len(fields) <= maxFields {
		return strings.Join(fields, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(fields[:maxFields], ", "), len(fields)-maxFields)
}

func ptrTo[T any](v T) *T { return &v }

func uidOf(s string) types.UID { return types.UID(s) }

// oneLine puts what stands in many lines into one.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}
