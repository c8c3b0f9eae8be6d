// SPDX-License-Identifier: Apache-2.0

package main

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
	"encoding/binary"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kumodo.io/convoy/agent/link"
	"kumodo.io/convoy/hub/gateway/gatewaytest"
	"kumodo.io/convoy/pkg/tunnel"
)

// recorder ends TLS before a gateway, as load balancers and inspecting proxies do,
// and keeps all that it then sees, in both directions.
type recorder struct {
	listener net.Listener
	target   string
	open     sync.WaitGroup

	mu    sync.Mutex
	flows []*flow
}

// flow is one direction of one connection.
type flow struct {
	mu     sync.Mutex
	seen   bytes.Buffer
	client bool // from the client, whose frames are masked
}

func (f *flow) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.Write(p)
}

func record(t *testing.T, cert tls.Certificate, target string) *recorder {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{listener: l, target: target}
	r.open.Go(func() {
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
			r.pass(up, down, true)
			r.pass(down, up, false)
		}
	})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		r.open.Wait()
	})
	return r
}

func (r *recorder) pass(to, from net.Conn, client bool) {
	f := &flow{client: client}
	r.mu.Lock()
	r.flows = append(r.flows, f)
	r.mu.Unlock()
	r.open.Go(func() {
		defer to.Close()
		defer from.Close()
		if _, err := io.Copy(to, io.TeeReader(from, f)); err != nil {
			return // one of the ends has gone
		}
	})
}

// seen is all that was recorded: as it came, and what the websocket's frames carry
// once their masks are taken off.
func (r *recorder) seen() (raw, inside []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.flows {
		f.mu.Lock()
		raw = append(raw, f.seen.Bytes()...)
		if _, frames, ok := bytes.Cut(f.seen.Bytes(), []byte("\r\n\r\n")); ok {
			inside = append(inside, payloads(frames)...)
		}
		f.mu.Unlock()
	}
	return raw, inside
}

// payloads of a run of websocket frames.
func payloads(frames []byte) []byte {
	var out []byte
	for len(frames) >= 2 {
		masked, length, head := frames[1]&0x80 != 0, uint64(frames[1]&0x7f), 2
		switch length {
		case 126:
			if len(frames) < 4 {
				return out
			}
			length, head = uint64(binary.BigEndian.Uint16(frames[2:])), 4
		case 127:
			if len(frames) < 10 {
				return out
			}
			length, head = binary.BigEndian.Uint64(frames[2:]), 10
		}
		var mask [4]byte
		if masked {
			if len(frames) < head+4 {
				return out
			}
			head += copy(mask[:], frames[head:])
		}
		if uint64(len(frames)-head) < length {
			return out
		}
		for i, b := range frames[head : uint64(head)+length] {
			out = append(out, b^mask[i%4])
		}
		frames = frames[uint64(head)+length:]
	}
	return out
}

// inspecting is a certificate for localhost and the file with its CA.
func inspecting(t *testing.T) (tls.Certificate, string) {
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
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "proxy"}, DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, root, key.Public(), rootKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der, root.Raw}, PrivateKey: key}, file
}

func TestAProxyThatEndsTLSAndRecordsSeesNoTokenNoNameAndNoManifest(t *testing.T) {
	hub, err := gatewaytest.NewHub()
	if err != nil {
		t.Fatal(err)
	}
	o := hub.Options()
	o.Plain = true
	g, _, stop, err := gatewaytest.Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	cert, caFile := inspecting(t)
	proxy := record(t, cert, g.Addr().String())
	_, port, err := net.SplitHostPort(proxy.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	id, token, err := hub.AddCluster("tenant-namespace", "cluster-with-a-name", "wss://localhost:"+port, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	// Short, so that nothing packs it beyond recognition.
	manifest := "password-in-a-manifest"
	layer, sealed := hub.AddBlob([]byte(manifest)), hub.AddBlob([]byte("sealed-"+manifest))
	if err := hub.Order(id.UID, "release-with-a-name", 7, &layer, &sealed); err != nil {
		t.Fatal(err)
	}
	text, err := tunnel.EncodeToken(token)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	e := newEngine(ctx, &stats{}, 0, true)
	quick := link.QuickBackoff()
	store := &identities{}
	l, err := link.New(link.Options{
		Engine: e, Reporting: e, Identity: store, Token: func(context.Context) (string, error) { return text, nil },
		Hello: func(context.Context) (tunnel.Hello, error) {
			return tunnel.Hello{AgentVersion: "agent-version-word", KubernetesVersion: "v1.37.2", TargetUID: "target-uid-word"}, nil
		},
		OuterCAFile: caFile, Backoff: &quick,
	})
	if err != nil {
		t.Fatal(err)
	}
	e.link = l
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	wait, end := context.WithTimeout(ctx, time.Minute)
	defer end()
	if _, err := hub.Report(wait, "release-with-a-name", func(r tunnel.Report) bool { return r.Settled }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	e.close()
	agent, err := store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	raw, inside := proxy.seen()
	// It does record, and it does look into the frames: what is in the clear is there.
	for _, clear := range []string{"GET " + tunnel.SessionPath, "GET " + tunnel.JoinPath, "Upgrade: websocket", "101 Switching Protocols"} {
		if !bytes.Contains(raw, []byte(clear)) {
			t.Errorf("the recorder did not see %q: it proves nothing", clear)
		}
	}
	for _, clear := range []string{"convoy-join.v1", "convoy-session.v1"} { // protocols of the TLS inside, offered by the client
		if !bytes.Contains(inside, []byte(clear)) {
			t.Errorf("the recorder did not see %q inside the frames: it proves nothing", clear)
		}
	}
	agentCert, _ := pem.Decode(agent.Certificate)
	if agentCert == nil {
		t.Fatal("the agent has no certificate")
	}
	secrets := map[string][]byte{
		"token": []byte(text), "seed": token.Seed, "seed as text": []byte(base64.StdEncoding.EncodeToString(token.Seed)),
		"token's public key": token.PublicKey(), "pin": []byte(token.CAPin),
		"Cluster UID": []byte(id.UID), "namespace": []byte(id.Namespace), "name": []byte(id.Name), "hub id": []byte(hub.ID),
		"name in the hub's certificate": []byte(tunnel.HubServerName(hub.ID)), "subject": []byte("convoy agent"), "scheme": []byte("convoy://"),
		"certificate": agentCert.Bytes, "manifest": []byte(manifest), "release": []byte("release-with-a-name"), "digest": []byte(layer.Digest),
		"version": []byte("agent-version-word"), "target": []byte("target-uid-word"), "a path": []byte("/v1/hello"),
	}
	for what, secret := range secrets {
		if bytes.Contains(raw, secret) || bytes.Contains(inside, secret) {
			t.Errorf("the proxy saw the %s", what)
		}
	}
	if strings.Contains(string(raw), "Authorization") {
		t.Error("the proxy saw an Authorization header")
	}
}
