// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"kumodo.io/convoy/pkg/tunnel"
)

// withKeys gives the identity with the key sets that the hub named over a link
// where it presented the certificate peer, and tells whether they differ. Each set
// replaces the one there was; an empty one changes nothing. CAs under which the
// hub could not be verified at this very moment are refused: taking them would be
// to lock it out.
func (i *Identity) withKeys(orderKeys [][]byte, hubCA []byte, peer *x509.Certificate) (*Identity, bool, error) {
	next := *i
	if len(orderKeys) > 0 {
		if _, err := tunnel.PublicKeys(orderKeys); err != nil || len(orderKeys) > MaxKeySet {
			return nil, false, fmt.Errorf("order keys that the hub named: %w", errors.Join(err, tunnel.ErrKey))
		}
		next.OrderKeys = orderKeys
		next.FormerOrderKeys = former(i, orderKeys)
	}
	if len(hubCA) > 0 {
		set, err := canonicalCAs(hubCA)
		if err != nil {
			return nil, false, fmt.Errorf("CAs that the hub named: %w", err)
		}
		next.HubCA = set
		if _, err := next.signer(peer); err != nil {
			return nil, false, fmt.Errorf("CAs that the hub named: %w", err)
		}
	}
	same := slices.EqualFunc(i.OrderKeys, next.OrderKeys, bytes.Equal) && bytes.Equal(i.HubCA, next.HubCA)
	return &next, !same, nil
}

// former are the keys that were trusted once, without those that are now.
func former(i *Identity, now [][]byte) [][]byte {
	var all [][]byte
	for _, key := range slices.Concat(i.FormerOrderKeys, i.OrderKeys) {
		has := func(set [][]byte) bool {
			return slices.ContainsFunc(set, func(k []byte) bool { return bytes.Equal(k, key) })
		}
		if !has(now) && !has(all) {
			all = append(all, key)
		}
	}
	return all[max(0, len(all)-MaxFormerKeys):]
}

// canonicalCAs reads CA certificates and writes them again, so that the same set
// is the same bytes.
func canonicalCAs(raw []byte) ([]byte, error) {
	certs, err := parseCertificates(raw)
	if err != nil {
		return nil, err
	}
	if len(certs) > MaxKeySet {
		return nil, fmt.Errorf("%w: %d of them", tunnel.ErrTooLong, len(certs))
	}
	var out []byte
	for _, cert := range certs {
		if !cert.IsCA {
			return nil, fmt.Errorf("%w: one of them is no CA", tunnel.ErrHub)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	return out, nil
}

// signer is the CA of the set that signed a certificate of the hub.
func (i *Identity) signer(peer *x509.Certificate) (*x509.Certificate, error) {
	if peer == nil {
		return nil, fmt.Errorf("%w: it showed no certificate", tunnel.ErrHub)
	}
	certs, err := parseCertificates(i.HubCA)
	if err != nil {
		return nil, err
	}
	for _, cert := range certs {
		if cert.IsCA && peer.CheckSignatureFrom(cert) == nil {
			return cert, nil
		}
	}
	return nil, fmt.Errorf("%w: none of them signed the certificate that it uses", tunnel.ErrHub)
}

// pin of the CA that a join is signed for: the one that the token names, and when
// the hub has another by now, that of the certificate that it shows.
func (i *Identity) pin(peer *x509.Certificate) string {
	if cert, err := i.signer(peer); err == nil {
		return tunnel.CAPin(cert)
	}
	return i.CAPin
}

// trust in the hub: any of its CAs. They were taken under the pin of the token, and
// after that over links that they had verified.
func (i *Identity) trust() (tunnel.HubTrust, error) {
	certs, err := parseCertificates(i.HubCA)
	if err != nil {
		return tunnel.HubTrust{}, fmt.Errorf("hub CA: %w", err)
	}
	pool := x509.NewCertPool()
	for _, cert := range certs {
		if cert.IsCA {
			pool.AddCert(cert)
		}
	}
	return tunnel.HubTrust{Hub: i.Hub, CAs: pool}, nil
}
