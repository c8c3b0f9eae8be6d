// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// SaveLogs copies every log of the plane and of what was started through it,
// the audit log too, into a folder, under the paths that they have in the
// supervisor's folder. Logs go with the plane otherwise.
func (p *Plane) SaveLogs(dir string) error {
	return p.eachLog(func(path, name string) error {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("save logs: %w", err)
		}
		return copyFile(path, to)
	})
}

// eachLog calls visit with the path of each log and its path relative to the
// supervisor's folder.
func (p *Plane) eachLog(visit func(path, name string) error) error {
	root := p.sup.Dir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "claims" {
			return filepath.SkipDir // data of pods, not ours to read
		}
		if !d.Type().IsRegular() || filepath.Ext(path) != ".log" {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return visit(path, name)
	})
	if err != nil {
		return fmt.Errorf("walk logs: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy log: %w", err)
	}
	defer func() {
		// Only read from: there is nothing that closing could lose.
		_ = in.Close()
	}()
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("copy log: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy log: %w", err)
	}
	return nil
}

// tellFailure shows the ends of the pods' logs of a test that failed, and
// saves all logs, which "go test -artifacts" keeps.
func (p *Plane) tellFailure(t testing.TB) {
	t.Helper()
	err := p.eachLog(func(path, name string) error {
		if strings.HasPrefix(name, "pods/") {
			t.Logf("plane %s, end of %s:\n%s", p.Name(), name, tail(path))
		}
		return nil
	})
	if err = errors.Join(err, p.SaveLogs(filepath.Join(t.ArtifactDir(), p.Name()))); err != nil {
		t.Logf("plane %s: %v", p.Name(), err)
		return
	}
	t.Logf("plane %s: logs are in %s when the test runs with -artifacts", p.Name(), t.ArtifactDir())
}
