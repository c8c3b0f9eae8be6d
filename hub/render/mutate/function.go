// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
)

// internals are what compile puts into templates; texts cannot name them.
func (r *run) internals() template.FuncMap {
	return template.FuncMap{"get": r.get, "text": text, "keep": r.keep, "step": r.step}
}

// functions of templates. All are pure; none knows the time, chance, the environment
// or a file. docs/spec/content.md lists them. Errors repeat no value.
func (r *run) functions() template.FuncMap {
	return template.FuncMap{
		"lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace,
		"trimPrefix": func(prefix, s string) string { return strings.TrimPrefix(s, prefix) },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"trimAll":    func(cut, s string) string { return strings.Trim(s, cut) },
		"hasPrefix":  func(prefix, s string) bool { return strings.HasPrefix(s, prefix) },
		"hasSuffix":  func(suffix, s string) bool { return strings.HasSuffix(s, suffix) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"replace":    replace, "repeat": repeat, "trunc": trunc, "split": split, "join": join,
		"quote": quote, "squote": squote, "indent": indent, "nindent": nindent,
		"regexMatch": regexMatch, "regexReplaceAll": regexReplaceAll,
		"b64enc": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }, "b64dec": b64dec,
		"print": sprint, "printf": sprintf,

		"int": toInt, "float64": toFloat, "toString": text, "toBool": toBool,
		"add": arithmetic(func(a, b int64) int64 { return a + b }), "sub": arithmetic(func(a, b int64) int64 { return a - b }),
		"mul": arithmetic(func(a, b int64) int64 { return a * b }), "div": divide, "mod": modulo,
		"max": arithmetic(func(a, b int64) int64 { return max(a, b) }), "min": arithmetic(func(a, b int64) int64 { return min(a, b) }),

		"default": func(fallback, v any) any { return ternary(fallback, v, empty(v)) }, "empty": empty, "coalesce": coalesce,
		"ternary": ternary, "required": required, "fail": func(message string) (string, error) { return "", because("%s", shown(message)) },

		"hasKey": hasKey, "getOr": getOr, "index": r.index, "keys": keys, "all": all, "dict": dict, "list": list,
		"first": first, "last": last, "has": has,
		"toJson": toJSON, "toYaml": toYAML, "fromJson": fromYAML, "fromYaml": fromYAML,
	}
}

// get follows keys, as in .cluster.region.
func (r *run) get(base any, path ...string) (any, error) {
	at := ""
	if l, ok := base.(lookup); ok {
		at = l.called()
	}
	for _, key := range path {
		var ok bool
		switch v := base.(type) {
		case lookup:
			base, ok = v.find(key)
		case map[string]any:
			base, ok = v[key]
		default:
			return nil, because("%s is %s and has no field %s", shown(at), kindOf(base), shown(key))
		}
		at = strings.TrimPrefix(at+"."+key, ".")
		if !ok {
			return nil, &reason{r.world.missing(at)}
		}
	}
	return base, nil
}

// keep takes the value of a text that is one action.
func (r *run) keep(value any) string {
	r.kept, r.keeps = value, true
	return ""
}

func (r *run) step() (string, error) {
	if r.steps++; r.steps > maxSteps {
		return "", &reason{fmt.Errorf("%w: the loops of a template may have %d turns", ErrTooLarge, maxSteps)}
	}
	return "", nil
}

// text writes a value into a text.
func text(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int, int64, uint64, float64:
		kept, err := stored(v)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(kept), nil
	default:
		return "", because("%s cannot be written into a text: use toYaml or toJson", kindOf(value))
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "true or false"
	case []any, []string:
		return "a list"
	case map[string]any, lookup:
		return "a map"
	default:
		return "a number"
	}
}

// fits refuses a text that would be too long.
func fits(length int) error {
	if length < 0 || length > maxTextBytes {
		return &reason{errText}
	}
	return nil
}

