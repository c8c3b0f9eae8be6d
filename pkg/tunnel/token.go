// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
)

const (
	tokenPrefix  = "convoy-join."
	tokenVersion = 1
)

var (
	hubID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	uid   = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

// Token is what an agent needs to join, once. Seed is secret; the hub only ever
// sees the public key made from it.
type Token struct {
	Gateway    string // as in wss://convoy.example:443
	Hub        string
	ClusterUID string
	CAPin      string // sha256:<hex>, see the function CAPin
	Seed       []byte // of an Ed25519 key
}

// wireToken fixes the names and their order.
type wireToken struct {
	V          int    `json:"v"`
	Gateway    string `json:"gateway"`
	Hub        string `json:"hub"`
	ClusterUID string `json:"clusterUID"`
	CAPin      string `json:"caPin"`
	Seed       []byte `json:"seed"`
}

// NewSeed makes the secret of a new token.
func NewSeed() ([]byte, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, fmt.Errorf("make seed: %w", err)
	}
	return seed, nil
}

// Key is the token's one-time key.
func (t Token) Key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(t.Seed) }

// PublicKey is what the hub is told about the token.
func (t Token) PublicKey() ed25519.PublicKey {
	return t.Key().Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented by the library
}

// EncodeToken is the text that ParseToken reads.
func EncodeToken(t Token) (string, error) {
	if err := t.check(); err != nil {
		return "", err
	}
	return t.text()
}

func (t Token) text() (string, error) {
	raw, err := json.Marshal(wireToken{
		V: tokenVersion, Gateway: t.Gateway, Hub: t.Hub, ClusterUID: t.ClusterUID, CAPin: t.CAPin, Seed: t.Seed,
	})
	if err != nil {
		return "", fmt.Errorf("encode join token: %w", err)
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(raw), nil
}

// ParseToken reads exactly what EncodeToken writes, with white space around it,
// and fails with ErrToken on anything else. Errors never contain the token.
func ParseToken(text string) (Token, error) {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) == 0 {
		return Token{}, fmt.Errorf("%w: empty", ErrToken)
	}
	if len(trimmed) > MaxToken {
		return Token{}, fmt.Errorf("%w: longer than %d bytes", ErrToken, MaxToken)
	}
	body, ok := bytes.CutPrefix(trimmed, []byte(tokenPrefix))
	if !ok {
		return Token{}, fmt.Errorf("%w: does not start with %s", ErrToken, tokenPrefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(body))
	if err != nil {
		return Token{}, fmt.Errorf("%w: not base64url", ErrToken)
	}
	var w wireToken
	if err := json.Unmarshal(raw, &w); err != nil {
		return Token{}, fmt.Errorf("%w: not JSON of the right form", ErrToken)
	}
	if w.V != tokenVersion {
		return Token{}, fmt.Errorf("%w: version %d, this program reads %d", ErrToken, w.V, tokenVersion)
	}
	t := Token{Gateway: w.Gateway, Hub: w.Hub, ClusterUID: w.ClusterUID, CAPin: w.CAPin, Seed: w.Seed}
	if err := t.check(); err != nil {
		return Token{}, err
	}
	// Unknown, repeated or reordered fields do not survive this.
	again, err := t.text()
	if err != nil {
		return Token{}, err
	}
	if again != string(trimmed) {
		return Token{}, fmt.Errorf("%w: not in canonical form", ErrToken)
	}
	return t, nil
}

func (t Token) check() error {
	if err := CheckGatewayURL(t.Gateway); err != nil {
		return fmt.Errorf("%w: %w", ErrToken, err)
	}
	switch {
	case !hubID.MatchString(t.Hub):
		return fmt.Errorf("%w: hub id", ErrToken)
	case !uid.MatchString(t.ClusterUID):
		return fmt.Errorf("%w: Cluster UID", ErrToken)
	case !ValidDigest(t.CAPin):
		return fmt.Errorf("%w: CA pin", ErrToken)
	case len(t.Seed) != ed25519.SeedSize:
		return fmt.Errorf("%w: seed", ErrToken)
	}
	return nil
}

// CheckGatewayURL tells whether agents can dial u: ws or wss, a host, perhaps a
// port and a path, nothing else.
func CheckGatewayURL(u string) error {
	parsed, err := url.Parse(u)
	if err != nil {
		return fmt.Errorf("gateway URL does not parse")
	}
	if parsed.Scheme != "wss" && parsed.Scheme != "ws" {
		return fmt.Errorf("gateway URL %q: scheme must be wss or ws", parsed.Redacted())
	}
	if parsed.Hostname() == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" || parsed.Opaque != "" {
		return fmt.Errorf("gateway URL %q: want a host, and neither user, query nor fragment", parsed.Redacted())
	}
	return nil
}
