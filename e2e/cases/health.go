// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"slices"
	"strings"

	"kumodo.io/convoy/pkg/health"
)

// health prints the verdict of the built-in health rules beside the expected one.
func (p *Player) health(s *Step) error {
	object, err := s.Docs[0].object()
	if err != nil {
		return err
	}
	verdict := health.Judge(object.Object)
	word := verdict.State.Outcome().String()
	p.say("verdict: %s\n", word)
	if verdict.Message != "" {
		p.say("message: %s\n", verdict.Message)
	}
	switch {
	case s.Verdict == "" && len(s.Expect) == 0:
		p.say("expected: nothing is said\n")
	case s.Verdict == "":
		p.say("expect (for you to judge):\n")
		for _, statement := range s.Expect {
			p.say("  [ ] %s\n", statement)
		}
	case slices.Contains(strings.Split(s.Verdict, " or "), word):
		p.say("expected: %s (as it is)\n", s.Verdict)
	default:
		p.say("expected: %s (DIFFERS)\n", s.Verdict)
	}
	return nil
}
