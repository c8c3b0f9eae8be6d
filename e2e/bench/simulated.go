// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kumodo.io/convoy/e2e/harness"
)

// look is how often simulated agents say what they have done, and are asked.
const look = 250 * time.Millisecond

// simulated is one process of e2e/simagent.
type simulated struct {
	process *harness.Process
	agents  int
}

// done is what simulated agents say; the fields are those of e2e/simagent.
type done struct {
	Connected    int     `json:"connected"`
	Current      int     `json:"current"`
	Accepted     int64   `json:"accepted"`
	Refused      int64   `json:"refused"`
	Applied      int64   `json:"applied"`
	Acknowledged int64   `json:"acknowledged"`
	FetchFailed  int64   `json:"fetchFailed"`
	FetchRetried int64   `json:"fetchRetried"`
	Repeated     int64   `json:"repeated"`
	Received     int64   `json:"received"`
	Sent         int64   `json:"sent"`
	Frames       int64   `json:"frames"`
	Dials        int64   `json:"dials"`
	Crowd        int64   `json:"crowd"`
	Shortest     float64 `json:"shortest"`
}

// buildSimulated builds e2e/simagent.
func buildSimulated(ctx context.Context) (string, error) {
	root, err := harness.RepoRoot()
	if err != nil {
		return "", err
	}
	program := filepath.Join(root, "bin", "simagent")
	return program, harness.BuildProgram(ctx, "./e2e/simagent", program)
}

// simulate starts agents from..to of the fleet in a process of their own.
func (f *fleet) simulate(ctx context.Context, from, to int, args ...string) (*simulated, error) {
	f.starts++
	name := fmt.Sprintf("simagent-%d", f.starts)
	file := filepath.Join(f.dir, name+".identities")
	if err := writeLines(file, f.identities[from:to]); err != nil {
		return nil, err
	}
	process, err := f.supervisor.Start(ctx, harness.Program{
		Name: name, Path: f.program, Env: append(os.Environ(), "GOGC=200"),
		Args: append([]string{"--identities", file, "--first", strconv.Itoa(from), "--spread", "--every", look.String()}, args...),
	})
	if err != nil {
		return nil, err
	}
	return &simulated{process, to - from}, nil
}

// writeLines writes JSON, one value a line.
func writeLines[T any](path string, all []T) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	out := json.NewEncoder(file)
	for _, one := range all {
		if err = out.Encode(one); err != nil {
			break
		}
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// now reads what the process said last.
func (s *simulated) now() (done, error) {
	var said done
	if !s.process.Running() {
		return said, fmt.Errorf("simagent has ended: %s", s.process.Log())
	}
	file, err := os.Open(s.process.Log())
	if err != nil {
		return said, err
	}
	defer file.Close()
	const tail = 4 << 10
	if info, err := file.Stat(); err == nil && info.Size() > tail {
		if _, err := file.Seek(-tail, io.SeekEnd); err != nil {
			return said, err
		}
	}
	raw, err := io.ReadAll(file)
	if err != nil {
		return said, err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for i := len(lines) - 1; i >= 0; i-- { // the newest may be half written
		if json.Unmarshal([]byte(lines[i]), &said) == nil {
			return said, nil
		}
	}
	return done{}, nil // nothing yet
}

// now adds up what all simulated agents say.
func (f *fleet) now() (done, error) {
	var all done
	for _, s := range f.running {
		d, err := s.now()
		if err != nil {
			return all, err
		}
		all.Connected += d.Connected
		all.Current += d.Current
		all.Accepted += d.Accepted
		all.Refused += d.Refused
		all.Applied += d.Applied
		all.Acknowledged += d.Acknowledged
		all.FetchFailed += d.FetchFailed
		all.FetchRetried += d.FetchRetried
		all.Repeated += d.Repeated
		all.Received += d.Received
		all.Sent += d.Sent
		all.Frames += d.Frames
		all.Dials += d.Dials
		all.Crowd = max(all.Crowd, d.Crowd)
		if all.Shortest == 0 || d.Shortest != 0 && d.Shortest < all.Shortest {
			all.Shortest = d.Shortest
		}
	}
	return all, nil
}

// until waits until the simulated agents have done what is asked.
func (f *fleet) until(ctx context.Context, what string, is func(done) bool) (done, error) {
	for {
		d, err := f.now()
		if err != nil || is(d) {
			return d, err
		}
		if err := pause(ctx, look); err != nil {
			return d, fmt.Errorf("%s: %+v: %w", what, d, err)
		}
	}
}

// connect starts agents from..to and waits until each is connected and knows its
// orders. It gives the time that took.
func (f *fleet) connect(ctx context.Context, from, to int, args ...string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	s, err := f.simulate(ctx, from, to, args...)
	if err != nil {
		return 0, err
	}
	f.running = append(f.running, s)
	_, err = f.until(ctx, "connect", func(d done) bool { return d.Current == f.agents() })
	return time.Since(start), err
}

// agents that are running.
func (f *fleet) agents() int {
	n := 0
	for _, s := range f.running {
		n += s.agents
	}
	return n
}

// disconnect ends all simulated agents.
func (f *fleet) disconnect(ctx context.Context) error {
	for _, s := range f.running {
		if err := s.process.Kill9(ctx); err != nil {
			return err
		}
	}
	f.running = nil
	return nil
}
