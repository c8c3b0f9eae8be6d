// SPDX-License-Identifier: Apache-2.0

package keyset

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	pemCertificate = "CERTIFICATE"
	pemPrivateKey  = "PRIVATE KEY"
)

// CA certifies keys.
type CA struct {
	// ID is the first 16 hexadecimal digits of the hash of the public key.
	ID          string
	Certificate *x509.Certificate
	Signer      crypto.Signer
	// PEM is the certificate alone.
	PEM []byte
}

// Pin is "sha256:<hex>" of the public key (SPKI).
func (c CA) Pin() string {
	sum := sha256.Sum256(c.Certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ClientCertificate certifies a new key for a person or program of the given
// groups, and gives both, PEM.
func (c CA) ClientCertificate(name string, groups []string, now time.Time, lifetime time.Duration) (certificate, key []byte, err error) {
	return c.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotAfter:    now.Add(lifetime),
	}, now)
}

// ServerCertificate certifies a new key for the given DNS names and addresses,
// and gives both, PEM.
func (c CA) ServerCertificate(names []string, addresses []net.IP, now time.Time, lifetime time.Duration) (certificate, key []byte, err error) {
	common := "convoy"
	if len(names) > 0 {
		common = names[0]
	}
	return c.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: common},
		DNSNames:    names,
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotAfter:    now.Add(lifetime),
	}, now)
}

func (c CA) issue(template *x509.Certificate, now time.Time) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key: %w", err)
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, nil, err
	}
	template.NotBefore = now.Add(-backdate)
	if template.NotAfter.After(c.Certificate.NotAfter) {
		template.NotAfter = c.Certificate.NotAfter
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, c.Certificate, private.Public(), c.Signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate: %w", err)
	}
	encoded, err := encodeKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}), encoded, nil
}

// newCA makes the fields of a CA.
func newCA(name string, now time.Time) (map[string][]byte, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, fmt.Errorf("sign CA certificate: %w", err)
	}
	encoded, err := encodeKey(private)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		fieldCertificate: pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}),
		fieldPrivateKey:  encoded,
	}, nil
}

func readCA(certificatePEM, keyPEM []byte) (CA, error) {
	certificate, err := parseCertificate(certificatePEM)
	if err != nil {
		return CA{}, err
	}
	key, err := decodeKey(keyPEM)
	if err != nil {
		return CA{}, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return CA{}, fmt.Errorf("%w: %T cannot sign", ErrBroken, key)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificate.PublicKey) {
		return CA{}, fmt.Errorf("%w: certificate and private key do not belong together", ErrBroken)
	}
	return CA{ID: keyID(certificate.RawSubjectPublicKeyInfo), Certificate: certificate, Signer: signer, PEM: pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: certificate.Raw})}, nil
}

func parseCertificate(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != pemCertificate {
		return nil, fmt.Errorf("%w: no certificate in it", ErrBroken)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return certificate, nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return serial, nil
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: der}), nil
}

func decodeKey(raw []byte) (crypto.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != pemPrivateKey {
		return nil, fmt.Errorf("%w: no private key in it", ErrBroken)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return key, nil
}
