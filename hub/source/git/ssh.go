// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"golang.org/x/sys/unix"

	"kumodo.io/convoy/hub/source/fault"
)

// sshConnection runs git-upload-pack on the server, over one ssh session.
type sshConnection struct {
	host    string
	client  *ssh.Client
	session *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  bytes.Buffer
	stop    func() bool // ends the watch on the context
}

func dialSSH(ctx context.Context, remote Remote, u *url.URL) (connection, error) {
	host := u.Hostname()
	target := net.JoinHostPort(host, port(u))
	trusted := false
	config, err := clientConfig(remote, u, target, &trusted)
	if err != nil {
		return nil, err
	}
	conn, err := remote.Policy.Dial(ctx, target, false)
	if err != nil {
		return nil, fault.Dial(ctx, u.Host, err)
	}
	// The handshake knows no context; closing the connection ends whatever waits on it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // its error has no reader: the handshake fails instead
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, errors.Join(fault.Dial(ctx, u.Host, err), conn.Close())
	}
	shaken, channels, requests, err := ssh.NewClientConn(conn, target, config)
	if err != nil {
		stop()
		return nil, errors.Join(sshError(ctx, u.Host, trusted, err), ignoreClosed(conn.Close()))
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(fault.Dial(ctx, u.Host, err), conn.Close())
	}
	c := &sshConnection{host: u.Host, client: ssh.NewClient(shaken, channels, requests), stop: stop}
	if err := c.start(u.Path); err != nil {
		return nil, errors.Join(sshError(ctx, u.Host, false, err), c.close())
	}
	return c, nil
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "22"
}

// clientConfig is strict: a key, and known hosts that name the server. trusted is
// set once the server has shown a known key.
func clientConfig(remote Remote, u *url.URL, target string, trusted *bool) (*ssh.ClientConfig, error) {
	if len(remote.Identity) == 0 && remote.Password == "" {
		return nil, fault.Failf(fault.ClassAuth, "ssh needs a Secret with identity (a private key) and known_hosts")
	}
	if len(remote.KnownHosts) == 0 {
		return nil, fault.Failf(fault.ClassHostKey, "ssh needs known_hosts in the Secret: without it any server could pose as %s", u.Host)
	}
	check, algorithms, err := hostKeys(remote.KnownHosts, target)
	if err != nil {
		return nil, err
	}
	noted := func(host string, addr net.Addr, key ssh.PublicKey) error {
		err := check(host, addr, key)
		*trusted = err == nil
		return err
	}
	config := &ssh.ClientConfig{User: u.User.Username(), HostKeyCallback: noted, HostKeyAlgorithms: algorithms, Timeout: handshakeTimeout}
	if config.User == "" {
		config.User = "git"
	}
	if len(remote.Identity) == 0 {
		config.Auth = []ssh.AuthMethod{ssh.Password(remote.Password)}
		return config, nil
	}
	signer, err := ssh.ParsePrivateKey(remote.Identity)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && remote.Password != "" {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(remote.Identity, []byte(remote.Password))
	}
	if err != nil {
		if block, _ := pem.Decode(remote.Identity); block == nil {
			return nil, fault.Failf(fault.ClassAuth, "identity in the Secret is no private key in PEM")
		}
		return nil, fault.Failf(fault.ClassAuth, "identity in the Secret cannot be read: another format, or a passphrase that is missing or wrong (key password)")
	}
	config.Auth = []ssh.AuthMethod{ssh.PublicKeys(signer)}
	return config, nil
}

