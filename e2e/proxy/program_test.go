// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumodo.io/convoy/e2e/harness"
)

// Ports of the middle.
const (
	plainProxyPort = "3128"
	tlsProxyPort   = "3129"
	inspectorPort  = "8080"
	balancerPort   = "443"
	tapPort        = "9000"
	gatewayPort    = "8443"
)

// authority signs the certificates of proxies and balancers, as a company's own
// does. Nobody trusts it but who was told to.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("company of a test")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, err
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(0, 0, 7),
	}
}

// serving gives key and certificate of a server with that address, in one PEM.
func (a *authority) serving(address string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(address)
	template.IPAddresses = []net.IP{net.ParseIP(address)}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})...), err
}

// middle is what stands between an agent and a hub: a network with one program
// at a time. It passes no packets on, only what the program does.
type middle struct {
	*network
	site *site
	hub  *center
	dir  string
	// near leads to the agent, which sees address.
	near    *link
	address string
	process *harness.Process
	// listens is where the program of process does.
	listens []string
	program harness.Program
}

// newMiddle puts a middle between a site and a hub.
func newMiddle(ctx context.Context, t *testing.T, s *site) *middle {
	t.Helper()
	m := &middle{site: s, hub: s.hub, dir: filepath.Join(shared.dir, s.name)}
	if err := os.Mkdir(m.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m.network = shared.network(ctx, t, "middle of "+s.name)
	var err error
	if m.near, err = newLink(ctx, s.net, m.network); err != nil {
		t.Fatal(err)
	}
	m.address = m.near.bAddr
	far, err := newLink(ctx, m.network, m.hub.net)
	if err == nil {
		err = far.route(ctx, m.hub.address)
	}
	if err != nil {
		t.Fatal(err)
	}
	cert, err := shared.company.serving(m.address)
	if err != nil {
		t.Fatal(err)
	}
	m.write("serving.pem", cert, 0o644)
	m.write("hub-ca.pem", m.hub.ca, 0o644)
	return m
}

func (m *middle) file(name string) string { return filepath.Join(m.dir, name) }

func (m *middle) write(name string, content []byte, mode os.FileMode) {
	m.site.t.Helper()
	if err := os.WriteFile(m.file(name), content, mode); err != nil {
		m.site.t.Fatal(err)
	}
}

func (m *middle) read(name string) string {
	m.site.t.Helper()
	raw, err := os.ReadFile(m.file(name))
	if err != nil {
		m.site.t.Fatal(err)
	}
	return string(raw)
}

// begin starts the program and waits until it listens.
func (m *middle) begin(ctx context.Context, p harness.Program, ports ...string) {
	m.site.t.Helper()
	p.Dir, p.Log = m.dir, m.file(p.Name+".out")
	m.program, m.listens = p, nil
	for _, port := range ports {
		m.listens = append(m.listens, net.JoinHostPort(m.address, port))
	}
	m.again(ctx)
}

// again starts the program that was there last.
func (m *middle) again(ctx context.Context) {
	m.site.t.Helper()
	var err error
	if m.process, err = m.start(ctx, shared.sup, m.program); err != nil {
		m.site.t.Fatal(err)
	}
	for _, address := range m.listens {
		if err := m.answers(ctx, address); err != nil {
			m.site.t.Fatalf("%v: %s", err, m.read(m.program.Name+".out"))
		}
	}
}

// end stops the program.
func (m *middle) end(ctx context.Context) {
	m.site.t.Helper()
	if _, err := m.process.Stop(ctx); err != nil {
		m.site.t.Fatal(err)
	}
}

// crash kills the program, and with it its connections.
func (m *middle) crash(ctx context.Context) {
	m.site.t.Helper()
	if err := m.process.Kill9(ctx); err != nil {
		m.site.t.Fatal(err)
	}
}

// squid starts an HTTP proxy that lets only this user through, to gateways only,
// in the clear and over TLS.
func (m *middle) squid(ctx context.Context, name, password string) {
	m.site.t.Helper()
	hash := exec.CommandContext(ctx, "openssl", "passwd", "-apr1", "-stdin")
	hash.Stdin = strings.NewReader(password)
	out, err := hash.Output()
	if err != nil {
		m.site.t.Fatal(err)
	}
	m.write("passwd", fmt.Appendf(nil, "%s:%s\n", name, strings.TrimSpace(string(out))), 0o644)
	m.write("squid.conf", fmt.Appendf(nil, `
http_port %[1]s:%[3]s
https_port %[1]s:%[4]s tls-cert=%[2]s/serving.pem
auth_param basic program /usr/lib/squid/basic_ncsa_auth %[2]s/passwd
auth_param basic children 2
auth_param basic realm convoy test
acl known proxy_auth REQUIRED
acl gateway port %[5]s
http_access deny !gateway
http_access allow CONNECT known
http_access deny all
access_log stdio:%[2]s/access.log
cache_log %[2]s/cache.log
pid_filename none
coredump_dir none
cache deny all
pinger_enable off
max_filedescriptors 1024
shutdown_lifetime 1 seconds
logfile_rotate 0
visible_hostname squid.test
`, m.address, m.dir, plainProxyPort, tlsProxyPort, gatewayPort), 0o644)
	// Squid writes its logs as the user that it becomes.
	proxy, err := user.Lookup("proxy")
	if err != nil {
		m.site.t.Fatal(err)
	}
	uid, err := strconv.Atoi(proxy.Uid)
	if err == nil {
		err = os.Chown(m.dir, uid, -1)
	}
	if err != nil {
		m.site.t.Fatal(err)
	}
	m.begin(ctx, harness.Program{Name: "squid", Path: "squid", Args: []string{"-N", "-f", m.file("squid.conf")}}, plainProxyPort, tlsProxyPort)
}

// upstream is where a balancer leads to.
type upstream struct {
	// plain: the gateway has no TLS of its own. Otherwise TLS is made again, and the
	// gateway's certificate verified.
	plain bool
	// address with port.
	address string
}

// nginx starts nginx as a balancer that ends TLS and cuts what is idle.
func (m *middle) nginx(ctx context.Context, to upstream, idle time.Duration) {
	m.site.t.Helper()
	m.nginxConfig(to, idle)
	m.begin(ctx, harness.Program{Name: "nginx", Path: "nginx", Args: []string{"-p", m.dir, "-c", m.file("nginx.conf")}}, balancerPort)
}

func (m *middle) nginxConfig(to upstream, idle time.Duration) {
	m.site.t.Helper()
	scheme, verify := "http", ""
	if !to.plain {
		scheme = "https"
		verify = "proxy_ssl_verify on; proxy_ssl_trusted_certificate hub-ca.pem; proxy_ssl_name convoy-gateway.convoy-system.svc; proxy_ssl_server_name on;"
	}
	m.write("nginx.conf", fmt.Appendf(nil, `
daemon off;
user root;
worker_processes 1;
worker_shutdown_timeout 2s;
pid nginx.pid;
error_log error.log info;
events { worker_connections 64; }
http {
  access_log access.log;
  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
  server {
    listen %[1]s:%[2]s ssl;
    ssl_certificate serving.pem;
    ssl_certificate_key serving.pem;
    location / {
      proxy_pass %[3]s://%[4]s;
      %[5]s
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
      proxy_read_timeout %[6]ds;
      proxy_send_timeout %[6]ds;
    }
  }
}
`, m.address, balancerPort, scheme, to.address, verify, int(idle.Seconds())), 0o644)
}

// reload makes nginx read its configuration again.
func (m *middle) reload(ctx context.Context) {
	m.site.t.Helper()
	if err := m.process.Signal(ctx, syscall.SIGHUP); err != nil {
		m.site.t.Fatal(err)
	}
}

// haproxy starts HAProxy as a balancer that ends TLS.
func (m *middle) haproxy(ctx context.Context, to upstream, idle time.Duration) {
	m.site.t.Helper()
	verify := ""
	if !to.plain {
		verify = "ssl verify required ca-file hub-ca.pem sni str(convoy-gateway.convoy-system.svc) verifyhost convoy-gateway.convoy-system.svc"
	}
	m.write("haproxy.cfg", fmt.Appendf(nil, `
global
  log stdout format raw local0
defaults
  mode http
  log global
  option httplog
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout tunnel %[5]ds
frontend agents
  bind %[1]s:%[2]s ssl crt serving.pem
  default_backend hub
backend hub
  server gateway %[3]s %[4]s
`, m.address, balancerPort, to.address, verify, int(idle.Seconds())), 0o644)
	m.begin(ctx, harness.Program{Name: "haproxy", Path: "haproxy", Args: []string{"-db", "-C", m.dir, "-f", "haproxy.cfg"}}, balancerPort)
}

// inspector starts mitmproxy, which makes a certificate for whatever is asked
// for and records what it sees. Its CA is returned.
func (m *middle) inspector(ctx context.Context) []byte {
	m.site.t.Helper()
	m.begin(ctx, harness.Program{
		Name: "mitmdump", Path: "mitmdump",
		Args: []string{
			"--mode", "regular", "--listen-host", m.address, "--listen-port", inspectorPort,
			"--set", "confdir=" + m.file("mitmproxy"), "--set", "ssl_verify_upstream_trusted_ca=" + m.file("hub-ca.pem"),
			"-w", m.file("flows"),
		},
	}, inspectorPort)
	return []byte(m.read("mitmproxy/mitmproxy-ca-cert.pem"))
}

// balanced is the URL of a gateway behind the balancer.
func (m *middle) balanced() string { return "wss://" + net.JoinHostPort(m.address, balancerPort) }

// gateway is the upstream of the hub itself.
func (m *middle) gateway() upstream {
	return upstream{plain: m.hub.plain, address: net.JoinHostPort(m.hub.address, gatewayPort)}
}
