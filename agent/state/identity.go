// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/agent/link"
)

// Names and keys of the Secrets for joining.
const (
	identityName = "convoy-agent-identity"
	identityKey  = "identity"
	joinName     = "convoy-join"
	joinKey      = "token"
)

// Identity keeps the agent's identity in the Secret convoy-agent-identity.
type Identity struct{ secrets *Secrets }

var _ link.IdentityStore = (*Identity)(nil)

// Identity gives the store of the agent's identity.
func (s *Secrets) Identity() *Identity { return &Identity{secrets: s} }

// Load implements link.IdentityStore.
func (i *Identity) Load(ctx context.Context) (*link.Identity, error) {
	in, err := i.secrets.client.get(ctx, identityName)
	if apierrors.IsNotFound(err) || (err == nil && len(in.Data[identityKey]) == 0) {
		return nil, link.ErrNoIdentity
	}
	if err != nil {
		return nil, fmt.Errorf("read identity: %w", err)
	}
	var id link.Identity
	if err := json.Unmarshal(in.Data[identityKey], &id); err != nil {
		// The text of the error may repeat a part of its input.
		return nil, fmt.Errorf("secret %s does not hold an identity", identityName)
	}
	return &id, nil
}

// Save implements link.IdentityStore. What else stands in the Secret is left alone.
func (i *Identity) Save(ctx context.Context, id *link.Identity) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	data := map[string][]byte{identityKey: raw}
	err = i.secrets.client.patchData(ctx, identityName, data)
	if apierrors.IsNotFound(err) {
		err = i.secrets.client.create(ctx, &secret{
			Type: typeOpaque, Data: data,
			Metadata: secretMeta{Name: identityName, Labels: map[string]string{labelState: stateIdentity}},
		})
	}
	if err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// JoinToken reads the token that the agent was installed with; "" when there is none.
func (s *Secrets) JoinToken(ctx context.Context) (string, error) {
	in, err := s.client.get(ctx, joinName)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read join token: %w", err)
	}
	return strings.TrimSpace(string(in.Data[joinKey])), nil
}