// hostKeys makes the check of the server's key, and the algorithms for which a key
// is known, so that the server shows one of those.
func hostKeys(known []byte, target string) (ssh.HostKeyCallback, []string, error) {
	// The library reads files only: one in memory, so that no disk has to be writable.
	fd, err := unix.MemfdCreate("known_hosts", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd))
	var check ssh.HostKeyCallback
	if _, err = file.Write(known); err == nil {
		if check, err = knownhosts.New(file.Name()); err != nil {
			err = fault.Failf(fault.ClassHostKey, "known_hosts in the Secret cannot be read")
		}
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, nil, err
	}
	// A key that no host has makes the check tell which ones it knows.
	probe := check(target, &net.TCPAddr{IP: net.IPv4zero}, probeKey{})
	var mismatch *knownhosts.KeyError
	var algorithms []string
	if errors.As(probe, &mismatch) {
		for _, key := range mismatch.Want {
			algorithm := key.Key.Type()
			if algorithm == ssh.KeyAlgoRSA {
				algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			}
			algorithms = append(algorithms, algorithm)
		}
	}
	if len(algorithms) == 0 {
		return nil, nil, fault.Failf(fault.ClassHostKey, "known_hosts in the Secret has no key of %s", target)
	}
	return check, algorithms, nil
}

// probeKey is a host key that equals no other.
type probeKey struct{}

func (probeKey) Type() string                        { return "none" }
func (probeKey) Marshal() []byte                     { return nil }
func (probeKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

func (c *sshConnection) start(path string) (err error) {
	if c.session, err = c.client.NewSession(); err != nil {
		return err
	}
	if c.stdin, err = c.session.StdinPipe(); err != nil {
		return err
	}
	if c.stdout, err = c.session.StdoutPipe(); err != nil {
		return err
	}
	c.session.Stderr = &capped{to: &c.stderr, left: maxErrorBytes}
	return c.session.Start(service + " " + quote(path))
}

// quote is for the server's shell.
func quote(text string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(text) + "'"
}

func (c *sshConnection) advertisement(ctx context.Context) (io.Reader, error) {
	return &sayingReader{ctx: ctx, connection: c}, nil
}

func (c *sshConnection) upload(_ context.Context, request []byte) (io.Reader, error) {
	if _, err := c.stdin.Write(request); err != nil {
		return nil, fault.Failf(fault.ClassUnreachable, "%s: the connection ended", c.host)
	}
	return c.stdout, nil
}

func (c *sshConnection) close() error {
	c.stop()
	if c.session != nil {
		// The server may have closed first, in any of several ways; what matters was
		// read before.
		_ = c.session.Close()
	}
	return ignoreClosed(c.client.Close())
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// sayingReader turns the end of a session that said nothing on stdout into what
// it said on stderr, which is where ssh servers explain themselves.
type sayingReader struct {
	ctx        context.Context
	connection *sshConnection
	any        bool
}

func (s *sayingReader) Read(p []byte) (int, error) {
	n, err := s.connection.stdout.Read(p)
	s.any = s.any || n > 0
	if errors.Is(err, io.EOF) && !s.any {
		if err := s.ctx.Err(); err != nil {
			return n, err
		}
		// Wait makes sure that stderr is complete; its own error only repeats the exit code.
		_ = s.connection.session.Wait()
		return n, fault.Failf(fault.ClassAuth, "%s does not serve the repository: %s", s.connection.host, fault.Clean(s.connection.stderr.String()))
	}
	return n, err
}

// capped keeps the beginning of what is written to it.
type capped struct {
	to   *bytes.Buffer
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	c.to.Write(p[:n])
	return len(p), nil
}

// sshError sorts an error of a handshake. The ssh library has no type for refused
// credentials, but once the server is trusted nothing else is left to fail.
func sshError(ctx context.Context, host string, trusted bool, err error) error {
	var mismatch *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &mismatch), errors.As(err, &revoked):
		return fault.Failf(fault.ClassHostKey, "%s shows a host key that is not the one in known_hosts: it was replaced, or another server answers", host)
	case ctx.Err() != nil:
		return fault.Dial(ctx, host, ctx.Err())
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fault.Failf(fault.ClassTimeout, "%s: no answer in time", host)
	}
	if trusted {
		return fault.Failf(fault.ClassAuth, "%s does not accept the key", host)
	}
	return fault.Failf(fault.ClassUnreachable, "%s: %s", host, fault.Clean(err.Error()))
}
