// SPDX-License-Identifier: Apache-2.0

// Command podprobe is the program that the harness's own tests run as a pod:
// it prints what it sees of its container as one line of JSON and then waits
// for SIGTERM. It stands outside the flow: it is test machinery only.
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Seen is what is printed.
type Seen struct {
	PID      int               `json:"pid"`
	UID      int               `json:"uid"`
	GID      int               `json:"gid"`
	Groups   []int             `json:"groups"`
	Hostname string            `json:"hostname"`
	Args     []string          `json:"args"`
	Env      []string          `json:"env"`
	Root     []string          `json:"root"`
	Files    map[string]string `json:"files"`
	// Writable lists which of the folders named by WRITE can be written.
	Writable []string `json:"writable"`
	// Status is the part of /proc/self/status about privileges.
	Status []string `json:"status"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		select {}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "podprobe:", err)
		os.Exit(1)
	}
}

func run() error {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	seen, err := look()
	if err != nil {
		return err
	}
	b, err := json.Marshal(seen)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	fmt.Println(string(b))
	// A child that must not outlive its parent.
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if err := exec.Command(self, "child").Start(); err != nil { //nolint:noctx // it is meant to be left behind
		return fmt.Errorf("start child: %w", err)
	}
	<-term
	fmt.Println("terminated")
	return nil
}

func look() (*Seen, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	groups, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("groups: %w", err)
	}
	s := &Seen{
		PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Groups: groups,
		Hostname: host, Args: os.Args[1:], Env: os.Environ(), Files: map[string]string{},
	}
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, fmt.Errorf("read root: %w", err)
	}
	for _, e := range entries {
		s.Root = append(s.Root, e.Name())
	}
	for _, dir := range strings.Fields(os.Getenv("READ")) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			s.Files[path] = string(b)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
	}
	for _, dir := range strings.Fields(os.Getenv("WRITE")) {
		if os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600) == nil {
			s.Writable = append(s.Writable, dir)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") || strings.HasPrefix(line, "NoNewPrivs") {
			s.Status = append(s.Status, strings.Join(strings.Fields(line), " "))
		}
	}
	return s, nil
}
