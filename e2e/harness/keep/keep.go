// SPDX-License-Identifier: Apache-2.0

// Package keep starts control planes that stay when the program that started
// them ends, and ends them by name. Their state lies in the folder .cluster of
// the repository, which ignores itself. It stands outside the flow: it is for
// people who try things out, and for the demo.
package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"kumodo.io/convoy/e2e/harness"
)

const (
	// folder holds the state, below the root of the repository.
	folder = ".cluster"
	// stateFile is written last, when the plane is ready.
	stateFile = "state.json"
	// endTimeout is how long a supervisor may take to end.
	endTimeout = 30 * time.Second
	endPoll    = 20 * time.Millisecond
)

var (
	// ErrExists is returned for a name that is taken.
	ErrExists = errors.New("cluster exists already")
	// ErrUnknown is returned for a name that is not.
	ErrUnknown = errors.New("no such cluster")
	// ErrName is returned for a name that cannot be one.
	ErrName = errors.New("not a name for a cluster")
)

// State is what is known of a kept plane.
type State struct {
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	// Dir is the plane's folder, with its logs and the audit log.
	Dir string `json:"dir"`
	URL string `json:"url"`
	// Supervisor is the process that holds the plane. Born is its start in
	// clock ticks after boot, so that no other process is taken for it.
	Supervisor int    `json:"supervisor"`
	Born       string `json:"born"`
}

// Running says whether the plane's supervisor lives.
func (s *State) Running() bool {
	born, err := birth(s.Supervisor)
	return err == nil && born == s.Born
}

// Up starts a plane of that name and leaves it running. Name and Dir of opts
// are set here.
func Up(ctx context.Context, name string, opts harness.Options) (*State, error) {
	dir, err := place(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	// Making the folder is what takes the name.
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s: %w", name, ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("start cluster: %w", err)
	}
	opts.Name, opts.Dir = name, dir
	p, err := harness.Start(ctx, opts)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	state, err := detach(ctx, p, dir)
	if err != nil {
		return nil, errors.Join(err, p.Stop(), os.RemoveAll(dir))
	}
	return state, nil
}

func detach(ctx context.Context, p *harness.Plane, dir string) (*State, error) {
	sup := p.Supervisor()
	state := &State{Name: p.Name(), Kubeconfig: p.Kubeconfig(), Dir: p.Dir(), URL: p.URL(), Supervisor: sup.PID()}
	var err error
	if state.Born, err = birth(state.Supervisor); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode state: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), append(b, '\n'), 0o600); err != nil {
		return nil, fmt.Errorf("write state: %w", err)
	}
	if err := sup.RemoveAtEnd(ctx, dir); err != nil {
		return nil, err
	}
	return state, sup.Detach(ctx)
}

// Down ends the plane of that name and removes what it left. One whose
// processes have ended already is removed.
func Down(ctx context.Context, name string) error {
	dir, err := place(name)
	if err != nil {
		return err
	}
	state, err := read(dir)
	if err != nil {
		return err
	}
	if state.Running() {
		if err := syscall.Kill(state.Supervisor, syscall.SIGTERM); err != nil {
			return fmt.Errorf("end cluster %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for state.Running() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("end cluster %s: process %d is still there: %w", name, state.Supervisor, context.Cause(ctx))
		case <-tick.C:
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("end cluster %s: %w", name, err)
	}
	return nil
}

// Get gives the state of one plane.
func Get(name string) (*State, error) {
	dir, err := place(name)
	if err != nil {
		return nil, err
	}
	return read(dir)
}

// List gives the state of all planes, by name.
func List() ([]*State, error) {
	root, err := harness.RepoRoot()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var all []*State
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		s, err := read(filepath.Join(root, folder, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// place gives the folder of a name.
func place(name string) (string, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("%q: %w: %s", name, ErrName, strings.Join(problems, "; "))
	}
	root, err := harness.RepoRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, folder, name), nil
}

// read reads the state of a folder. A folder without one is that of a plane
// which is starting, or whose start was killed.
func read(dir string) (*State, error) {
	name := filepath.Base(dir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, ErrUnknown)
	}
	b, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return &State{Name: name, Dir: dir}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state of %s: %w", name, err)
	}
	state := &State{}
	if err := json.Unmarshal(b, state); err != nil {
		return nil, fmt.Errorf("read state of %s: %w", name, err)
	}
	return state, nil
}

// birth gives the start of a living process in clock ticks after boot.
func birth(pid int) (string, error) {
	const state, start = 0, 19 // counted from behind the name
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", fmt.Errorf("look at process: %w", err)
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) <= start || fields[state] == "Z" {
		return "", fmt.Errorf("look at process %d: %w", pid, os.ErrProcessDone)
	}
	return fields[start], nil
}
