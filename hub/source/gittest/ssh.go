// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSH serves the repositories under a folder to one key and one password.
type SSH struct {
	// URL without a repository's name.
	URL string
	// Identity is the private key that is let in, PEM.
	Identity []byte
	// KnownHosts has the server's key.
	KnownHosts []byte
	// Password that is let in too.
	Password string

	root     string
	listener net.Listener
	group    sync.WaitGroup
}

// NewSSH starts a server.
func NewSSH(t testing.TB, root string) *SSH {
	t.Helper()
	hostPEM, hostKey := newKey(t)
	_ = hostPEM // nobody needs the server's private key
	clientPEM, clientKey := newKey(t)
	s := &SSH{Identity: clientPEM, Password: "open sesame", root: root}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) != string(clientKey.PublicKey().Marshal()) {
				return nil, errors.New("unknown key")
			}
			return nil, nil
		},
		PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if string(password) != s.Password {
				return nil, errors.New("wrong password")
			}
			return nil, nil
		},
	}
	config.AddHostKey(hostKey)
	var err error
	if s.listener, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.URL = "ssh://git@" + s.listener.Addr().String()
	s.KnownHosts = []byte(knownhosts.Line([]string{s.listener.Addr().String()}, hostKey.PublicKey()) + "\n")
	s.group.Go(func() { s.accept(config) })
	t.Cleanup(func() {
		if err := s.listener.Close(); err != nil {
			t.Error(err)
		}
		s.group.Wait()
	})
	return s
}

// RepoURL of a repository.
func (s *SSH) RepoURL(r *Repo) string { return s.URL + "/" + r.Name() }

// NewIdentity makes a private key that no server knows.
func NewIdentity(t testing.TB) []byte {
	t.Helper()
	text, _ := newKey(t)
	return text
}

func newKey(t testing.TB) ([]byte, ssh.Signer) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "test")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), signer
}

func (s *SSH) accept(config *ssh.ServerConfig) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.group.Go(func() { s.serve(conn, config) })
	}
}

func (s *SSH) serve(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // the client was refused, or went away
	}
	s.group.Go(func() { ssh.DiscardRequests(requests) })
	for channel := range channels {
		if channel.ChannelType() != "session" {
			if err := channel.Reject(ssh.UnknownChannelType, "sessions only"); err != nil {
				return
			}
			continue
		}
		session, requests, err := channel.Accept()
		if err != nil {
			return
		}
		s.group.Go(func() { s.session(session, requests) })
	}
}

func (s *SSH) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			// An answer that cannot be sent means that the client is gone.
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		code := uint32(0)
		if err := s.exec(channel, request.Payload); err != nil {
			_, _ = io.WriteString(channel.Stderr(), "fatal: no such repository\n")
			code = 128
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
		return
	}
}

func (s *SSH) exec(channel ssh.Channel, payload []byte) error {
	var command struct{ Text string }
	if err := ssh.Unmarshal(payload, &command); err != nil {
		return err
	}
	path, ok := strings.CutPrefix(command.Text, "git-upload-pack '/")
	path, closed := strings.CutSuffix(path, "'")
	if !ok || !closed || strings.ContainsAny(path, "'/") {
		return errors.New("not served")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "upload-pack", filepath.Join(s.root, path))
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout = channel
	if err := cmd.Start(); err != nil {
		return err
	}
	// Ends when the client closes its side or the channel: the program needs its
	// input closed to end.
	go func() {
		_, _ = io.Copy(in, channel)
		_ = in.Close()
	}()
	return cmd.Wait()
}
