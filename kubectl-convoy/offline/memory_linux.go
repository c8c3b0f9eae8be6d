// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limitAddress lets the process map so much more than it has, so that one allocation of
// many gigabytes ends it before it is made.
func limitAddress(more int64) error {
	mapped, err := statm(0)
	if err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &now); err != nil {
		return fmt.Errorf("limit of memory: %w", err)
	}
	now.Max = min(uint64(mapped+more), now.Max)
	now.Cur = now.Max
	if err := unix.Setrlimit(unix.RLIMIT_AS, &now); err != nil {
		return fmt.Errorf("limit of memory: %w", err)
	}
	return nil
}

// resident is what the process has in memory, in bytes.
func resident() int64 {
	bytes, err := statm(1)
	if err != nil {
		return used() // without /proc the runtime's own count has to do
	}
	return bytes
}

// statm reads a field of /proc/self/statm in bytes: 0 mapped, 1 resident.
func statm(field int) (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) <= field {
		return 0, fmt.Errorf("/proc/self/statm has %d fields", len(fields))
	}
	pages, err := strconv.ParseInt(fields[field], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
