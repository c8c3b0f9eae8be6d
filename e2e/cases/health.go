// SPDX-License-Identifier: Apache-2.0

package cases

import "kumodo.io/convoy/pkg/engine"

// health prints the verdict of the engine's rules beside the expected one.
func (p *Player) health(s *Step) error {
	object, err := s.Docs[0].object()
	if err != nil {
		return err
	}
	word, message := engine.Verdict(object.Object)
	p.say("verdict: %s\n", word)
	if message != "" {
		p.say("message: %s\n", message)
	}
	switch s.Verdict {
	case "":
	case word:
		p.say("expected: %s (as it is)\n", s.Verdict)
	default:
		p.say("expected: %s (DIFFERS)\n", s.Verdict)
	}
	return nil
}
