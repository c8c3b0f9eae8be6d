// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// proxy is an HTTP proxy that only knows CONNECT, wants a password, and keeps
// all that goes through it.
type proxy struct {
	target string // dialled whatever is asked for

	mu    sync.Mutex
	asked []string
	seen  bytes.Buffer
	open  sync.WaitGroup
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("edge:s3cret"))
	if r.Method != http.MethodConnect || r.Header.Get("Proxy-Authorization") != want {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r.Host)
	p.mu.Unlock()
	up, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.target)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	down, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if _, err := io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	p.open.Go(func() { p.copy(up, down) })
	p.open.Go(func() { p.copy(down, up) })
}

func (p *proxy) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			if errors.Join(to.Close(), from.Close()) != nil {
				return
			}
			return
		}
	}
}

// behind gives an agent the name of a gateway that only the proxy can reach.
func behind(t *testing.T, r *rig) (p *proxy, proxyURL string) {
	t.Helper()
	p = &proxy{target: r.gateway.Addr().String()}
	server := httptest.NewServer(p)
	t.Cleanup(func() { server.Close(); p.open.Wait() })
	r.token.Gateway = "wss://hub.convoy.example:8443"
	return p, strings.Replace(server.URL, "http://", "http://edge:s3cret@", 1)
}

func TestAnAgentGoesThroughAProxyThatWantsAPassword(t *testing.T) {
	r := setUp(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Names = []string{"hub.convoy.example"} })
	p, url := behind(t, r)
	t.Setenv("HTTPS_PROXY", url)
	t.Setenv("NO_PROXY", "")
	r.order(t, "a", 1)
	stop := r.run(t)
	r.engine.wait(t, "an order", func() bool { return r.engine.have["a"] == 1 })
	stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, host := range p.asked {
		if host != "hub.convoy.example:8443" {
			t.Errorf("the proxy was asked for %s", host)
		}
	}
	if len(p.asked) != 2 {
		t.Errorf("%d connections, want one to join and one for the session", len(p.asked))
	}
	text, err := tunnel.EncodeToken(r.token)
	if err != nil {
		t.Fatal(err)
	}
	for what, secret := range map[string][]byte{"seed": r.token.Seed, "token": []byte(text), "seed in base64": []byte(base64.StdEncoding.EncodeToString(r.token.Seed))} {
		if bytes.Contains(p.seen.Bytes(), secret) {
			t.Errorf("the %s went over the wire", what)
		}
	}
}

func TestProxySettingsAreReadAgainOnEachDial(t *testing.T) {
	r := setUp(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Names = []string{"hub.convoy.example"} })
	_, url := behind(t, r)
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	r.order(t, "a", 1)
	tried := make(chan struct{}, 1)
	hello := r.options.Token
	r.options.Token = func(ctx context.Context) (string, error) {
		select {
		case tried <- struct{}{}:
		default:
		}
		return hello(ctx)
	}
	r.run(t)
	<-tried
	t.Setenv("HTTPS_PROXY", url)
	r.engine.wait(t, "an order through the proxy that was set later", func() bool { return r.engine.have["a"] == 1 })
}

// inspector is what a TLS-inspecting proxy presents.
func inspector(t *testing.T, name string) (ca []byte, cert tls.Certificate) {
	t.Helper()
	root, rootKey, err := gatewaytest.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, root, key.Public(), rootKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), tls.Certificate{Certificate: [][]byte{der, root.Raw}, PrivateKey: key}
}

// terminate ends TLS before a gateway, as load balancers and inspectors do, and
// returns its address.
func terminate(t *testing.T, cert tls.Certificate, target string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", target)
			if err != nil {
				t.Error(err)
				return
			}
			p.open.Go(func() { p.copy(up, down) })
			p.open.Go(func() { p.copy(down, up) })
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-done
		p.open.Wait()
	})
	return l.Addr().String()
}

func TestTheIdentitySurvivesSomebodyWhoEndsTLSInTheMiddle(t *testing.T) {
	r := setUp(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Plain = true })
	ca, cert := inspector(t, "localhost")
	_, port, err := net.SplitHostPort(terminate(t, cert, r.gateway.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	r.token.Gateway = "wss://localhost:" + port
	file := filepath.Join(t.TempDir(), "ca.pem")
	r.options.OuterCAFile = file
	r.order(t, "a", 1)

	t.Run("a CA file that is missing fails closed", func(t *testing.T) {
		stop := r.run(t)
		sees(t, r, 3)
		stop()
	})
	other, _ := inspector(t, "localhost")
	if err := os.WriteFile(file, other, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("a CA that is not the inspector's", func(t *testing.T) {
		stop := r.run(t)
		sees(t, r, 3)
		stop()
	})
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(t)
	r.engine.wait(t, "an order through the inspector", func() bool { return r.engine.have["a"] == 1 })
}

// sees waits for so many dials that come to nothing.
func sees(t *testing.T, r *rig, dials int) {
	t.Helper()
	for range dials {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			return
		}
	}
	if r.link.Connected() || r.store.get().Joined() {
		t.Error("connected all the same")
	}
}

func TestAHubOfAnotherCAIsRefusedEvenWithACertificateThatTheSystemTrusts(t *testing.T) {
	r := setUp(t, func(_ *gatewaytest.Hub, o *gateway.Options) { o.Plain = true })
	impostor, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	o := impostor.Options()
	o.Plain, o.HubID = true, r.ID
	g, _, stop, err := gatewaytest.Start(r.ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	ca, cert := inspector(t, "localhost")
	_, port, err := net.SplitHostPort(terminate(t, cert, g.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	r.options.OuterCAFile = file // stands for the system's roots
	r.token.Gateway = "wss://localhost:" + port
	r.run(t)
	sees(t, r, 10)
	if n := g.Sessions().Len(); n != 0 {
		t.Errorf("%d sessions with the impostor", n)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := link.New(link.Options{}); !errors.Is(err, link.ErrOptions) {
		t.Errorf("got %v", err)
	}
}
