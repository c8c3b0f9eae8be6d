// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/tunnel"
)

// Finding is what somebody found about one condition.
type Finding struct {
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

// agentSays begins what an agent says with a word that the hub uses of itself, so that
// the one is not taken for the other.
const agentSays = "the agent: "

// agentFinding takes over what an agent said. Nothing that an agent sends may
// make a status that the API server refuses, so all of it is bounded here, and
// a word that is not one of the three truths is Unknown.
func agentFinding(f tunnel.Finding) Finding {
	out := Finding{Status: metav1.ConditionUnknown, Reason: cleanReason(f.Reason), Message: clip(f.Message, maxMessage)}
	switch f.Status {
	case tunnel.True:
		out.Status = metav1.ConditionTrue
	case tunnel.False:
		out.Status = metav1.ConditionFalse
		if hubsWord(out.Reason) {
			out.Message = clip(agentSays+out.Message, maxMessage)
		}
	case tunnel.Unknown:
	}
	return out
}

// cleanReason keeps a reason that the condition's schema accepts.
func cleanReason(reason string) string {
	if reason == "" || len(reason) > maxReason {
		return v1alpha1.ReasonUnknown
	}
	for i, c := range reason {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return v1alpha1.ReasonUnknown
		}
	}
	return reason
}

// clip shortens text to at most limit bytes of valid UTF-8 without control
// characters, each of which would take six bytes in JSON.
func clip(text string, limit int) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	cut := limit - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + ellipsis
}

// failing says whether a report tells of something that went wrong and that a
// person should see before the operation has settled.
func failing(report *tunnel.Report) bool {
	if report.Refused != nil {
		return true
	}
	if report.Applied.Status != tunnel.False {
		return false
	}
	switch report.Applied.Reason {
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonBlocked, v1alpha1.ReasonNotReported, v1alpha1.ReasonDeleting:
		return false
	}
	return true
}
