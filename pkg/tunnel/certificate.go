// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"
)

// Issuer signs the leaf certificates of one hub.
type Issuer struct {
	Hub    string
	CA     *x509.Certificate
	Signer crypto.Signer
}

// Issued is a certificate that was, or is about to be, signed.
type Issued struct {
	Serial   string // hexadecimal
	NotAfter time.Time
	bound    string
	template *x509.Certificate
	public   any
}

// Prepare makes the certificate of an agent, unsigned, so that serial and end
// can be recorded before it exists. bound is the KeyID of the agent's bound key.
// The subject is written here: of the agent's request only the public key is
// taken, PKIX DER, which must be P-256.
func (i Issuer) Prepare(id ClusterID, bound string, clientKey []byte, now time.Time) (*Issued, error) {
	public, err := x509.ParsePKIXPublicKey(clientKey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if key, ok := public.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: want ECDSA P-256, got %T", ErrKey, public)
	}
	t, err := i.template(now)
	if err != nil {
		return nil, err
	}
	t.Subject = pkix.Name{CommonName: "convoy agent", SerialNumber: subjectSerial(bound, 0)}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	t.URIs = []*url.URL{id.URI(i.Hub)}
	return &Issued{Serial: t.SerialNumber.Text(16), NotAfter: t.NotAfter, bound: bound, template: t, public: public}, nil
}

// Number writes the renewal number into a prepared certificate, which is decided
// where it is recorded. 0, which is the default, is not written.
func (p *Issued) Number(renewal int64) {
	p.template.Subject.SerialNumber = subjectSerial(p.bound, renewal)
}

// Sign makes a prepared certificate, PEM.
func (i Issuer) Sign(p *Issued) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, p.template, i.CA, p.public, i.Signer)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Server makes a serving certificate of the hub for names, which may be IP
// addresses. The chain includes the CA, so that a pin can be checked.
func (i Issuer) Server(names []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make serving key: %w", err)
	}
	t, err := i.template(now)
	if err != nil {
		return nil, err
	}
	t.Subject = pkix.Name{CommonName: "convoy hub"}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, i.CA, key.Public(), i.Signer)
	if err != nil {
		return nil, fmt.Errorf("sign serving certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, i.CA.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

func (i Issuer) template(now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial: %w", err)
	}
	end := now.Add(CertificateTTL)
	if end.After(i.CA.NotAfter) {
		end = i.CA.NotAfter
	}
	return &x509.Certificate{
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		NotBefore:             now.Add(-CertificateBackdate),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}, nil
}
