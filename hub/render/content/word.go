// SPDX-License-Identifier: Apache-2.0

package content

import (
	"regexp"
	"strings"
)

// word is a text of a Secret that could be anybody's: a few lower-case words, such as
// the name of a database. Where a field names things such a word says nothing of the
// Secret, and to seal it would hide what people read a render for.
var word = regexp.MustCompile(`^[a-z]+([-_.][a-z]+)*$`)

func isWord(text string) bool { return len(text) <= maxWordBytes && word.MatchString(text) }

// hard are the texts that are no words.
func hard(texts []string) []string {
	var list []string
	for _, text := range texts {
		if !isWord(text) {
			list = append(list, text)
		}
	}
	return list
}

// namesThings reports fields whose texts name something: an image, a part of the object
// or another object, a label. A value that is meant to be kept has no business there.
func namesThings(steps []string) bool {
	last := len(steps) - 1
	switch steps[last] {
	case "name", "namespace", "image", "kind", "hostname", "subdomain":
		return last > 0 && !isData(steps)
	}
	return last > 0 && !isData(steps) && labels[steps[last-1]]
}

// labels are fields whose children are labels or select by them.
var labels = map[string]bool{"labels": true, "matchLabels": true, "selector": true, "nodeSelector": true}

// isData reports values that an author calls as he likes.
func isData(steps []string) bool {
	return strings.EqualFold(steps[0], "data") || steps[0] == "stringData" || steps[0] == "binaryData"
}
