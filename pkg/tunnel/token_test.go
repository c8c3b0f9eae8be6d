// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumodo.io/convoy/pkg/tunnel"
)

func goodToken() tunnel.Token {
	return tunnel.Token{
		Gateway: "wss://convoy.example:443", Hub: "0123456789abcdef", ClusterUID: "7c0b1f2e-5d5a-4c5e-9a39-2f1d3f0a1b2c",
		CAPin: "sha256:" + strings.Repeat("ab", 32), Seed: bytes.Repeat([]byte{7}, 32),
	}
}

func encodeRaw(text string) string {
	return "convoy-join." + base64.RawURLEncoding.EncodeToString([]byte(text))
}

func TestATokenSurvivesItsTextForm(t *testing.T) {
	t.Parallel()
	text, err := tunnel.EncodeToken(goodToken())
	if err != nil {
		t.Fatal(err)
	}
	for name, with := range map[string]string{"as it is": text, "with white space around it": "\n " + text + "\n"} {
		got, err := tunnel.ParseToken(with)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(goodToken(), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTokensThatAreNotExactlyRightAreRefused(t *testing.T) {
	t.Parallel()
	text, err := tunnel.EncodeToken(goodToken())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, "convoy-join."))
	if err != nil {
		t.Fatal(err)
	}
	body := string(raw)
	cases := map[string]string{
		"empty":                      "",
		"white space only":           " \n\t",
		"another kind of token":      "convoy-boot." + strings.TrimPrefix(text, "convoy-join."),
		"nothing after the prefix":   "convoy-join.",
		"cut short":                  text[:len(text)-4],
		"one character added":        text + "A",
		"padded base64":              text + "==",
		"white space within":         text[:40] + " " + text[40:],
		"longer than any token":      "convoy-join." + strings.Repeat("A", tunnel.MaxToken),
		"not JSON":                   encodeRaw("seed"),
		"JSON null":                  encodeRaw("null"),
		"another version":            encodeRaw(strings.Replace(body, `"v":1`, `"v":2`, 1)),
		"an unknown field":           encodeRaw(strings.Replace(body, `{"v":1`, `{"x":1,"v":1`, 1)),
		"a field twice":              encodeRaw(strings.Replace(body, `{"v":1`, `{"v":1,"v":1`, 1)),
		"a field in another case":    encodeRaw(strings.Replace(body, `"hub"`, `"Hub"`, 1)),
		"a second value":             encodeRaw(body + "{}"),
		"spaces in the JSON":         encodeRaw(strings.Replace(body, `,`, `, `, 1)),
		"a seed that is too short":   encodeRaw(strings.Replace(body, base64.StdEncoding.EncodeToString(goodToken().Seed), "AAAA", 1)),
		"a pin that is no digest":    encodeRaw(strings.Replace(body, "sha256:", "sha512:", 1)),
		"a URL of another scheme":    encodeRaw(strings.Replace(body, "wss://", "https://", 1)),
		"a URL with a password":      encodeRaw(strings.Replace(body, "wss://", "wss://u:p@", 1)),
		"a hub id with a slash":      encodeRaw(strings.Replace(body, "0123456789abcdef", "../x", 1)),
		"a Cluster UID with a slash": encodeRaw(strings.Replace(body, "7c0b1f2e-5d5a", "7c0b1f2e/5d5a", 1)),
	}
	for name, text := range cases {
		if _, err := tunnel.ParseToken(text); !errors.Is(err, tunnel.ErrToken) {
			t.Errorf("%s: got %v, want ErrToken", name, err)
		} else if seed := base64.StdEncoding.EncodeToString(goodToken().Seed); strings.Contains(err.Error(), seed[:16]) {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}
