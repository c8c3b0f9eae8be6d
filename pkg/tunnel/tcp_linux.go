// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// TuneTCP makes the kernel give up on a peer that acknowledges nothing, or keeps
// its window shut, for WriteTimeout. Other connections are left as they are.
func TuneTCP(conn net.Conn) error {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return fmt.Errorf("tune TCP: %w", err)
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(WriteTimeout.Milliseconds()))
	})
	if err := errors.Join(err, set); err != nil {
		return fmt.Errorf("tune TCP: %w", err)
	}
	return nil
}
