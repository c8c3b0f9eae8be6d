// SPDX-License-Identifier: Apache-2.0

package address

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// proxy is one that connects whoever asks, to one server whatever he asks for.
type proxy struct {
	address string
	code    int
	mu      sync.Mutex
	asked   []string
	auth    string
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func newProxy(t *testing.T, code int) *proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), code: code}
	var group sync.WaitGroup
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		group.Wait()
	})
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { p.serve(conn) })
		}
	})
	return p
}

func (p *proxy) serve(conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, request.Method+" "+request.Host)
	p.auth = request.Header.Get("Proxy-Authorization")
	p.mu.Unlock()
	answer := "HTTP/1.1 200 OK\r\n\r\nhello from behind"
	if p.code != http.StatusOK {
		answer = "HTTP/1.1 " + http.StatusText(p.code) + "\r\n\r\n"
		answer = strings.Replace(answer, http.StatusText(p.code), "403 "+http.StatusText(p.code), 1)
	}
	if _, err := io.WriteString(conn, answer); err != nil {
		return // the test looks at what it got
	}
}

func TestHTTPSGoesThroughTheOperatorsProxy(t *testing.T) {
	p := newProxy(t, http.StatusOK)
	policy := Policy{Proxy: Proxy{HTTPS: "http://me:secret@" + p.address}}
	conn, err := policy.DialTLS(t.Context(), "no-such-host.invalid:443")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// What comes after the proxy's answer is the server's.
	text, err := io.ReadAll(conn)
	if err != nil || string(text) != "hello from behind" {
		t.Errorf("got %q, %v", text, err)
	}
	if asked := p.requests(); len(asked) != 1 || asked[0] != "CONNECT no-such-host.invalid:443" || p.auth != "Basic bWU6c2VjcmV0" {
		t.Errorf("the proxy was asked for %v with %q", asked, p.auth)
	}
}

func TestWhatAPolicyDeniesAProxyIsNotAskedFor(t *testing.T) {
	p := newProxy(t, http.StatusOK)
	policy := Policy{Proxy: Proxy{HTTPS: "http://" + p.address}, Deny: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	for _, target := range []string{"127.0.0.1:443", "169.254.169.254:443", "localhost:443", "[::1]:443", "10.96.0.1:443", "[::ffff:127.0.0.1]:443"} {
		if _, err := policy.DialTLS(t.Context(), target); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v, want %v", target, err, ErrDenied)
		}
	}
	if asked := p.requests(); len(asked) != 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

func TestWhoIsExceptedIsReachedWithoutTheProxy(t *testing.T) {
	p, direct := newProxy(t, http.StatusOK), newProxy(t, http.StatusOK)
	host, _, err := net.SplitHostPort(direct.address)
	if err != nil {
		t.Fatal(err)
	}
	policy := Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Proxy: Proxy{HTTPS: "http://" + p.address, No: host}}
	conn, err := policy.DialTLS(t.Context(), direct.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if asked := p.requests(); len(asked) != 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
}

func TestAProxyThatRefusesIsNamedWithoutItsPassword(t *testing.T) {
	p := newProxy(t, http.StatusForbidden)
	policy := Policy{Proxy: Proxy{HTTPS: "http://me:secret@" + p.address}}
	_, err := policy.DialTLS(t.Context(), "no-such-host.invalid:443")
	var failed *ProxyError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "does not allow that host (403)") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
