// SPDX-License-Identifier: Apache-2.0

package setup_test

import (
	"context"
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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"

	"kumodo.io/convoy/e2e/harness"
)

// etcd is one that takes clients with a certificate of its CA only.
type etcd struct {
	dir, url string
	config   *tls.Config
}

func (e *etcd) file(name string) string { return filepath.Join(e.dir, name) }

// startEtcd starts one and waits until it answers.
func startEtcd(ctx context.Context, plane *harness.Plane, dir string) (*etcd, error) {
	port, err := harness.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	e := &etcd{dir: filepath.Join(dir, "pki"), url: "https://127.0.0.1:" + strconv.Itoa(port)}
	if err := e.certificates(); err != nil {
		return nil, err
	}
	bin, err := harness.Binaries(ctx)
	if err != nil {
		return nil, err
	}
	_, err = plane.Run(ctx, harness.Program{
		Name: "external-etcd", Path: bin.Path("etcd"), Log: filepath.Join(dir, "etcd.log"),
		Args: []string{
			"--name=external", "--data-dir=" + filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + e.url, "--advertise-client-urls=" + e.url,
			"--listen-peer-urls=unix://" + filepath.Join(dir, "peer.sock"), "--initial-advertise-peer-urls=unix://" + filepath.Join(dir, "peer.sock"),
			"--initial-cluster=external=unix://" + filepath.Join(dir, "peer.sock"),
			"--cert-file=" + e.file("server.crt"), "--key-file=" + e.file("server.key"),
			"--client-cert-auth", "--trusted-ca-file=" + e.file("ca.crt"),
		},
	})
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := e.keys(ctx)
		return err == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the external etcd: %w", err)
	}
	return e, nil
}

// keys lists all keys, as the hub's client may.
func (e *etcd) keys(ctx context.Context) ([]string, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.url}, TLS: e.config, DialTimeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := client.Get(ctx, "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, one := range answer.Kvs {
		keys = append(keys, string(one.Key))
	}
	return keys, nil
}

// certificates makes a CA, etcd's certificate and the hub's.
func (e *etcd) certificates() error {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return err
	}
	now := time.Now()
	sign := func(name string, template *x509.Certificate, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		template.SerialNumber = big.NewInt(now.UnixNano())
		template.Subject = pkix.Name{CommonName: name}
		template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(time.Hour)
		if parent == nil {
			parent, signer = template, key
		}
		raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			return nil, nil, err
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, nil, err
		}
		for suffix, block := range map[string]*pem.Block{"crt": {Type: "CERTIFICATE", Bytes: raw}, "key": {Type: "PRIVATE KEY", Bytes: private}} {
			if err := os.WriteFile(e.file(name+"."+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
				return nil, nil, err
			}
		}
		parsed, err := x509.ParseCertificate(raw)
		return parsed, key, err
	}
	ca, signer, err := sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	if err != nil {
		return err
	}
	// etcd's own gateway connects to it with the server's certificate.
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	server := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: both, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}}
	if _, _, err := sign("server", server, ca, signer); err != nil {
		return err
	}
	client := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, _, err := sign("hub", client, ca, signer); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(e.file("hub.crt"), e.file("hub.key"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	e.config = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return nil
}

func TestAHubOnAnExternalEtcdKeepsAllItKnowsThere(t *testing.T) {
	ctx := deadline(t)
	if args := world.hub.Pod.Args(); slices.Contains(args, "--embedded-etcd") || !slices.Contains(args, "--etcd-servers="+world.etcd.url) {
		t.Fatalf("the hub runs with %v", args)
	}
	keys, err := world.etcd.keys(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, key := range keys {
		found = found || strings.Contains(key, "clusters/"+team+"/"+edge)
		// The library's own note of its compaction lies at the top.
		if !strings.HasPrefix(key, "/registry/convoy.kumodo.io/") && key != "compact_rev_key" {
			t.Errorf("key %s is not under /registry/convoy.kumodo.io", key)
		}
	}
	if !found {
		t.Errorf("Cluster %s/%s is not in it: %v", team, edge, keys)
	}
	stranger := &etcd{url: world.etcd.url, config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: world.etcd.config.RootCAs}}
	if _, err := stranger.keys(ctx); err == nil {
		t.Error("this etcd answers clients without a certificate: the test shows nothing")
	}
}
