// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// inTpl is the name that the engine gives to a text that is given to tpl.
const inTpl = "gotpl"

var (
	// where is the engine's way to name a place, the innermost last.
	where = regexp.MustCompile(`template: ([^\s:]+):([0-9]+)(?::[0-9]+)?: `)
	// atPlace is how it begins what is at the outermost.
	atPlace = regexp.MustCompile(`(?s)^(parse|execution) error at \(([^\s:)]+):([0-9]+)(?::[0-9]+)?\): (.*)$`)
	// doing names the piece of a template that failed.
	doing = regexp.MustCompile(`(?s)^executing "[^"]*" at <(.*?)>: (.*)$`)
	// values that messages of functions repeat.
	quoted = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|` + "`[^`]*`")
	// harmless is what holds no value; what may hold one begins with the function.
	harmless = regexp.MustCompile(`^(?:nil pointer evaluating (?:interface \{\}|[\w.*]+)\.\w+|can't evaluate field \w+ in type (?:interface \{\}|[\w.*]+)|wrong type for value; expected [\w.*\[\]{} ]+; got [\w.*\[\]{} ]+)$`)
	began    = regexp.MustCompile(`^(?:error calling \w+: |range can't iterate over |wrong number of args for \w+: )?`)
	repeated = regexp.MustCompile(`(?s)(range can't iterate over|can't convert|improper constraint:|parsing|invalid (?:argument|value) for) .*`)
)

// withheld stands for what a template or a function says: with values out of Secrets it
// may be made of one in a form that nobody finds again.
const withheld = "its words are withheld, since values come from a Secret"

// explain says in one sentence which template failed, in which line, and why, and
// repeats no value.
func explain(c *chart.Chart, err error, secrets []string) error {
	known := map[string]bool{inTpl: true}
	for one := range charts(c) {
		for _, file := range one.Templates {
			if file != nil {
				known[path.Join(one.ChartFullPath(), file.Name)] = true
			}
		}
	}
	return &templateError{
		place: placeOf(err.Error(), known), err: fmt.Errorf("chart %s: %w: %s", c.Name(), ErrTemplate, describe(err.Error(), known, secrets)),
	}
}

// templateError is a template that failed, and where.
type templateError struct {
	place string // NAME, line N; empty where it is not known
	err   error
}

func (e *templateError) Error() string { return e.err.Error() }
func (e *templateError) Unwrap() error { return e.err }

// placeOf gives the innermost template of the chart that an error names, and the line.
func placeOf(text string, known map[string]bool) string {
	if parts := atPlace.FindStringSubmatch(text); parts != nil && known[parts[2]] && parts[2] != inTpl {
		return parts[2] + ", line " + parts[3]
	}
	place := ""
	for _, found := range where.FindAllStringSubmatch(text, -1) {
		if known[found[1]] && found[1] != inTpl {
			place = found[1] + ", line " + found[2]
		}
	}
	return place
}

func describe(text string, known map[string]bool, secrets []string) string {
	if parts := atPlace.FindStringSubmatch(text); parts != nil && known[parts[2]] {
		// What fail and required say, or the parser: both are the chart's own words.
		if len(secrets) > 0 && (parts[1] == "execution" || parts[2] == inTpl) {
			if parts[1] != "execution" {
				return fmt.Sprintf("line %s of a text given to tpl: it cannot be parsed: %s", parts[3], withheld)
			}
			return fmt.Sprintf("%s, line %s: fail or required: %s", parts[2], parts[3], withheld)
		}
		return fmt.Sprintf("%s, line %s: %s", parts[2], parts[3], cut(parts[4], secrets))
	}
	var places []string
	rest, inner := text, ""
	for _, found := range where.FindAllStringSubmatchIndex(text, -1) {
		name := text[found[2]:found[3]]
		if !known[name] {
			continue
		}
		shown := name + ", line " + text[found[4]:found[5]]
		if name == inTpl {
			shown = "line " + text[found[4]:found[5]] + " of a text given to tpl"
		}
		places, rest, inner = append(places, shown), text[found[1]:], name
	}
	if len(places) == 0 {
		if len(secrets) > 0 {
			return withheld
		}
		return mask(cut(text, secrets))
	}
	place := places[len(places)-1]
	if outer := places[0]; outer != place {
		place += " (from " + outer + ")"
	}
	reason := rest
	if parts := doing.FindStringSubmatch(rest); parts != nil {
		reason = said(parts[2], secrets)
		// The pieces of a text that came out of the values are values.
		if inner != inTpl {
			reason = "at <" + shorten(parts[1], maxExpression) + ">: " + reason
		}
	} else {
		reason = said(reason, secrets)
	}
	return place + ": " + cut(reason, secrets)
}

// said is why something failed. With values out of Secrets it is told only where the
// library's own words can hold none: names of fields in a template, and of types.
func said(reason string, secrets []string) string {
	if len(secrets) == 0 || harmless.MatchString(reason) {
		return mask(reason)
	}
	return began.FindString(reason) + withheld
}

// mask strikes out what functions repeat of their arguments.
func mask(text string) string {
	text = repeated.ReplaceAllString(text, "$1 ...")
	return quoted.ReplaceAllString(text, `"..."`)
}

// cut strikes out texts that may not be repeated, as they are and in base64, brings a
// message into one line, and shortens it.
func cut(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) < minSecret {
			continue
		}
		text = strings.ReplaceAll(text, secret, "***")
		text = strings.ReplaceAll(text, base64.StdEncoding.EncodeToString([]byte(secret)), "***")
	}
	return shorten(strings.Join(strings.Fields(text), " "), maxMessage)
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
