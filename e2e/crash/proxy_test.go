// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// counter stands between one agent and its API server and counts the agent's calls. At
// the n-th it kills the agent: before the call is forwarded, or after it was answered
// and before the agent gets the answer.
type counter struct {
	server   *http.Server
	listener net.Listener
	done     chan error
	ca       []byte

	mu     sync.Mutex
	n      int // calls since arm
	at     int // the call to kill at, 0 for none
	after  bool
	kill   func() error
	killed chan struct{} // closed when the agent was killed; of this arm
	failed error
	last   time.Time
	calls  []string
}

var errKilled = errors.New("the caller was killed")

// newCounter forwards to the API server with the rights of config.
func newCounter(ctx context.Context, config *rest.Config) (*counter, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	upstream, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	certificate, ca, err := certificate()
	if err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	c := &counter{listener: listener, ca: ca, done: make(chan error, 1), killed: make(chan struct{})}
	quietly := log.New(io.Discard, "", 0) // connections end in mid-answer on purpose
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Header.Del("Authorization")
		},
		Transport: countingTransport{c, transport}, FlushInterval: -1, ErrorLog: quietly,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	c.server = &http.Server{
		Handler: proxy, ReadHeaderTimeout: time.Minute, ErrorLog: quietly,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	go func() { c.done <- c.server.ServeTLS(listener, "", "") }()
	return c, nil
}

type countingTransport struct {
	*counter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	mine, after := t.count(r)
	if mine && !after {
		return nil, t.strike()
	}
	response, err := t.next.RoundTrip(r)
	if mine {
		err = errors.Join(err, t.strike())
		if response != nil {
			err = errors.Join(err, response.Body.Close())
		}
		return nil, err
	}
	return response, err
}

// count says whether this call is the one.
func (c *counter) count(r *http.Request) (mine, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.last = time.Now()
	c.calls = append(c.calls, r.Method+" "+r.URL.Path)
	return c.n == c.at, c.after
}

// strike kills the agent and gives what its call gets.
func (c *counter) strike() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.kill(); err != nil {
		c.failed = err
	}
	close(c.killed)
	return errKilled
}

// arm begins to count anew. n is 0 for a run that nothing disturbs.
func (c *counter) arm(n int, after bool, kill func() error) (killed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.at, c.after, c.kill, c.killed, c.last, c.calls = 0, n, after, kill, make(chan struct{}), time.Now(), nil
	return c.killed
}

// counted gives the calls since arm and when the last was.
func (c *counter) counted() (n int, last time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, c.last, c.failed
}

// kubeconfig writes one that leads through the counter.
func (c *counter) kubeconfig(path string) error {
	config := api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: "https://" + c.listener.Addr().String(), CertificateAuthorityData: c.ca}},
		AuthInfos:      map[string]*api.AuthInfo{"c": {}},
		Contexts:       map[string]*api.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		CurrentContext: "c",
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return os.Chmod(path, 0o600)
}

func (c *counter) close() error {
	err := c.server.Close()
	if ended := <-c.done; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// certificate for loopback, which is its own CA.
func certificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "counter"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
