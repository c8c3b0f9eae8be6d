// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc, the same on every Linux that Go
// runs on.
const clockTick = 10 * time.Millisecond

// Usage is what a living process takes.
type Usage struct {
	// RSS is its resident set, Private the part of that which it shares with nobody,
	// and Anonymous the part that stands in no file, in bytes. Of a program that runs
	// once, what was read of its file is Private: the system takes that back when it
	// needs room.
	RSS, Private, Anonymous int64
	// CPU is user and system time since its start, without its children.
	CPU time.Duration
}

// UsageOf reads what a process takes now.
func UsageOf(pid int) (Usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	var u Usage
	rollup, err := os.ReadFile(dir + "/smaps_rollup")
	if err != nil {
		return u, fmt.Errorf("usage of %d: %w", pid, err)
	}
	for line := range strings.Lines(string(rollup)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return u, fmt.Errorf("usage of %d: %w", pid, err)
		}
		switch fields[0] {
		case "Rss:":
			u.RSS = kib << 10
		case "Private_Clean:", "Private_Dirty:":
			u.Private += kib << 10
		case "Anonymous:":
			u.Anonymous = kib << 10
		}
	}
	const user, system = 11, 12 // counted from behind the name
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, fmt.Errorf("usage of %d: %w", pid, err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= system {
		return u, fmt.Errorf("usage of %d: short stat", pid)
	}
	for _, f := range []string{fields[user], fields[system]} {
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, fmt.Errorf("usage of %d: %w", pid, err)
		}
		u.CPU += time.Duration(ticks) * clockTick
	}
	return u, nil
}
