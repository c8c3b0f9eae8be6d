// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"regexp"
	"slices"
	"strings"
)

// What a server says of an object that it cannot even read is made for its programmers:
// names of types of theirs, dumps of values, lines in the order of a map. plainWords says
// the same as path, what is wanted and what is there, always in the same order. A dump
// is never shown, since it may be of anything. What is not known here stays as it is:
// this is for people alone, nothing is decided by it.
func plainWords(message string) string {
	text := message
	for _, wrapping := range wrappings {
		text = wrapping.ReplaceAllString(text, "")
	}
	known := text != message
	var parts []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line == "errors:" {
			continue
		}
		parts = append(parts, plainLine(line))
		known = known || parts[len(parts)-1] != line
	}
	if !known {
		return message // somebody's own words, in their order
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "; ")
}

// wrappings say what the server was about, not what is wrong.
var wrappings = []*regexp.Regexp{
	regexp.MustCompile(`failed to create typed (patch|live) object \([^)]*\): `),
	regexp.MustCompile(`failed to convert new object \([^)]*\) to proper version: `),
	regexp.MustCompile(`failed to prune fields: `),
	regexp.MustCompile(`failed (to convert|convert) (merged|pruned) object (to last applied version|at version [^:]*): `),
	regexp.MustCompile(`unable to convert unstructured object to [^:]*: `),
	regexp.MustCompile(`error decoding from json: `),
	regexp.MustCompile(`\S+ in version "[^"]*" cannot be handled as a \S+: `),
	regexp.MustCompile(`^strict decoding error: `),
	regexp.MustCompile(`^errors: ?`),
}

var (
	dumped    = regexp.MustCompile(`^\.?(.*?): expected (string|boolean|numeric \(int or float\)|list|map|scalar)[^,]*, got (.*)$`)
	nosuch    = regexp.MustCompile(`^\.?(.*): field not declared in schema$`)
	unmarshal = regexp.MustCompile(`^(?:json: )?cannot unmarshal (\w+)(?: [^ ]+)? into Go (?:struct field [^.\s]+\.(\S+)|value) of type (\S+)$`)
	unknown   = regexp.MustCompile(`(unknown|duplicate) field "([^"]*)"`)
	twice     = regexp.MustCompile(`^\.?(.*): duplicate entries for key (\[.*\])$`)
	noBase64  = regexp.MustCompile(`^illegal base64 data at input byte \d+$`)
)

func plainLine(line string) string {
	if m := dumped.FindStringSubmatch(line); m != nil {
		return m[1] + ": must be " + wantedWords[m[2]] + ", is " + gotWords(m[3])
	}
	if m := nosuch.FindStringSubmatch(line); m != nil {
		return m[1] + ": no such field in the schema"
	}
	if m := unmarshal.FindStringSubmatch(line); m != nil {
		path := m[2]
		if path == "" {
			path = "a value"
		}
		return path + ": must be " + typeWords(m[3]) + ", is " + jsonWords(m[1])
	}
	if m := twice.FindStringSubmatch(line); m != nil {
		return m[1] + ": two entries of the same key " + m[2]
	}
	if noBase64.MatchString(line) {
		return "a value that has to be base64 is not"
	}
	if found := unknown.FindAllStringSubmatch(line, -1); found != nil {
		var parts []string
		for _, m := range found {
			if m[1] == "duplicate" {
				parts = append(parts, m[2]+": stands there twice")
			} else {
				parts = append(parts, m[2]+": no such field in the schema")
			}
		}
		slices.Sort(parts)
		return strings.Join(slices.Compact(parts), "; ")
	}
	return withoutDumps(line)
}

// wantedWords are what the server wants at a path, in words.
var wantedWords = map[string]string{
	"string": "text", "boolean": "true or false", "numeric (int or float)": "a number",
	"list": "a list", "map": "a map", "scalar": "a single value",
}

// gotWords say what is there: of a dump the kind of value, never the value.
func gotWords(got string) string {
	inner, dump := strings.CutPrefix(got, "&value.valueUnstructured{Value:")
	if !dump {
		switch kind, _, _ := strings.Cut(got, " "); {
		case kind == "string":
			return "text"
		case kind == "bool":
			return "true or false"
		case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "float"):
			return "a number"
		case strings.HasPrefix(kind, "map["):
			return "a map"
		case strings.HasPrefix(kind, "[]"):
			return "a list"
		}
		return "something else"
	}
	switch {
	case strings.HasPrefix(inner, `"`), strings.HasPrefix(inner, "`"):
		return "text"
	case strings.HasPrefix(inner, "true"), strings.HasPrefix(inner, "false"):
		return "true or false: quote it where text is meant"
	case strings.HasPrefix(inner, "map["):
		return "a map"
	case strings.HasPrefix(inner, "[]"):
		return "a list"
	case strings.HasPrefix(inner, "interface {}(nil)"), strings.HasPrefix(inner, "<nil>"):
		return "empty"
	}
	return "a number: quote it where text is meant"
}

func typeWords(of string) string {
	switch {
	case of == "string":
		return "text"
	case of == "bool":
		return "true or false"
	case strings.HasPrefix(of, "int"), strings.HasPrefix(of, "uint"), strings.HasPrefix(of, "float"):
		return "a number"
	case strings.HasPrefix(of, "[]"):
		return "a list"
	}
	return "a map" // any other is a type with fields of its own
}

func jsonWords(kind string) string {
	switch kind {
	case "string":
		return "text"
	case "bool":
		return "true or false"
	case "number":
		return "a number"
	case "array":
		return "a list"
	case "object":
		return "a map"
	}
	return "something else"
}

var dump = regexp.MustCompile(`&?value\.valueUnstructured\{.*`)

// withoutDumps cuts off what a server has dumped.
func withoutDumps(line string) string { return dump.ReplaceAllString(line, "a value") }
