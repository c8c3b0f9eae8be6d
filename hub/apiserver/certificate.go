// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"
)

// servingNames are what the aggregator and local callers expect in our certificate.
func servingNames() []string {
	return []string{
		"convoy-apiserver.convoy-system.svc",
		"convoy-apiserver.convoy-system.svc.cluster.local",
		"convoy-apiserver.convoy-system",
		"convoy-apiserver",
		"localhost",
	}
}

// servingCertificate is our own certificate, made anew before it ends. The
// library asks for the current one every minute.
type servingCertificate struct {
	// Static.
	certifier Certifier
	addresses []net.IP
	clock     clock.PassiveClock
	log       logr.Logger

	mu               sync.Mutex
	certificate, key []byte    // guarded by mu
	renewAt          time.Time // guarded by mu
}

var _ dynamiccertificates.CertKeyContentProvider = &servingCertificate{}

func newServingCertificate(c Certifier, bind net.IP, clk clock.PassiveClock, log logr.Logger) (*servingCertificate, error) {
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if bind != nil && !bind.IsUnspecified() && !bind.IsLoopback() {
		addresses = append(addresses, bind)
	}
	s := &servingCertificate{certifier: c, addresses: addresses, clock: clk, log: log}
	if err := s.renewLocked(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *servingCertificate) renewLocked() error {
	now := s.clock.Now()
	certificate, key, err := s.certifier.ServerCertificate(servingNames(), s.addresses, now, servingLifetime)
	if err != nil {
		return fmt.Errorf("make serving certificate: %w", err)
	}
	s.certificate, s.key, s.renewAt = certificate, key, now.Add(servingLifetime*2/3)
	return nil
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (*servingCertificate) Name() string { return "convoy-serving" }

// AddListener implements dynamiccertificates.Notifier. Nobody is told: the
// library looks every minute.
func (*servingCertificate) AddListener(dynamiccertificates.Listener) {}

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (s *servingCertificate) CurrentCertKeyContent() (certificate, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.clock.Now().Before(s.renewAt) {
		// The old one is good for another third of its life.
		if err := s.renewLocked(); err != nil {
			s.log.Error(err, "could not renew the serving certificate")
		}
	}
	return s.certificate, s.key
}
