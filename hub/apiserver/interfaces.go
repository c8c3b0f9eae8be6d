// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net"
	"time"
)

// Certifier makes certificates with new keys, PEM. hub/keyring's CA is one.
type Certifier interface {
	ServerCertificate(names []string, addresses []net.IP, now time.Time, lifetime time.Duration) (certificate, key []byte, err error)
	ClientCertificate(name string, groups []string, now time.Time, lifetime time.Duration) (certificate, key []byte, err error)
}
