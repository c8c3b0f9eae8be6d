// SPDX-License-Identifier: Apache-2.0

package engine

// Verdict judges a live object by the rules that a Runner uses: Healthy, Progressing,
// Degraded, Suspended or Unknown, and why when it is not Healthy. The object is not
// changed.
func Verdict(live map[string]any) (word, message string) {
	h, message := judge(live)
	return h.Outcome().String(), message
}
