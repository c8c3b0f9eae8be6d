// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

func key(t testing.TB, n byte) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		t.Fatal("no Ed25519 key")
	}
	return public, private
}

func TestASignatureCoversTypeAndPayload(t *testing.T) {
	t.Parallel()
	public, private := key(t, 1)
	other, otherPrivate := key(t, 2)
	signed := tunnel.Sign(tunnel.TypeOrder, []byte(`{"a":1}`), private)
	change := func(f func(*tunnel.Signed)) tunnel.Signed {
		s := signed
		s.Payload, s.Signature = bytes.Clone(s.Payload), bytes.Clone(s.Signature)
		f(&s)
		return s
	}
	cases := map[string]struct {
		signed tunnel.Signed
		want   string
		keys   []ed25519.PublicKey
		err    error
	}{
		"as it was signed":                     {signed, tunnel.TypeOrder, []ed25519.PublicKey{public}, nil},
		"one of several keys":                  {signed, tunnel.TypeOrder, []ed25519.PublicKey{other, public}, nil},
		"wanted as another type":               {signed, tunnel.TypeHead, []ed25519.PublicKey{public}, tunnel.ErrType},
		"relabelled as another type":           {change(func(s *tunnel.Signed) { s.Type = tunnel.TypeHead }), tunnel.TypeHead, []ed25519.PublicKey{public}, tunnel.ErrSignature},
		"one bit of the payload":               {change(func(s *tunnel.Signed) { s.Payload[2] ^= 1 }), tunnel.TypeOrder, []ed25519.PublicKey{public}, tunnel.ErrSignature},
		"one bit of the signature":             {change(func(s *tunnel.Signed) { s.Signature[5] ^= 1 }), tunnel.TypeOrder, []ed25519.PublicKey{public}, tunnel.ErrSignature},
		"no signature":                         {change(func(s *tunnel.Signed) { s.Signature = nil }), tunnel.TypeOrder, []ed25519.PublicKey{public}, tunnel.ErrSignature},
		"a key that is not known":              {signed, tunnel.TypeOrder, []ed25519.PublicKey{other}, tunnel.ErrSignature},
		"another key under the known key's id": {forged(otherPrivate, signed.KeyID), tunnel.TypeOrder, []ed25519.PublicKey{public}, tunnel.ErrSignature},
		"no keys":                              {signed, tunnel.TypeOrder, nil, tunnel.ErrSignature},
	}
	for name, c := range cases {
		if err := tunnel.Verify(c.signed, c.want, c.keys); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
	}
}

func forged(by ed25519.PrivateKey, keyID string) tunnel.Signed {
	s := tunnel.Sign(tunnel.TypeOrder, []byte(`{"a":1}`), by)
	s.KeyID = keyID
	return s
}

func TestTheHashOfOrdersTellsThemApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, orders := range map[string]map[string]int64{
		"none":                     {},
		"one":                      {"a": 1},
		"another sequence":         {"a": 2},
		"two":                      {"a": 1, "b": 1},
		"two swapped":              {"a": 1, "b": 2},
		"a name with a number":     {"a 1": 1},
		"a name with a line break": {"a\n1 b": 1},
	} {
		h := tunnel.HashOrders(orders)
		if !tunnel.ValidDigest(h) {
			t.Errorf("%s: %q is no digest", name, h)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[h] = name
	}
	if tunnel.HashOrders(nil) != tunnel.HashOrders(map[string]int64{}) {
		t.Error("no orders and an empty list of orders differ")
	}
}

func order() tunnel.Order {
	return tunnel.Order{
		Verb: tunnel.VerbApply, Hub: "h", ClusterUID: "c", Release: tunnel.ReleaseRef{UID: "u", Namespace: "n", Name: "r"},
		Sequence: 5, IssuedAt: time.Unix(1, 0).UTC(), Objects: &tunnel.Layer{Digest: tunnel.HashOrders(nil), Size: 10},
	}
}

func TestOrdersOfAnotherFormAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*tunnel.Order){
		"no verb":                 func(o *tunnel.Order) { o.Verb = "" },
		"an unknown verb":         func(o *tunnel.Order) { o.Verb = "destroy" },
		"no hub":                  func(o *tunnel.Order) { o.Hub = "" },
		"no cluster":              func(o *tunnel.Order) { o.ClusterUID = "" },
		"no Release":              func(o *tunnel.Order) { o.Release.UID = "" },
		"no sequence":             func(o *tunnel.Order) { o.Sequence = 0 },
		"a negative sequence":     func(o *tunnel.Order) { o.Sequence = -1 },
		"apply without objects":   func(o *tunnel.Order) { o.Objects = nil },
		"a digest of other form":  func(o *tunnel.Order) { o.Objects.Digest = "sha256:../../x" },
		"a size below zero":       func(o *tunnel.Order) { o.Objects.Size = -1 },
		"a size beyond the limit": func(o *tunnel.Order) { o.Objects.Size = tunnel.MaxBlob + 1 },
		"remove with a render":    func(o *tunnel.Order) { o.Verb = tunnel.VerbRemove },
		"release with a render":   func(o *tunnel.Order) { o.Verb = tunnel.VerbRelease },
	}
	for name, change := range cases {
		o := order()
		change(&o)
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tunnel.ParseOrder(raw); !errors.Is(err, tunnel.ErrOrder) {
			t.Errorf("%s: got %v, want ErrOrder", name, err)
		}
	}
	raw, err := json.Marshal(order())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tunnel.ParseOrder(raw); err != nil {
		t.Errorf("a good order: %v", err)
	}
	if _, err := tunnel.ParseOrder(append(raw[:len(raw)-1], []byte(`,"newField":{"x":1}}`)...)); err != nil {
		t.Errorf("an order with a field of a later version: %v", err)
	}
}

func TestAJoinProofBindsEveryPartOfTheRequest(t *testing.T) {
	t.Parallel()
	_, token := key(t, 1)
	_, bound := key(t, 2)
	otherPublic, other := key(t, 3)
	good := tunnel.JoinRequest{Nonce: []byte("nonce"), ClusterUID: "uid", ClientKey: []byte("client")}
	tunnel.SignJoin(&good, "hub", "pin", token, bound)
	if err := tunnel.VerifyJoin(good, "hub", "pin"); err != nil {
		t.Fatal(err)
	}
	recovery := tunnel.JoinRequest{Nonce: []byte("nonce"), ClusterUID: "uid", ClientKey: []byte("client")}
	tunnel.SignJoin(&recovery, "hub", "pin", nil, bound)
	if err := tunnel.VerifyJoin(recovery, "hub", "pin"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*tunnel.JoinRequest){
		"another nonce":              func(r *tunnel.JoinRequest) { r.Nonce = []byte("nonsense") },
		"another cluster":            func(r *tunnel.JoinRequest) { r.ClusterUID = "uid2" },
		"another client key":         func(r *tunnel.JoinRequest) { r.ClientKey = []byte("thief") },
		"another bound key":          func(r *tunnel.JoinRequest) { r.BoundKey = otherPublic },
		"a bound key of the thief":   func(r *tunnel.JoinRequest) { tunnel.SignJoin(r, "hub", "pin", other, other); r.JoinKey = good.JoinKey },
		"bytes moved to a neighbour": func(r *tunnel.JoinRequest) { r.Nonce, r.ClusterUID = []byte("nonceu"), "id" },
		"no proof":                   func(r *tunnel.JoinRequest) { r.Proof = nil },
		"no bound proof":             func(r *tunnel.JoinRequest) { r.BoundProof = nil },
		"a join made a recovery":     func(r *tunnel.JoinRequest) { r.JoinKey, r.Proof = nil, nil },
	}
	for name, change := range cases {
		r := good
		change(&r)
		if err := tunnel.VerifyJoin(r, "hub", "pin"); !errors.Is(err, tunnel.ErrSignature) {
			t.Errorf("%s: got %v, want ErrSignature", name, err)
		}
	}
	if err := tunnel.VerifyJoin(good, "hub2", "pin"); err == nil {
		t.Error("the proof is good for another hub")
	}
	if err := tunnel.VerifyJoin(good, "hub", "pin2"); err == nil {
		t.Error("the proof is good under another CA")
	}
}
