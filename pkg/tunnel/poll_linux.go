// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

const polls = true

// readable tells whether a read would not wait: there are bytes, or it has ended.
func readable(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EINTR) {
			return !errors.Is(err, unix.EAGAIN)
		}
	}
}

// now reads what is there, or fails with errIdle.
func (p *Poll) now(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	var failed error
	err = p.raw.Read(func(fd uintptr) bool {
		for {
			n, failed = unix.Read(int(fd), b)
			if !errors.Is(failed, unix.EINTR) {
				return true
			}
		}
	})
	switch {
	case err != nil:
		return 0, fmt.Errorf("read: %w", err)
	case errors.Is(failed, unix.EAGAIN):
		return 0, errIdle
	case failed != nil:
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: p.RemoteAddr(), Err: failed}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
