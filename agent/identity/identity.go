// SPDX-License-Identifier: Apache-2.0

// Package identity keeps who the agent is, and finds the token with which it joins,
// in Secrets of the agent's namespace. It stands beside the step deliver of the flow
// source -> render -> store -> deliver -> apply -> observe -> report: without an
// identity the link carries nothing.
package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/pkg/state"
)

// Names and keys of the Secrets, and the kind that the identity is labelled with.
const (
	identityName = "convoy-agent-identity"
	identityKey  = "identity"
	identityKind = "identity"
	joinName     = "convoy-join"
	joinKey      = "token"
)

// Store keeps the agent's identity in the Secret convoy-agent-identity.
type Store struct{ secrets *state.Secrets }

var _ link.IdentityStore = (*Store)(nil)

// New makes a Store in the namespace of secrets.
func New(secrets *state.Secrets) *Store { return &Store{secrets: secrets} }

// Load implements link.IdentityStore.
func (s *Store) Load(ctx context.Context) (*link.Identity, error) {
	data, err := s.secrets.Data(ctx, identityName)
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	if len(data[identityKey]) == 0 {
		return nil, link.ErrNoIdentity
	}
	var id link.Identity
	if err := json.Unmarshal(data[identityKey], &id); err != nil {
		// The text of the error may repeat a part of its input.
		return nil, fmt.Errorf("secret %s does not hold an identity", identityName)
	}
	return &id, nil
}

// Save implements link.IdentityStore. What else stands in the Secret is left alone.
func (s *Store) Save(ctx context.Context, id *link.Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := s.secrets.SetData(ctx, identityName, identityKind, map[string][]byte{identityKey: raw}); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// JoinToken reads the token that the agent was installed with; "" when there is none.
func (s *Store) JoinToken(ctx context.Context) (string, error) {
	data, err := s.secrets.Data(ctx, joinName)
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	return strings.TrimSpace(string(data[joinKey])), nil
}
