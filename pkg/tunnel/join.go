// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/ed25519"
	"fmt"
)

// JoinProofInput is what a join request signs, with the token's key and with the
// bound key: everything in it and the CA that the agent pinned, so that no part
// can be swapped and no proof is of use with another hub.
func JoinProofInput(r JoinRequest, hub, caPin string) []byte {
	return pae("convoy.join.v1", []byte(hub), []byte(caPin), r.Nonce, []byte(r.ClusterUID), r.JoinKey, r.BoundKey, r.ClientKey)
}

// SignJoin fills in the proofs. token is nil to recover with the bound key alone.
func SignJoin(r *JoinRequest, hub, caPin string, token, bound ed25519.PrivateKey) {
	r.BoundKey = bound.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented by the library
	r.JoinKey, r.Proof = nil, nil
	if token != nil {
		r.JoinKey = token.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented by the library
	}
	input := JoinProofInput(*r, hub, caPin)
	if token != nil {
		r.Proof = ed25519.Sign(token, input)
	}
	r.BoundProof = ed25519.Sign(bound, input)
}

// VerifyJoin checks the proofs of a join request, or of a recovery when it has
// no JoinKey. It does not say whether the keys are known.
func VerifyJoin(r JoinRequest, hub, caPin string) error {
	input := JoinProofInput(r, hub, caPin)
	if len(r.BoundKey) != ed25519.PublicKeySize || !ed25519.Verify(r.BoundKey, input, r.BoundProof) {
		return fmt.Errorf("%w: bound key", ErrSignature)
	}
	if len(r.JoinKey) == 0 {
		return nil
	}
	if len(r.JoinKey) != ed25519.PublicKeySize || !ed25519.Verify(r.JoinKey, input, r.Proof) {
		return fmt.Errorf("%w: join key", ErrSignature)
	}
	return nil
}
