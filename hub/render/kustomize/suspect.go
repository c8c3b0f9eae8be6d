// SPDX-License-Identifier: Apache-2.0

package kustomize

import "strings"

// suspect is a file that shares something with words that are not told.
type suspect struct {
	places []string
	piece  string // the longest that it shares
}

// shared keeps the longest piece that a text shares with the message.
func (m *message) shared(piece string) {
	if piece = strings.TrimSpace(piece); len(piece) > len(m.piece) {
		m.piece = piece
	}
}

// guilty gives the places of those files that the message is about, as far as that can be
// seen: one that shares a word of the library's own, or a part of what another one shares
// more of, is named only where there is no other.
func guilty(suspects []suspect) []string {
	var all, places []string
	for i, s := range suspects {
		all = append(all, s.places...)
		innocent := vocabulary[s.piece]
		for j, other := range suspects {
			innocent = innocent || i != j && len(other.piece) > len(s.piece) && strings.Contains(other.piece, s.piece)
		}
		if !innocent {
			places = append(places, s.places...)
		}
	}
	if len(places) == 0 {
		return all
	}
	return places
}
