// SPDX-License-Identifier: Apache-2.0

// Package registry runs a real OCI registry on loopback, with TLS and passwords: what
// the first step (fetch) and the third (store) of the flow source -> render -> store
// -> deliver -> apply -> observe -> report talk to when they talk to a registry. The
// program is the one of the Distribution project, built from source in a module of
// its own.
package registry

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"kumodo.io/convoy/e2e/harness"
)

// User and Password that the registry wants.
const (
	User     = "convoy"
	Password = "a-password-of-the-test"

	startTimeout = time.Minute
	readyPoll    = 50 * time.Millisecond
)

// Options of a registry.
type Options struct {
	// Name tells several in one folder apart.
	Name string
	// KeepAll forbids deletion.
	KeepAll bool
	// Plain serves without TLS.
	Plain bool
	// Program to run in place of ours: another release of the same project, whose
	// first argument is what it has to do.
	Program string
}

// Registry is one that runs.
type Registry struct {
	// Host and port.
	Host string
	// CA in PEM, and the file that has it.
	CA     []byte
	CAFile string
	// DockerConfig is a file with the credentials.
	DockerConfig string
	scheme       string
	process      *harness.Process
}

// Start runs a registry until it is stopped, or its supervisor ends. Its files are in
// a folder of dir.
func Start(ctx context.Context, supervisor *harness.Supervisor, dir string, o Options) (*Registry, error) {
	program, args := o.Program, []string{"serve"}
	if program == "" {
		built, err := Program(ctx)
		if err != nil {
			return nil, err
		}
		program, args = built, nil
	}
	dir = filepath.Join(dir, "registry-"+o.Name)
	if err := os.MkdirAll(filepath.Join(dir, "storage"), 0o700); err != nil {
		return nil, err
	}
	port, err := harness.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	r := &Registry{Host: fmt.Sprintf("127.0.0.1:%d", port), CAFile: filepath.Join(dir, "ca.crt"), DockerConfig: filepath.Join(dir, "config.json"), scheme: "https"}
	if r.CA, err = writeCertificate(r.CAFile, filepath.Join(dir, "tls.key")); err != nil {
		return nil, err
	}
	config, err := r.configure(dir, o)
	if err != nil {
		return nil, err
	}
	r.process, err = supervisor.Start(ctx, harness.Program{
		Name: "registry-" + o.Name, Path: program, Args: append(args, config), Dir: dir, Env: []string{"OTEL_TRACES_EXPORTER=none"},
	})
	if err != nil {
		return nil, err
	}
	return r, r.waitReady(ctx)
}

// Stop ends the registry.
func (r *Registry) Stop(ctx context.Context) error {
	_, err := r.process.Stop(ctx)
	return err
}

// configure writes the registry's configuration and what it names.
func (r *Registry) configure(dir string, o Options) (string, error) {
	server := map[string]any{"addr": r.Host, "secret": "of-the-test"}
	if o.Plain {
		r.scheme = "http"
	} else {
		server["tls"] = map[string]any{"certificate": r.CAFile, "key": filepath.Join(dir, "tls.key")}
	}
	config := map[string]any{
		"version": "0.1", "log": map[string]any{"level": "warn", "accesslog": map[string]any{"disabled": true}},
		"storage": map[string]any{"filesystem": map[string]any{"rootdirectory": filepath.Join(dir, "storage")}, "delete": map[string]any{"enabled": !o.KeepAll}},
		"http":    server,
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(Password), bcrypt.MinCost)
	if err != nil {
		return "", err
	}
	passwords := filepath.Join(dir, "htpasswd")
	if err := os.WriteFile(passwords, fmt.Appendf(nil, "%s:%s\n", User, hash), 0o600); err != nil {
		return "", err
	}
	config["auth"] = map[string]any{"htpasswd": map[string]any{"realm": "test", "path": passwords}}
	docker, err := json.Marshal(map[string]any{"auths": map[string]any{r.Host: map[string]any{"username": User, "password": Password}}})
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "config.yaml")
	return file, errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(r.DockerConfig, docker, 0o600))
}

func writeCertificate(certFile, keyFile string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, errors.Join(
		os.WriteFile(certFile, certificate, 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}

// waitReady asks until the registry answers.
func (r *Registry) waitReady(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPoll, startTimeout, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.scheme+"://"+r.Host+"/v2/", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		return true, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("the registry does not answer: %w", errors.Join(err, last))
	}
	return nil
}

// Program builds the registry, unless that has been done from the same sources, and
// gives its path.
func Program(ctx context.Context) (path string, err error) {
	root, err := harness.RepoRoot()
	if err != nil {
		return "", err
	}
	bin, err := harness.Binaries(ctx) // makes the folder
	if err != nil {
		return "", err
	}
	path = bin.Path("registry")
	lock, err := os.OpenFile(bin.Path("registry.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	for {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	return path, build(ctx, filepath.Join(root, "e2e", "registry", "program"), path)
}

func build(ctx context.Context, dir, path string) error {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%x", sha256.Sum256(text))
	}
	stamp := fmt.Appendf(nil, "%x %s\n", sum.Sum(nil), runtime.Version())
	if old, err := os.ReadFile(path + ".stamp"); err == nil && bytes.Equal(old, stamp) {
		return nil
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, ".")
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=", "GOARCH=")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the registry: %w: %s", err, output)
	}
	return os.WriteFile(path+".stamp", stamp, 0o600)
}
