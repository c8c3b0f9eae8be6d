// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tunnel

import "net"

// TuneTCP does nothing where the kernel has no TCP_USER_TIMEOUT.
func TuneTCP(net.Conn) error { return nil }
