// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kumodo.io/convoy/e2e/harness/internal/message"
)

const (
	// killRound is the pause between two rounds of killing.
	killRound = 10 * time.Millisecond
	// killRounds bounds the killing: 20 s in all.
	killRounds = 2000
	// podSpecFD is where the first process of a pod finds its description.
	podSpecFD = 3
)

// start forks one program. os.StartProcess is used, not os/exec, because reap
// waits for every child itself.
func (s *supervisor) start(st *message.Start) (int, error) {
	if st == nil {
		return 0, errors.New("start order without a program")
	}
	log, err := os.OpenFile(st.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open log: %w", err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor: close log:", err)
		}
	}()

	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("open null device: %w", err)
	}
	defer func() {
		if err := null.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "supervisor: close null device:", err)
		}
	}()

	path, args := st.Path, append([]string{st.Path}, st.Args...)
	files := []*os.File{null, log, log}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if st.Pod != nil {
		self, err := os.Executable()
		if err != nil {
			return 0, fmt.Errorf("find own program: %w", err)
		}
		spec, err := podSpecFile(st.Pod)
		if err != nil {
			return 0, err
		}
		defer func() {
			if err := spec.Close(); err != nil {
				fmt.Fprintln(os.Stderr, "supervisor: close pod spec:", err)
			}
		}()
		files = append(files, spec)
		path, args = self, []string{self, podInit}
		attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC
	}
	if !strings.Contains(path, "/") {
		if path, err = exec.LookPath(path); err != nil {
			return 0, fmt.Errorf("find program: %w", err)
		}
	}

	p, err := os.StartProcess(path, args, &os.ProcAttr{Dir: st.Dir, Env: st.Env, Files: files, Sys: attr})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", st.Name, err)
	}
	pid := p.Pid
	s.running[pid] = st.Name
	if err := p.Release(); err != nil {
		fmt.Fprintln(os.Stderr, "supervisor: release:", err)
	}
	return pid, nil
}

// podSpecFile gives the pod's description to the new process as an open file
// without a name.
func podSpecFile(pod *message.Pod) (*os.File, error) {
	b, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("encode pod: %w", err)
	}
	f, err := os.CreateTemp("", "convoy-pod-*.json")
	if err != nil {
		return nil, fmt.Errorf("write pod: %w", err)
	}
	if err = os.Remove(f.Name()); err == nil {
		if _, err = f.Write(b); err == nil {
			_, err = f.Seek(0, 0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write pod: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}

// reap takes every child that has ended, adopted descendants as well.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &usage)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return // no child at all, or none that has ended
		}
		name, ok := s.running[pid]
		if !ok {
			continue
		}
		delete(s.running, pid)
		exit := &message.Exit{
			Name: name, PID: pid, Code: status.ExitStatus(), MaxRSS: usage.Maxrss,
			CPUMillis: (usage.Utime.Nano() + usage.Stime.Nano()) / int64(time.Millisecond),
		}
		if status.Signaled() {
			exit.Signal = int(status.Signal())
		}
		s.say(message.Event{Exit: exit})
	}
}

// killDescendants kills every process below this one until none is left but
// zombies, which go with this process.
func killDescendants() error {
	round := time.NewTicker(killRound)
	defer round.Stop()
	for range killRounds {
		pids, err := descendants(os.Getpid())
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				fmt.Fprintln(os.Stderr, "supervisor: kill:", err)
			}
		}
		<-round.C
	}
	return errors.New("children still there after killing")
}

// descendants lists the living processes below root. It is read from /proc
// since process groups and sessions can be left by those in them.
func descendants(root int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	children := map[int][]int{}
	zombie := map[int]bool{}
	for _, f := range stats {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended meanwhile
		}
		// The name in parentheses may hold anything, so read from its end.
		_, rest, ok := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		ppid, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		children[ppid] = append(children[ppid], pid)
		zombie[pid] = fields[0] == "Z" || fields[0] == "X"
	}
	var found []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			queue = append(queue, c)
			if !zombie[c] {
				found = append(found, c)
			}
		}
	}
	return found, nil
}
