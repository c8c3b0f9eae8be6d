// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"testing"

	"kumodo.io/convoy/pkg/manifest"
)

func TestAMergeKeyIsOneHoweverItIsWritten(t *testing.T) {
	tests := []struct{ name, key, want string }{
		{"plain", "<<", "map[a:1]"},
		{"with its tag, as some programs write it", "!!merge <<", "map[a:1]"},
		{"in quotes it is text", `"<<"`, "map[<<:map[a:1]]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: X\nmetadata: {name: x}\nfirst: &first {a: 1}\nsecond:\n  " + test.key + ": *first\n"
			objects, err := manifest.Parse("a.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(objects[0].Content["second"]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