func replace(from, to, s string) (string, error) {
	if err := fits(len(s) + strings.Count(s, from)*len(to)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(s, from, to), nil
}

func repeat(count any, s string) (string, error) {
	n, err := small(count)
	if err != nil || n < 0 {
		return "", &reason{errText}
	}
	if err := fits(n * len(s)); err != nil {
		return "", err
	}
	return strings.Repeat(s, n), nil
}

// small is a number that counts characters; a negative one is given back as it is.
func small(value any) (int, error) {
	n, err := toInt(value)
	if err != nil {
		return 0, err
	}
	if n > maxTextBytes || n < -maxTextBytes {
		return 0, &reason{errText}
	}
	return int(n), nil
}

// trunc keeps the first characters, or the last of them if the number is negative.
func trunc(count any, s string) (string, error) {
	n, err := small(count)
	if err != nil {
		return "", err
	}
	runes := []rune(s)
	switch {
	case n >= 0 && len(runes) > n:
		return string(runes[:n]), nil
	case n < 0 && len(runes) > -n:
		return string(runes[len(runes)+n:]), nil
	}
	return s, nil
}

func split(separator, s string) ([]any, error) {
	parts := strings.SplitN(s, separator, maxList+1)
	if len(parts) > maxList {
		return nil, errList
	}
	made := make([]any, len(parts))
	for i, part := range parts {
		made[i] = part
	}
	return made, nil
}

var errList = &reason{fmt.Errorf("%w: a list may have %d items", ErrTooLarge, maxList)}

func join(separator string, items []any) (string, error) {
	texts := make([]string, len(items))
	total := 0
	for i, item := range items {
		t, err := text(item)
		if err != nil {
			return "", err
		}
		texts[i] = t
		total += len(t) + len(separator)
	}
	if err := fits(total); err != nil {
		return "", err
	}
	return strings.Join(texts, separator), nil
}

func quote(value any) (string, error) {
	t, err := text(value)
	if err != nil {
		return "", err
	}
	return strconv.Quote(t), fits(4 * len(t))
}

func squote(value any) (string, error) {
	t, err := text(value)
	if err != nil {
		return "", err
	}
	return "'" + strings.ReplaceAll(t, "'", "''") + "'", fits(2 * len(t))
}

func indent(count any, s string) (string, error) {
	n, err := small(count)
	if err != nil || n < 0 {
		return "", &reason{errText}
	}
	if err := fits(len(s) + (strings.Count(s, "\n")+1)*n); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
}

func nindent(count any, s string) (string, error) {
	made, err := indent(count, s)
	return "\n" + made, err
}

func regexOf(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > maxExpression {
		return nil, because("a regular expression may have %d bytes", maxExpression)
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, because("a regular expression that cannot be read")
	}
	return compiled, nil
}

func regexMatch(pattern, s string) (bool, error) {
	compiled, err := regexOf(pattern)
	if err != nil {
		return false, err
	}
	return compiled.MatchString(s), nil
}

// regexReplaceAll takes pattern, text and replacement in that order, as in Helm.
func regexReplaceAll(pattern, s, to string) (string, error) {
	compiled, err := regexOf(pattern)
	if err != nil {
		return "", err
	}
	if err := fits((len(s) + 1) * (len(to) + 1)); err != nil && strings.Contains(to, "$") {
		return "", err
	}
	if err := fits(len(s) + (len(s)+1)*len(to)); err != nil {
		return "", err
	}
	return compiled.ReplaceAllString(s, to), nil
}

func b64dec(s string) (string, error) {
	plain, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", because("b64dec: the text is not base64")
	}
	return string(plain), nil
}

// wide finds verbs of printf that make more than what they are given.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*(\*|\d{` + strconv.Itoa(maxWidthDigits+1) + `})`)

func sprintf(format string, values ...any) (string, error) {
	if wide.MatchString(format) || len(format) > maxExpression {
		return "", because("printf: a width of more than %d digits, or taken from a value, or a format of more than %d bytes", maxWidthDigits, maxExpression)
	}
	if err := written(values); err != nil {
		return "", err
	}
	made := fmt.Sprintf(format, values...)
	return made, fits(len(made))
}

func sprint(values ...any) (string, error) {
	if err := written(values); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, value := range values {
		t, err := text(value)
		if err != nil {
			return "", err
		}
		b.WriteString(t)
	}
	return b.String(), fits(b.Len())
}

// written refuses values whose text would be too long, or that are no texts.
func written(values []any) error {
	total := 0
	for _, value := range values {
		t, err := text(value)
		if err != nil {
			return err
		}
		total += len(t)
	}
	return fits(total)
}
