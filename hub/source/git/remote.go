// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/fault"
)

// Auth are the credentials for a remote. It goes to a fetch worker over its
// stdin and is nowhere else.
type Auth struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Bearer is sent as a bearer token; with it Username and Password are unused.
	Bearer string `json:"bearer,omitempty"`
	// ClientCert and ClientKey are shown to an https server, PEM.
	ClientCert []byte `json:"clientCert,omitempty"`
	ClientKey  []byte `json:"clientKey,omitempty"`
	// Identity is a private key, PEM; Password its passphrase.
	Identity []byte `json:"identity,omitempty"`
	// KnownHosts has the keys of ssh servers, as in the file of that name.
	KnownHosts []byte `json:"knownHosts,omitempty"`
}

// none reports that nothing would be sent to an https server.
func (a Auth) none() bool { return a.Bearer == "" && a.Username == "" && a.Password == "" }

// Remote is a repository on a server.
type Remote struct {
	URL string `json:"url"`
	Auth
	// CA is trusted besides the system's certificates, PEM.
	CA     []byte         `json:"ca,omitempty"`
	Policy address.Policy `json:"policy"`
}

// Ref is a ref of a server. Commit is what it leads to, also through a tag object.
type Ref struct {
	Name   string
	Commit string
}

// ParseURL checks a repository's URL. Only https and ssh are known, and http,
// which the dialler allows for ranges that were opened by name.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error of net/url repeats the whole text, password included.
		return nil, fault.Failf(fault.ClassInvalid, "the URL cannot be read")
	}
	switch u.Scheme {
	case "https", "http":
		if u.User != nil {
			return nil, fault.Failf(fault.ClassInvalid, "the URL holds a user name: credentials belong in a Secret")
		}
	case "ssh":
		if _, has := u.User.Password(); has {
			return nil, fault.Failf(fault.ClassInvalid, "the URL holds a password: credentials belong in a Secret")
		}
	case "":
		return nil, fault.Failf(fault.ClassInvalid, "the URL has no scheme: write https://HOST/PATH or ssh://USER@HOST/PATH")
	default:
		return nil, fault.Failf(fault.ClassInvalid, "the URL's scheme is not supported: only https and ssh are")
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fault.Failf(fault.ClassInvalid, "the URL needs a host and a path, and nothing else")
	}
	return u, nil
}

// connection is one conversation with git-upload-pack on a server.
type connection interface {
	// advertisement gives the server's list of refs, up to its flush packet.
	advertisement(ctx context.Context) (io.Reader, error)
	// upload sends a request and gives the answer.
	upload(ctx context.Context, request []byte) (io.Reader, error)
	close() error
}

func (r Remote) connect(ctx context.Context) (connection, error) {
	u, err := ParseURL(r.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "ssh" {
		return dialSSH(ctx, r, u)
	}
	return dialHTTP(r, u)
}

// Refs lists the refs that keep accepts, and nothing of the others
// is held in memory.
func Refs(ctx context.Context, remote Remote, keep func(name string) bool) (refs []Ref, err error) {
	conn, err := remote.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.close()) }()
	_, refs, err = listRefs(ctx, conn, func(name, _ string) bool { return keep(name) })
	return refs, err
}

// listRefs reads an advertisement: its capabilities and the refs that keep accepts by
// their name or by what they lead to.
func listRefs(ctx context.Context, conn connection, keep func(name, hash string) bool) (capabilities map[string]bool, refs []Ref, err error) {
	stream, err := conn.advertisement(ctx)
	if err != nil {
		return nil, nil, err
	}
	lines := pktline.NewScanner(&limited{r: stream, left: maxAdvertisementBytes, what: "the list of refs", limit: maxAdvertisementBytes})
	capabilities = map[string]bool{}
	for first := true; lines.Scan(); first = false {
		line := strings.TrimSuffix(string(lines.Bytes()), "\n")
		if line == "" {
			return capabilities, refs, nil
		}
		if first {
			var words string
			line, words, _ = strings.Cut(line, "\x00")
			for _, word := range strings.Fields(words) {
				capabilities[word] = true
			}
			if capabilities["object-format=sha256"] {
				return nil, nil, fault.Failf(fault.ClassInvalid, "the repository uses SHA-256 object names, which are not supported")
			}
		}
		hash, name, ok := strings.Cut(line, " ")
		if !ok || !IsCommit(hash) {
			if strings.HasPrefix(line, "shallow ") {
				continue
			}
			return nil, nil, fault.Failf(fault.ClassUnreachable, "the server's answer is not that of a Git server")
		}
		peeled := strings.TrimSuffix(name, "^{}")
		if !keep(peeled, hash) {
			continue
		}
		if peeled != name {
			// The commit behind the tag object of the line before.
			if last := len(refs) - 1; last >= 0 && refs[last].Name == peeled {
				refs[last].Commit = hash
				continue
			}
			refs = append(refs, Ref{Name: peeled, Commit: hash})
			continue
		}
		refs = append(refs, Ref{Name: name, Commit: hash})
	}
	if err := lines.Err(); err != nil {
		return nil, nil, streamError(ctx, err)
	}
	return nil, nil, fault.Failf(fault.ClassUnreachable, "the server's answer is cut, or not that of a Git server")
}

// IsCommit reports whether text is a whole commit name: 40 hexadecimal digits.
func IsCommit(text string) bool {
	if len(text) != 40 {
		return false
	}
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// streamError sorts an error that came while reading from a server.
func streamError(ctx context.Context, err error) error {
	var own *fault.Error
	if errors.As(err, &own) {
		return err
	}
	var said *pktline.ErrorLine
	if errors.As(err, &said) {
		return fault.Failf(fault.ClassUnreachable, "the server says: %s", fault.Clean(said.Text))
	}
	return fault.Dial(ctx, "the server", err)
}

// limited counts what is read and fails beyond the limit.
type limited struct {
	r     io.Reader
	left  int64
	limit int64
	what  string
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, &fault.Error{Class: fault.ClassTooLarge, Err: fmt.Errorf("%s has more than %d MiB, which is the limit", l.what, l.limit>>20)}
	}
	return n, err
}
