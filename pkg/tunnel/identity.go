// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

const uriScheme = "convoy"

// ClusterID names a Cluster of a hub. UID alone decides; the names must fit it.
type ClusterID struct {
	Namespace string
	Name      string
	UID       string
}

// String is for logs: namespace/name.
func (c ClusterID) String() string { return c.Namespace + "/" + c.Name }

// URI is the identity that an agent's certificate carries:
// convoy://<hub id>/<namespace>/<name>/<Cluster UID>.
func (c ClusterID) URI(hub string) *url.URL {
	return &url.URL{Scheme: uriScheme, Host: hub, Path: "/" + c.Namespace + "/" + c.Name + "/" + c.UID}
}

// ParseURI reads what URI made, for this hub only.
func ParseURI(u *url.URL, hub string) (ClusterID, error) {
	parts := strings.Split(u.Path, "/")
	if u.Scheme != uriScheme || u.Host != hub || len(parts) != 4 || parts[0] != "" {
		return ClusterID{}, fmt.Errorf("%w: %s", ErrIdentity, u)
	}
	id := ClusterID{Namespace: parts[1], Name: parts[2], UID: parts[3]}
	if id.Namespace == "" || id.Name == "" || id.UID == "" || id.URI(hub).String() != u.String() {
		return ClusterID{}, fmt.Errorf("%w: %s", ErrIdentity, u)
	}
	return id, nil
}

// subjectSerial is the serial number of a certificate's subject: the fingerprint
// of the bound key, and after a dot how many certificates the join and its key
// had made up to this one. A certificate without the number has 0.
func subjectSerial(bound string, renewal int64) string {
	if renewal <= 0 {
		return bound
	}
	return bound + "." + strconv.FormatInt(renewal, 10)
}

// PeerRenewal is the renewal number of a verified agent certificate.
func PeerRenewal(cert *x509.Certificate) (int64, error) {
	_, number, ok := strings.Cut(cert.Subject.SerialNumber, ".")
	if !ok {
		return 0, nil
	}
	renewal, err := strconv.ParseInt(number, 10, 64)
	if err != nil || renewal <= 0 || strconv.FormatInt(renewal, 10) != number {
		return 0, fmt.Errorf("%w: renewal number %q", ErrIdentity, number)
	}
	return renewal, nil
}

// PeerIdentity is what a verified agent certificate says: the Cluster, and the
// fingerprint of the bound key that joined (see KeyID).
func PeerIdentity(cert *x509.Certificate, hub string) (ClusterID, string, error) {
	if len(cert.URIs) != 1 || cert.IsCA {
		return ClusterID{}, "", fmt.Errorf("%w: %d URIs", ErrIdentity, len(cert.URIs))
	}
	if len(cert.ExtKeyUsage) != 1 || cert.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		return ClusterID{}, "", fmt.Errorf("%w: not for client authentication alone", ErrIdentity)
	}
	if _, err := PeerRenewal(cert); err != nil {
		return ClusterID{}, "", err
	}
	bound, _, _ := strings.Cut(cert.Subject.SerialNumber, ".")
	id, err := ParseURI(cert.URIs[0], hub)
	return id, bound, err
}

// HubServerName is the name in the hub's certificate inside the websocket. It is
// not resolvable: what is dialled and who answers are different questions.
func HubServerName(hub string) string { return hub + ".hub.convoy.internal" }

// KeyID names a public key: the first 16 hex digits of its SHA-256.
func KeyID(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// CAPin is the SHA-256 of a certificate's public key (SPKI), "sha256:<hex>".
func CAPin(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}
