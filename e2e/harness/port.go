// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// ports keeps what reserves the ports of this process until it ends.
var ports struct {
	mu sync.Mutex
	// held is guarded by mu.
	held []net.Listener
}

// FreePort gives a free port of 127.0.0.1 that no other process using the
// harness is given until this one ends. The reservation is an abstract unix
// socket, which goes with the process, however it ends.
func FreePort(ctx context.Context) (int, error) {
	const tries = 1000
	var errs error
	for range tries {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("find a free port: %w", context.Cause(ctx))
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		var lc net.ListenConfig
		reserved, err := lc.Listen(ctx, "unix", "@convoy-harness-port-"+strconv.Itoa(port))
		if err != nil {
			errs = err
			continue
		}
		probe, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			errs = errors.Join(err, reserved.Close())
			continue
		}
		if err := probe.Close(); err != nil {
			return 0, fmt.Errorf("find a free port: %w", errors.Join(err, reserved.Close()))
		}
		ports.mu.Lock()
		ports.held = append(ports.held, reserved)
		ports.mu.Unlock()
		return port, nil
	}
	return 0, fmt.Errorf("find a free port: %w", errs)
}
