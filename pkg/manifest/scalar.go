// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// words are the plain words that are no strings. The list is that of YAML 1.1,
// since that is what kubectl reads files by: yes, on and y are booleans.
var words = map[string]any{
	"": nil, "~": nil, "null": nil, "Null": nil, "NULL": nil,
	"true": true, "True": true, "TRUE": true,
	"false": false, "False": false, "FALSE": false,
	"y": true, "Y": true, "yes": true, "Yes": true, "YES": true,
	"on": true, "On": true, "ON": true,
	"n": false, "N": false, "no": false, "No": false, "NO": false,
	"off": false, "Off": false, "OFF": false,
}

// notNumbers are float words that JSON cannot carry.
var notNumbers = map[string]bool{
	".nan": true, ".NaN": true, ".NAN": true,
	".inf": true, ".Inf": true, ".INF": true,
	"+.inf": true, "+.Inf": true, "+.INF": true,
	"-.inf": true, "-.Inf": true, "-.INF": true,
}

var (
	errNotFinite = errors.New("is not a finite number; quote it if it is text")

	yamlFloat  = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

	timestampFormats = []string{
		"2006-1-2T15:4:5.999999999Z07:00",
		"2006-1-2t15:4:5.999999999Z07:00",
		"2006-1-2 15:4:5.999999999",
		"2006-1-2",
	}
)

// maxExactFloat is the range in which every whole float64 is exact.
const maxExactFloat = 1 << 53

// plainScalar gives the value of an unquoted, untagged scalar: nil, bool,
// json.Number or string.
func plainScalar(text string) (any, error) {
	if value, ok := words[text]; ok {
		return value, nil
	}
	if notNumbers[text] {
		return nil, errNotFinite
	}
	switch c := text[0]; {
	case c == '.':
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			return floatNumber(text, number)
		}
		return text, nil
	case c == '+' || c == '-' || c >= '0' && c <= '9':
	default:
		return text, nil
	}
	if isTimestamp(text) {
		return text, nil
	}
	plain := strings.ReplaceAll(text, "_", "")
	if number, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return json.Number(strconv.FormatInt(number, 10)), nil
	}
	if number, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return json.Number(strconv.FormatUint(number, 10)), nil
	}
	if yamlFloat.MatchString(plain) {
		if number, err := strconv.ParseFloat(plain, 64); err == nil {
			return floatNumber(plain, number)
		}
	}
	return text, nil
}

// floatNumber keeps the text of a number where JSON knows it, see the package comment.
func floatNumber(text string, number float64) (any, error) {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, errNotFinite
	}
	if number == math.Trunc(number) && math.Abs(number) < maxExactFloat {
		return json.Number(strconv.FormatInt(int64(number), 10)), nil
	}
	if jsonNumber.MatchString(text) {
		return json.Number(text), nil
	}
	return json.Number(strconv.FormatFloat(number, 'g', -1, 64)), nil
}

// writtenNumber is floatNumber for a number of a JSON document.
func writtenNumber(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			return json.Number("0"), nil
		}
		return json.Number(text), nil
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errNotFinite
	}
	return floatNumber(text, number)
}

// isTimestamp reports a date: kubectl sends it as the text that was written.
func isTimestamp(text string) bool {
	if len(text) < len("2006-1-2") || text[4] != '-' {
		return false
	}
	for _, c := range text[:4] {
		if c < '0' || c > '9' {
			return false
		}
	}
	for _, format := range timestampFormats {
		if _, err := time.Parse(format, text); err == nil {
			return true
		}
	}
	return false
}
