// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

// FuzzToken: a text is a token or it is refused, and what was read is written
// again byte for byte. No error repeats what was read.
func FuzzToken(f *testing.F) {
	good, err := tunnel.EncodeToken(tunnel.Token{
		Gateway: "wss://convoy.example:443", Hub: "0123456789abcdef", ClusterUID: "7c0b1f2e-5d5a-4c5e-9a39-2f1d3f0a1b2c",
		CAPin: "sha256:" + strings.Repeat("ab", 32), Seed: make([]byte, ed25519.SeedSize),
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{good, " " + good + "\n", good[:len(good)-1], good + "=", strings.ToUpper(good), "convoy-join.", "convoy-join.e30", "", "\x00", "convoy-join." + strings.Repeat("A", 5000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := tunnel.ParseToken(text)
		if err != nil {
			if !errors.Is(err, tunnel.ErrToken) {
				t.Fatalf("failed with %v", err)
			}
			if body, ok := strings.CutPrefix(strings.TrimSpace(text), "convoy-join."); ok && len(body) > 16 && strings.Contains(err.Error(), body) {
				t.Fatal("the error repeats the token")
			}
			return
		}
		again, err := tunnel.EncodeToken(token)
		if err != nil || again != strings.TrimSpace(text) {
			t.Fatalf("read from %q, written as %q, %v", text, again, err)
		}
		if len(token.Seed) != ed25519.SeedSize || tunnel.CheckGatewayURL(token.Gateway) != nil {
			t.Fatalf("took %+v", token)
		}
	})
}

// FuzzOrder: whatever is signed, or seems to be, is refused or is of the form that
// an engine may trust. Nothing passes for signed that was not.
func FuzzOrder(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	digest := "sha256:" + strings.Repeat("ab", 32)
	for _, payload := range []string{
		`{"verb":"apply","hub":"h","clusterUID":"c","release":{"uid":"r"},"sequence":1,"objects":{"digest":"` + digest + `","size":1}}`,
		`{"verb":"remove","hub":"h","clusterUID":"c","release":{"uid":"r"},"sequence":9223372036854775807}`,
		`{"verb":"apply","sequence":-1}`, `{"hub":"h","clusterUID":"c","count":1,"hash":"` + digest + `"}`, `[]`, `null`, ``, `{"release":{"uid":1}}`,
	} {
		signed, err := json.Marshal(tunnel.Sign(tunnel.TypeOrder, []byte(payload), key))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(signed)
		f.Add([]byte(payload))
	}
	keys := []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
	f.Fuzz(func(t *testing.T, line []byte) {
		var signed tunnel.Signed
		if json.Unmarshal(line, &signed) == nil {
			if tunnel.Verify(signed, tunnel.TypeOrder, keys) == nil {
				if again := tunnel.Sign(tunnel.TypeOrder, signed.Payload, key); !bytes.Equal(again.Signature, signed.Signature) {
					t.Fatalf("a signature that was not made passes: %s", line)
				}
			}
			parse(t, signed.Payload)
		}
		parse(t, line)
	})
}

func parse(t *testing.T, payload []byte) {
	t.Helper()
	o, err := tunnel.ParseOrder(payload)
	switch {
	case err != nil && !errors.Is(err, tunnel.ErrOrder):
		t.Fatalf("failed with %v", err)
	case err == nil:
		if o.Release.UID == "" || o.Hub == "" || o.ClusterUID == "" || o.Sequence <= 0 || (o.Verb == tunnel.VerbApply) != (o.Objects != nil) {
			t.Fatalf("took %+v", o)
		}
		for _, l := range []*tunnel.Layer{o.Objects, o.Sealed} {
			if l != nil && (!tunnel.ValidDigest(l.Digest) || l.Size <= 0 || l.Size > tunnel.MaxBlob) {
				t.Fatalf("took layer %+v", l)
			}
		}
	}
	h, err := tunnel.ParseHead(payload)
	switch {
	case err != nil && !errors.Is(err, tunnel.ErrOrder):
		t.Fatalf("failed with %v", err)
	case err == nil && (h.Count < 0 || h.Count > tunnel.MaxOrders || !tunnel.ValidDigest(h.Hash)):
		t.Fatalf("took %+v", h)
	}
}

// FuzzBodies: the bodies of all requests are read or refused, within their limit,
// and no join request passes that its keys did not sign.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"agentVersion":"v","features":["a"],"apiVersions":["v1"],"targetUID":"t","now":"2026-01-02T03:04:05Z"}`,
		`{"orders":[{"type":"t","keyID":"k","payload":"e30=","signature":"AA=="}]}`,
		`{"have":{"a":1,"b":-9}}`, `{"reports":[{"release":{"uid":"r"},"counter":1,"inventory":[{"kind":"x"}]}]}`,
		`{"nonce":"AA==","clusterUID":"c","joinKey":"AA==","boundKey":"AA==","clientKey":"AA==","proof":"AA==","boundProof":"AA=="}`,
		`{"clientKey":"AA=="}`, `{"goAway":{"withinSeconds":30},"present":["a"]}`, `{}{}`, `{"orders":null}`, strings.Repeat("[", 10001), `"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 4096
		for _, into := range []any{
			&tunnel.Hello{}, &tunnel.HeldRequest{}, &tunnel.OrdersRequest{}, &tunnel.ReportsRequest{}, &tunnel.RenewRequest{}, &tunnel.OrderEvent{},
			&tunnel.HelloAnswer{}, &tunnel.CertificateAnswer{}, &tunnel.ReportsAnswer{}, &tunnel.Problem{},
		} {
			err := tunnel.DecodeJSON(bytes.NewReader(body), limit, into)
			if (err == nil) && len(body) > limit {
				t.Fatalf("took %d bytes", len(body))
			}
			if len(body) > limit && !errors.Is(err, tunnel.ErrTooLong) {
				t.Fatalf("%d bytes gave %v", len(body), err)
			}
		}
		var join tunnel.JoinRequest
		if tunnel.DecodeJSON(bytes.NewReader(body), limit, &join) == nil && tunnel.VerifyJoin(join, "hub", "sha256:pin") == nil {
			t.Fatalf("a join passes that nobody signed: %s", body)
		}
	})
}
