// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Headers of a request that proves itself.
const (
	headerTime  = "Convoy-Request-Time"
	headerProof = "Convoy-Request-Proof"
)

// proofLabel keeps the key of proofs apart from all else that the MAC key is for.
const proofLabel = "convoy.kumodo.io/requests-between-roles/v1"

// Prover proves requests that one role of the hub makes to another, and checks them.
// All hubs that share their keys share it: a network policy alone would leave the
// listener open wherever the network has none.
type Prover struct{ key []byte }

// Prover derives one from the MAC key, which never changes.
func (k *Keyring) Prover() Prover {
	mac := hmac.New(sha256.New, k.MACKey)
	mac.Write([]byte(proofLabel)) // a hash never fails to be written to
	return Prover{key: mac.Sum(nil)}
}

// Sign adds the proof of a request with that body.
func (p Prover) Sign(r *http.Request, body []byte, now time.Time) {
	at := strconv.FormatInt(now.UnixMilli(), 10)
	r.Header.Set(headerTime, at)
	r.Header.Set(headerProof, hex.EncodeToString(p.mac(r, at, body)))
}

// Check says whether a request with that body was signed, within proofAge of now.
func (p Prover) Check(r *http.Request, body []byte, now time.Time) error {
	at := r.Header.Get(headerTime)
	given, err := hex.DecodeString(r.Header.Get(headerProof))
	if err != nil || !hmac.Equal(given, p.mac(r, at, body)) {
		return ErrProof
	}
	millis, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return ErrProof
	}
	if age := now.Sub(time.UnixMilli(millis)); age > proofAge || age < -proofAge {
		return fmt.Errorf("%w: it is %s old", ErrProof, age.Round(time.Second))
	}
	return nil
}

func (p Prover) mac(r *http.Request, at string, body []byte) []byte {
	sum := sha256.Sum256(body)
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%x", r.Method, r.URL.RequestURI(), at, sum)
	return mac.Sum(nil)
}
