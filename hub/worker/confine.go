// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Barrier says which system calls a worker goes without.
type Barrier int

const (
	// BarrierAll: no sockets, no files, no other programs or processes. What a
	// render worker needs comes by its stdin and leaves by its stdout.
	BarrierAll Barrier = iota
	// BarrierProcess: no other programs or processes; sockets and files are open.
	BarrierProcess
)

// Confine puts the calling process under limits, given as its arguments by the
// parent. It is the first thing that a worker does. The process can never get out
// of it again.
func Confine(args []string, barrier Barrier) (Limits, error) {
	var limits Limits
	if len(args) != 1 {
		return limits, errors.New("a worker is started by the hub, not by hand")
	}
	if err := json.Unmarshal([]byte(args[0]), &limits); err != nil {
		return limits, fmt.Errorf("limits of the worker: %w", err)
	}
	debug.SetMaxStack(maxStackBytes)
	if limits.HeapBytes > 0 {
		debug.SetMemoryLimit(limits.HeapBytes)
		// A job is short and its process is bounded: rarer collections are worth the memory.
		debug.SetGCPercent(workerGCPercent)
	}
	if err := setLimits(limits); err != nil {
		return limits, err
	}
	exceeded := make(chan os.Signal, 1)
	signal.Notify(exceeded, unix.SIGXCPU)
	go func() { // ends with the process
		<-exceeded
		os.Exit(exitCPU)
	}()
	return limits, install(barrier)
}

func setLimits(limits Limits) error {
	set := func(what int, cur, max uint64) error {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: cur, Max: max}); err != nil {
			return fmt.Errorf("resource limit %d: %w", what, err)
		}
		return nil
	}
	// No core files: a worker's memory holds a tenant's Secrets.
	err := errors.Join(set(unix.RLIMIT_CORE, 0, 0), set(unix.RLIMIT_NOFILE, maxOpenFiles, maxOpenFiles))
	if limits.FileBytes > 0 {
		err = errors.Join(err, set(unix.RLIMIT_FSIZE, uint64(limits.FileBytes), uint64(limits.FileBytes)))
	}
	if limits.JobCPU > 0 {
		// The hard limit cannot be raised again, so it is that of all jobs together.
		all := seconds(startupCPU + limits.JobCPU*time.Duration(max(limits.Jobs, 1)))
		err = errors.Join(err, set(unix.RLIMIT_CPU, all, all))
	}
	if limits.AddressBytes > 0 && !raceBuild {
		mapped, readErr := statm(os.Getpid(), 0)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		most := uint64(mapped + limits.AddressBytes)
		err = errors.Join(err, set(unix.RLIMIT_AS, most, most))
	}
	return err
}

// BeginJob gives the next job its processor time: what the process has used plus
// the job's share. Passing it ends the process with ErrCPU for the parent.
func BeginJob(share time.Duration) error {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &now); err != nil {
		return err
	}
	used := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	now.Cur = min(seconds(used+share), now.Max)
	return unix.Setrlimit(unix.RLIMIT_CPU, &now)
}

// seconds rounds up, since the limit counts whole seconds.
func seconds(d time.Duration) uint64 { return uint64((d + time.Second - 1) / time.Second) }

// statm reads a field of /proc/PID/statm in bytes: 0 mapped, 1 resident.
func statm(pid, field int) (int64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) <= field {
		return 0, fmt.Errorf("statm of process %d: %d fields", pid, len(fields))
	}
	pages, err := strconv.ParseInt(fields[field], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
