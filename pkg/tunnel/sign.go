// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// pae joins parts so that no two lists of parts give the same bytes: the label,
// then length and bytes of each.
func pae(label string, parts ...[]byte) []byte {
	out := []byte(label)
	for _, p := range parts {
		out = append(out, ' ')
		out = strconv.AppendInt(out, int64(len(p)), 10)
		out = append(out, ' ')
		out = append(out, p...)
	}
	return out
}

// Sign signs payload as a thing of that type.
func Sign(typ string, payload []byte, key ed25519.PrivateKey) Signed {
	public := key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented by the library
	return Signed{
		Type: typ, KeyID: KeyID(public), Payload: payload,
		Signature: ed25519.Sign(key, pae("convoy.signed.v1", []byte(typ), payload)),
	}
}

// SignJSON signs the JSON of v.
func SignJSON(typ string, v any, key ed25519.PrivateKey) (Signed, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return Signed{}, fmt.Errorf("encode %s: %w", typ, err)
	}
	return Sign(typ, payload, key), nil
}

// Verify fails with ErrType or ErrSignature unless s is a thing of that type,
// signed by one of the keys.
func Verify(s Signed, wantType string, keys []ed25519.PublicKey) error {
	if s.Type != wantType {
		return fmt.Errorf("%w: %q, want %q", ErrType, s.Type, wantType)
	}
	for _, key := range keys {
		if KeyID(key) == s.KeyID && ed25519.Verify(key, pae("convoy.signed.v1", []byte(s.Type), s.Payload), s.Signature) {
			return nil
		}
	}
	return fmt.Errorf("%w: key %q", ErrSignature, s.KeyID)
}

// PublicKeys reads Ed25519 keys as they go over the wire.
func PublicKeys(raw [][]byte) ([]ed25519.PublicKey, error) {
	keys := make([]ed25519.PublicKey, 0, len(raw))
	for _, r := range raw {
		if len(r) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("%w: Ed25519 key of %d bytes", ErrKey, len(r))
		}
		keys = append(keys, ed25519.PublicKey(r))
	}
	return keys, nil
}

// HashOrders is the hash in a Head: over Release UID and sequence of each order,
// sorted by UID.
func HashOrders(orders map[string]int64) string {
	h := sha256.New()
	for _, uid := range slices.Sorted(maps.Keys(orders)) {
		fmt.Fprintf(h, "%d %s %d\n", len(uid), uid, orders[uid])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// SignedOrder is an order ready to be sent, with what it is about.
type SignedOrder struct {
	UID      string // of the Release
	Sequence int64
	Signed   Signed
}

// ParseOrder reads the payload of a signed order and checks its form. It does
// not say whether the order is for the caller.
func ParseOrder(payload []byte) (Order, error) {
	var o Order
	if err := json.Unmarshal(payload, &o); err != nil {
		return Order{}, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	if o.Release.UID == "" || len(o.Release.UID) > 64 || o.ClusterUID == "" || o.Hub == "" || o.Sequence <= 0 {
		return Order{}, fmt.Errorf("%w: names no Release, cluster, hub or sequence", ErrOrder)
	}
	switch o.Verb {
	case VerbApply:
		if o.Objects == nil {
			return Order{}, fmt.Errorf("%w: apply without objects", ErrOrder)
		}
	case VerbRemove, VerbRelease:
		if o.Objects != nil || o.Sealed != nil {
			return Order{}, fmt.Errorf("%w: %s with a render", ErrOrder, o.Verb)
		}
	default:
		return Order{}, fmt.Errorf("%w: verb %q", ErrOrder, o.Verb)
	}
	for _, l := range []*Layer{o.Objects, o.Sealed} {
		if l != nil && (!ValidDigest(l.Digest) || l.Size <= 0 || l.Size > MaxBlob) {
			return Order{}, fmt.Errorf("%w: layer %q of %d bytes", ErrOrder, l.Digest, l.Size)
		}
	}
	return o, nil
}

// ParseHead reads the payload of a signed head and checks its form.
func ParseHead(payload []byte) (Head, error) {
	var h Head
	if err := json.Unmarshal(payload, &h); err != nil {
		return Head{}, fmt.Errorf("%w: %w", ErrOrder, err)
	}
	if h.Hub == "" || h.ClusterUID == "" || h.Count < 0 || h.Count > MaxOrders || !ValidDigest(h.Hash) {
		return Head{}, fmt.Errorf("%w: head", ErrOrder)
	}
	return h, nil
}

// ValidDigest tells whether d is "sha256:" and 64 lower-case hex digits.
func ValidDigest(d string) bool {
	hexes, ok := strings.CutPrefix(d, "sha256:")
	if !ok || len(hexes) != 64 {
		return false
	}
	for _, c := range hexes {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
