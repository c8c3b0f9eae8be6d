// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"

	"kumodo.io/convoy/pkg/tunnel"
)

// trust is what follows from the CAs that are accepted at a time.
type trust struct {
	cas     []*x509.Certificate
	pem     []byte
	pins    []string
	session *tls.Config
}

// trustCache makes a trust anew when the CAs have changed.
type trustCache struct {
	mu      sync.Mutex
	current *trust
}

// trust that holds now. A set of CAs that cannot be used leaves the one before.
func (g *Gateway) trust() *trust {
	now, err := g.trusted.get(g)
	if err != nil {
		g.log.Error(err, "the set of hub CAs cannot be used; keeping the one before")
	}
	return now
}

func (c *trustCache) get(g *Gateway) (*trust, error) {
	cas := []*x509.Certificate{g.opts.CA}
	if !g.opts.CA.Equal(g.opts.ServerCA) {
		cas = append(cas, g.opts.ServerCA)
	}
	if g.opts.HubCAs != nil {
		for _, ca := range g.opts.HubCAs() {
			if ca != nil && ca.IsCA && !slices.ContainsFunc(cas, ca.Equal) {
				cas = append(cas, ca)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && slices.EqualFunc(c.current.cas, cas, (*x509.Certificate).Equal) {
		return c.current, nil
	}
	made := &trust{cas: cas}
	pool := x509.NewCertPool()
	var text bytes.Buffer
	for _, ca := range cas {
		pool.AddCert(ca)
		made.pins = append(made.pins, tunnel.CAPin(ca))
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))
	}
	made.pem = text.Bytes()
	var err error
	if made.session, err = tunnel.SessionServerConfig(g.opts.HubID, pool, g.inside.get, g.opts.Now); err != nil {
		return c.current, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	c.current = made
	return made, nil
}
