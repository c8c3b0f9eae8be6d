// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"kumodo.io/convoy/pkg/tunnel"
)

// recording is what somebody sees who has ended the outer TLS: every byte of
// every connection, and the websocket messages with their masks taken off.
type recording struct {
	mu    sync.Mutex
	talks []*talk
}

// talk is one connection.
type talk struct{ up, down *voice }

// open takes the place of the ends of a connection in a relay.
func (r *recording) open(down, up net.Conn) (toUp, toDown io.Writer) {
	t := &talk{up: &voice{to: up}, down: &voice{to: down}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.talks = append(r.talks, t)
	return t.up, t.down
}

// voice is one direction: a head of HTTP, then websocket frames.
type voice struct {
	to io.Writer

	mu       sync.Mutex
	head     []byte
	rest     []byte // of a frame that is not complete
	messages bytes.Buffer
	upgraded bool
}

func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	v.hear(p)
	v.mu.Unlock()
	return v.to.Write(p)
}

func (v *voice) hear(p []byte) {
	v.rest = append(v.rest, p...)
	if !v.upgraded {
		head, rest, found := bytes.Cut(v.rest, []byte("\r\n\r\n"))
		if !found {
			return
		}
		v.upgraded, v.head, v.rest = true, bytes.Clone(head), bytes.Clone(rest)
	}
	for {
		payload, size := frame(v.rest)
		if size == 0 {
			return
		}
		v.messages.Write(payload)
		v.rest = v.rest[size:]
	}
}

// frame takes the first frame apart: RFC 6455, 5.2. size is 0 when it is not
// complete. Frames of control carry text too, so they are kept as well.
func frame(b []byte) (payload []byte, size int) {
	if len(b) < 2 {
		return nil, 0
	}
	length, at := uint64(b[1]&0x7f), 2
	switch length {
	case 126:
		if len(b) < 4 {
			return nil, 0
		}
		length, at = uint64(binary.BigEndian.Uint16(b[2:])), 4
	case 127:
		if len(b) < 10 {
			return nil, 0
		}
		length, at = binary.BigEndian.Uint64(b[2:]), 10
	}
	var mask []byte
	if b[1]&0x80 != 0 {
		if len(b) < at+4 {
			return nil, 0
		}
		mask, at = b[at:at+4], at+4
	}
	if uint64(len(b)-at) < length {
		return nil, 0
	}
	payload = bytes.Clone(b[at : at+int(length)])
	for i := range payload {
		if mask != nil {
			payload[i] ^= mask[i%4]
		}
	}
	if control := b[0]&0x08 != 0; control {
		return nil, at + int(length)
	}
	return payload, at + int(length)
}

// Types of TLS records.
const (
	changeCipherSpec = 20
	alert            = 21
	handshake        = 22
	applicationData  = 23
)

// records counts the TLS records that b is made of, by type. Anything else is
// an error; a record that has not ended is not.
func records(b []byte) (map[byte]int, error) {
	seen := map[byte]int{}
	for at := 0; len(b)-at >= 5; {
		kind, length := b[at], int(binary.BigEndian.Uint16(b[at+3:]))
		if kind < changeCipherSpec || kind > applicationData || b[at+1] != 3 || length > 16384+256 {
			return seen, fmt.Errorf("at byte %d stands % x, which begins no TLS record", at, b[at:at+5])
		}
		seen[kind]++
		at += 5 + length
	}
	return seen, nil
}

// wantOnlyTLS fails the test unless all that was said after the heads is TLS
// records, of which only the first of each end is a handshake in the clear, and
// unless both endpoints were used and much was said.
func (r *recording) wantOnlyTLS(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	paths := map[string]int{}
	for _, talk := range r.talks {
		for _, v := range []*voice{talk.up, talk.down} {
			v.mu.Lock()
			seen, err := records(v.messages.Bytes())
			if v == talk.up {
				if fields := strings.Fields(string(v.head)); len(fields) > 1 {
					paths[fields[1]] += seen[applicationData]
				}
			}
			v.mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v", v.head, err)
			}
			if seen[handshake] > 1 || seen[alert] > 0 {
				t.Errorf("%s: %d handshake messages and %d alerts in the clear", v.head, seen[handshake], seen[alert])
			}
		}
	}
	for _, path := range []string{tunnel.JoinPath, tunnel.SessionPath} {
		if paths[path] < 5 {
			t.Errorf("%s: %d records from the agent were recorded, so this shows nothing", path, paths[path])
		}
	}
}

// bytes is all that was heard: heads and messages.
func (r *recording) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all bytes.Buffer
	for _, talk := range r.talks {
		for _, v := range []*voice{talk.up, talk.down} {
			v.mu.Lock()
			all.Write(v.head)
			all.Write(v.messages.Bytes())
			all.Write(v.rest)
			v.mu.Unlock()
		}
	}
	return all.Bytes()
}

// secretsOf names what nobody between agent and hub may see of a site: the join
// token in every form, the names in certificates, and the text of manifests.
func secretsOf(t *testing.T, s *site, manifests ...string) map[string][]byte {
	t.Helper()
	token, err := tunnel.ParseToken(s.token)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{
		"token": []byte(s.token), "seed of the token": token.Seed,
		"seed in base64":       []byte(base64.StdEncoding.EncodeToString(token.Seed)),
		"seed in URL base64":   []byte(base64.RawURLEncoding.EncodeToString(token.Seed)),
		"seed in hexadecimal":  fmt.Appendf(nil, "%x", token.Seed),
		"UID of the Cluster":   []byte(token.ClusterUID),
		"name of the Cluster":  []byte(s.name),
		"namespace on the hub": []byte(s.namespace),
		"subject of the agent": []byte("convoy agent"),
		"subject of the hub":   []byte("convoy hub"),
		"kind of a manifest":   []byte("ConfigMap"),
		"pin of the hub's CA":  []byte(token.CAPin),
	}
	for i, text := range manifests {
		secrets[fmt.Sprintf("text %d of the manifests", i)] = []byte(text)
	}
	return secrets
}

// wantNone fails the test for each secret that is in what was recorded.
func wantNone(t *testing.T, recorded []byte, secrets map[string][]byte) {
	t.Helper()
	for what, secret := range secrets {
		if at := bytes.Index(recorded, secret); at >= 0 {
			t.Errorf("the %s is in the recording: ...%q...", what, recorded[max(0, at-40):min(len(recorded), at+len(secret)+40)])
		}
	}
}
