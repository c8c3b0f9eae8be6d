// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"regexp"
	"strings"
)

// separator is what Helm splits rendered text at: three dashes at the start of a
// line, whatever follows them.
var separator = regexp.MustCompile(`(?:^|\s*\n)---\s*`)

// separate brings rendered text to the form that a parser of YAML takes for the same
// documents as Helm: each begins behind a line of its own, without blanks around it,
// and ends with a newline. Documents without content, null and {} are left out; with
// none left the result is empty. Documents keep their lines where they can.
func separate(text string) []byte {
	out := make([]byte, 0, len(text)+len("---\n\n")) // enough but for many separators that share a line
	line := 1                                        // of what is written next
	emit := func(document string, at int) {
		trimmed := strings.TrimSpace(document)
		if nothing(trimmed) {
			return
		}
		at += strings.Count(document[:strings.Index(document, trimmed)], "\n")
		if line > 1 || at > 1 {
			out = append(out, "---\n"...)
			line++
		}
		for ; line < at; line++ {
			out = append(out, '\n')
		}
		out = append(out, trimmed...)
		out = append(out, '\n')
		line += strings.Count(trimmed, "\n") + 1
	}
	begin, beginLine := 0, 1
	for _, found := range separator.FindAllStringIndex(text, -1) {
		emit(text[begin:found[0]], beginLine)
		beginLine += strings.Count(text[begin:found[1]], "\n")
		begin = found[1]
	}
	emit(text[begin:], beginLine)
	return out
}

// nothing reports a document that is no object and is none to complain about either.
func nothing(document string) bool {
	if len(document) > 1<<10 && !strings.HasPrefix(document, "#") {
		return false
	}
	content := ""
	for line := range strings.Lines(document) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || line == "..." || line == "---" {
			continue
		}
		if content != "" {
			return false
		}
		content = line
	}
	switch content {
	case "", "{}", "null", "Null", "NULL", "~":
		return true
	default:
		return false
	}
}
