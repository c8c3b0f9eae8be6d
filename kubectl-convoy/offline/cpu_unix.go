// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package offline

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// limitCPU gives the process so much processor time from now on.
func limitCPU(share time.Duration) error {
	// No core files: the memory holds Secrets.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit of core files: %w", err)
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return fmt.Errorf("processor time: %w", err)
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("limit of processor time: %w", err)
	}
	exceeded := make(chan os.Signal, 1)
	signal.Notify(exceeded, unix.SIGXCPU)
	go func() { // ends with the process
		<-exceeded
		os.Exit(exitCPU) //nolint:forbidigo // a worker at its limit cannot go back to main
	}()
	all := time.Duration(usage.Utime.Nano()+usage.Stime.Nano()) + share
	now.Max = min(seconds(all+graceCPU), now.Max)
	now.Cur = min(seconds(all), now.Max)
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return fmt.Errorf("limit of processor time: %w", err)
	}
	return nil
}

// seconds rounds up, since the limit counts whole seconds.
func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }
