// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// HTTP serves the repositories under a folder.
type HTTP struct {
	*httptest.Server
	// CA certificate of a TLS server, PEM.
	CA []byte

	mu       sync.Mutex
	requests []Request
	before   func(http.ResponseWriter, *http.Request) bool
}

// Request is what a server saw of one request.
type Request struct {
	Path          string
	Authorization string
}

// NewHTTPS starts a server with a certificate of an authority of its own.
func NewHTTPS(t testing.TB, root string) *HTTP {
	t.Helper()
	h := &HTTP{}
	h.Server = httptest.NewUnstartedServer(h.handler(t, root))
	var certificate tls.Certificate
	h.CA, certificate = authority(t)
	h.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// NewHTTP starts a server without TLS.
func NewHTTP(t testing.TB, root string) *HTTP {
	t.Helper()
	h := &HTTP{}
	h.Server = httptest.NewServer(h.handler(t, root))
	t.Cleanup(h.Close)
	return h
}

func (h *HTTP) handler(t testing.TB, root string) http.Handler {
	t.Helper()
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: path, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME=" + filepath.Dir(root)},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, Request{Path: r.URL.Path, Authorization: r.Header.Get("Authorization")})
		before := h.before
		h.mu.Unlock()
		if before != nil && !before(w, r) {
			return
		}
		backend.ServeHTTP(w, r)
	})
}

// Before sets a function that may answer a request itself and then returns false.
func (h *HTTP) Before(f func(http.ResponseWriter, *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = f
}

// RequireBasic lets only that user name and password in.
func (h *HTTP) RequireBasic(user, password string) {
	h.Before(func(w http.ResponseWriter, r *http.Request) bool {
		u, p, ok := r.BasicAuth()
		return admit(w, ok && u == user && p == password)
	})
}

// RequireBearer lets only that token in.
func (h *HTTP) RequireBearer(token string) {
	h.Before(func(w http.ResponseWriter, r *http.Request) bool {
		return admit(w, r.Header.Get("Authorization") == "Bearer "+token)
	})
}

// RequireCertificate lets only who shows a certificate with that name in.
func (h *HTTP) RequireCertificate(name string) {
	h.Before(func(w http.ResponseWriter, r *http.Request) bool {
		shown := r.TLS.PeerCertificates
		return admit(w, len(shown) > 0 && shown[0].Subject.CommonName == name)
	})
}

// ClientCertificate makes one with a key, PEM, signed by itself.
func ClientCertificate(t testing.TB, name string) (certificate, key []byte) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func admit(w http.ResponseWriter, ok bool) bool {
	if !ok {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}
	return ok
}

// Requests gives what was asked so far.
func (h *HTTP) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request{}, h.requests...)
}

// Uploads counts the packs that were asked for.
func (h *HTTP) Uploads() int {
	n := 0
	for _, request := range h.Requests() {
		if strings.HasSuffix(request.Path, "/git-upload-pack") {
			n++
		}
	}
	return n
}

// RepoURL of a repository.
func (h *HTTP) RepoURL(r *Repo) string { return h.URL + "/" + r.Name() }

// authority makes a CA and a server certificate of it for 127.0.0.1 and localhost.
func authority(t testing.TB) (ca []byte, server tls.Certificate) {
	t.Helper()
	now := time.Now()
	sign := func(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parentKey == nil {
			parentKey = key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "git test CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	rootDER, rootKey := sign(root, root, nil)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "git test server"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	leafDER, leafKey := sign(leaf, root, rootKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}), tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: leafKey}
}
