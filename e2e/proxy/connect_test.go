// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// What the proxy asks for. The password has signs that a URL must escape.
const (
	proxyUser     = "edge-site"
	proxyPassword = "hush/7fe2:a9"
	escaped       = "hush%2F7fe2%3Aa9"
	wrongPassword = "guess-5d1c"
)

// TestAnAgentBehindAnInspectingProxyAndSquid leads one agent through all that an
// HTTP proxy may be.
func TestAnAgentBehindAnInspectingProxyAndSquid(t *testing.T) {
	t.Parallel()
	ctx := within(t, patience)
	s := newSite(ctx, t, shared.secure, "quokka")
	m := newMiddle(ctx, t, s)
	through := func(scheme, user, port string) map[string]string {
		return map[string]string{"HTTPS_PROXY": scheme + "://" + user + net.JoinHostPort(m.address, port)}
	}

	if conn, err := s.net.dial(ctx, "tcp", net.JoinHostPort(s.hub.address, gatewayPort)); err == nil {
		conn.Close()
		t.Fatal("the agent's network reaches the hub without a proxy, so nothing here shows anything")
	}

	ca := m.inspector(ctx)
	inspected := exit{env: through("http", "", inspectorPort)}
	s.install(ctx, inspected)
	s.step("an inspector whose CA is not trusted is refused, and the log says what it is about", func(t *testing.T) {
		s.says(ctx, 0, "no session with the hub", "certificate outside the websocket: of ", "is trusted neither as the hub's, nor by the system, nor by --outer-ca-file")
		if n := s.sessions(ctx); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})

	inspected.outerCA = ca
	s.change(ctx, inspected)
	s.joined(ctx)
	a := s.release(ctx, "settings", settings("marked-plain-text-1"))
	a.ready(ctx, "")
	s.step("an inspector whose CA is trusted records nothing that is a secret", func(t *testing.T) {
		// It writes what is open when it ends.
		m.end(ctx)
		flows := []byte(m.read("flows"))
		for _, proof := range []string{"/v1/join", "/v1/session", "\x16\x03\x01", "\x17\x03\x03"} {
			if n := bytes.Count(flows, []byte(proof)); n == 0 {
				t.Errorf("%q is not in the recording, so this shows nothing", proof)
			}
		}
		wantNone(t, flows, secretsOf(t, s, "marked-plain-text", "settings", a.name))
	})

	m.squid(ctx, proxyUser, proxyPassword)
	s.step("squid lets an agent with the right password through", func(t *testing.T) {
		s.change(ctx, exit{env: through("http", proxyUser+":"+escaped+"@", plainProxyPort)})
		a.ready(ctx, a.push(ctx, settings("squid")))
		a.onEdge(ctx, "settings", "squid")
	})
	s.step("squid turns an agent with a wrong password away, and the log says so without it", func(t *testing.T) {
		from := s.change(ctx, exit{env: through("http", proxyUser+":"+wrongPassword+"@", plainProxyPort)})
		s.says(ctx, from, "no session with the hub", "Proxy Authentication Required")
	})
	s.step("a password that is not escaped makes no proxy URL, and is not shown", func(t *testing.T) {
		from := s.change(ctx, exit{env: through("http", proxyUser+":"+proxyPassword+"@", plainProxyPort)})
		s.says(ctx, from, "no session with the hub", "proxy")
	})
	s.step("squid over https with a CA that is not trusted is refused, and gets no password", func(t *testing.T) {
		from := s.change(ctx, exit{env: through("https", proxyUser+":"+escaped+"@", tlsProxyPort)})
		s.says(ctx, from, "no session with the hub", "certificate outside the websocket: of ", "is trusted neither as the hub's, nor by the system, nor by --outer-ca-file")
	})
	s.step("squid over https with its own CA", func(t *testing.T) {
		s.change(ctx, exit{env: through("https", proxyUser+":"+escaped+"@", tlsProxyPort), outerCA: shared.company.pem})
		a.ready(ctx, a.push(ctx, settings("squid-tls")))
		a.onEdge(ctx, "settings", "squid-tls")
	})
	s.step("squid is killed during a download, and the render arrives all the same", func(t *testing.T) {
		cutDownload(ctx, t, s, m.near, func() { m.crash(ctx); m.again(ctx) })
	})
	s.step("a gateway that NO_PROXY names is dialled directly", func(t *testing.T) {
		m.end(ctx)
		direct, err := newLink(ctx, s.net, s.hub.net)
		if err == nil {
			err = direct.route(ctx, s.hub.address)
		}
		if err != nil {
			t.Fatal(err)
		}
		env := through("http", "", plainProxyPort) // nobody listens there any more
		env["NO_PROXY"] = "example.test,198.18.0.0/24"
		s.change(ctx, exit{env: env})
		a.ready(ctx, a.push(ctx, settings("direct")))
		a.onEdge(ctx, "settings", "direct")
	})

	text := s.log()
	for _, password := range []string{"hush", "7fe2", wrongPassword} {
		if strings.Contains(text, password) {
			t.Errorf("the agent's log has the password %q", password)
		}
	}
	asked := m.read("access.log")
	for _, want := range []string{"TCP_DENIED/407", "TCP_TUNNEL/200", "CONNECT " + net.JoinHostPort(s.hub.address, gatewayPort), proxyUser} {
		if !strings.Contains(asked, want) {
			t.Errorf("squid's log does not say %q: %s", want, asked)
		}
	}
}

// cutDownload begins to deliver several MiB over a link that lets 8 Mbit/s through,
// cuts in the middle, and waits until all is there.
func cutDownload(ctx context.Context, t *testing.T, s *site, over *link, cut func()) {
	t.Helper()
	const count, size = 6, 700 << 10
	if err := over.narrow(ctx, "8mbit"); err != nil {
		t.Fatal(err)
	}
	before, err := s.metric(ctx, metricBytes)
	if err != nil {
		t.Fatal(err)
	}
	a := s.release(ctx, "bulk", bulk(count, size))
	var had float64
	s.poll(ctx, "a part of the render has come", func() error {
		now, err := s.metric(ctx, metricBytes)
		if had = now - before; err == nil && had < 256<<10 {
			err = fmt.Errorf("%.0f bytes have", had)
		}
		return err
	})
	if had >= count*size {
		t.Fatalf("%.0f bytes had come before the cut: the line is too fast for this test", had)
	}
	cut()
	began := time.Now()
	a.ready(ctx, "")
	t.Logf("cut after %.0f bytes; ready %s after that in session %d", had, time.Since(began).Round(time.Second), s.sessions(ctx))
}
