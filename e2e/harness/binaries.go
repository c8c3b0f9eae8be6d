// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// kubeVersion is what the Kubernetes programs report; it must agree with
// e2e/kube/go.mod, which a test asserts.
const kubeVersion = "v1.37.2"

// modulePath is how the repository's go.mod begins.
const modulePath = "module kumodo.io/convoy"

// kwokStages is the file, beside the programs, that tells kwok what to do.
const kwokStages = "kwok-stages.yaml"

// buildForm is raised when what is made of the same sources changes.
const buildForm = "2"

// Bin is the folder with the programs of a control plane.
type Bin string

// Path gives the path of one program: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubectl, kwok or supervisor.
func (b Bin) Path(program string) string { return filepath.Join(string(b), program) }

// tools maps the packages of e2e/kube to the names of their programs.
var tools = []struct{ pkg, name string }{
	{"go.etcd.io/etcd/server/v3", "etcd"},
	{"k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"},
	{"k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"},
	{"k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"},
	{"k8s.io/kubernetes/cmd/kubectl", "kubectl"},
	{"sigs.k8s.io/kwok/cmd/kwok", "kwok"},
}

// RepoRoot finds the root of the repository above the working directory. It
// fails with ErrNoRepository elsewhere.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	root, err := repoAbove(dir)
	if _, source, _, ok := runtime.Caller(0); ok && errors.Is(err, ErrNoRepository) && filepath.IsAbs(source) {
		return repoAbove(filepath.Dir(source))
	}
	return root, err
}

func repoAbove(dir string) (string, error) {
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		switch {
		case err == nil && bytes.HasPrefix(b, []byte(modulePath+"\n")):
			return dir, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("find repository: %w", err)
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", ErrNoRepository
		}
		dir = up
	}
}

// Binaries returns the folder with the programs, building what is missing or
// stale first: minutes when everything is, milliseconds when nothing is.
// Processes that call it at the same time wait for one another.
func Binaries(ctx context.Context) (Bin, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".kube")
	bin := Bin(filepath.Join(dir, "bin"))
	if err := os.MkdirAll(string(bin), 0o755); err != nil {
		return "", fmt.Errorf("build programs: %w", err)
	}
	// The folder ignores itself, whatever the repository's own list says.
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600); err != nil {
		return "", fmt.Errorf("build programs: %w", err)
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", fmt.Errorf("build programs: %w", err)
	}
	err = buildAll(ctx, root, bin)
	return bin, errors.Join(err, lock.Close())
}

// lockFile waits for an exclusive lock, which ends when the file is closed or
// its process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, f.Close()))
		}
	}
}

func buildAll(ctx context.Context, root string, bin Bin) error {
	kube := filepath.Join(root, "e2e", "kube")
	stamp, err := digest(filepath.Join(kube, "go.mod"), filepath.Join(kube, "go.sum"))
	if err != nil {
		return err
	}
	err = ifStale(bin, "kube", stamp, func() error { return buildKube(ctx, kube, bin) })
	if err != nil {
		return err
	}

	own := filepath.Join(root, "e2e", "harness")
	sources, err := filepath.Glob(filepath.Join(own, "supervisor", "*.go"))
	if err != nil {
		return fmt.Errorf("build supervisor: %w", err)
	}
	sources = append(sources, filepath.Join(own, "internal", "message", "message.go"))
	if stamp, err = digest(sources...); err != nil {
		return err
	}
	return ifStale(bin, "supervisor", stamp, func() error {
		return goBuild(ctx, root, "-o", bin.Path("supervisor"), "./e2e/harness/supervisor")
	})
}

// ifStale runs build unless the stamp of that name says that it has been done
// from the same input with the same Go version.
func ifStale(bin Bin, name, stamp string, build func() error) error {
	file := bin.Path(name + ".stamp")
	stamp += " " + runtime.Version() + " " + kubeVersion + " " + buildForm + "\n"
	if b, err := os.ReadFile(file); err == nil && string(b) == stamp {
		return nil
	}
	if err := build(); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	if err := os.WriteFile(file, []byte(stamp), 0o600); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	return nil
}

func buildKube(ctx context.Context, dir string, bin Bin) error {
	parts := strings.Split(strings.TrimPrefix(kubeVersion, "v"), ".")
	const version = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s",
		version, kubeVersion, version, parts[0], version, parts[1])
	for _, t := range tools {
		if err := goBuild(ctx, dir, "-ldflags", flags, "-o", bin.Path(t.name), t.pkg); err != nil {
			return err
		}
	}
	return writeStages(ctx, dir, bin)
}

// writeStages joins the stages that kwok's own module ships: a node and its
// pods are Ready at once, a Job's pods succeed, deleted pods go, claims of the
// storage class are bound.
func writeStages(ctx context.Context, dir string, bin Bin) error {
	out, err := goCommand(ctx, dir, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, kind := range []string{"node/fast/node-*", "pod/fast/pod-*", "volume/fast/pv-*", "volume/fast/pvc-*"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(out), "kustomize", "stage", kind+".yaml"))
		if err != nil {
			return fmt.Errorf("find kwok's stages: %w", err)
		}
		if len(files) == 0 {
			return fmt.Errorf("find kwok's stages for %s: %w", kind, fs.ErrNotExist)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return fmt.Errorf("read kwok's stages: %w", err)
			}
			all.WriteString("---\n")
			all.Write(b)
		}
	}
	if err := os.WriteFile(bin.Path(kwokStages), all.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write kwok's stages: %w", err)
	}
	return nil
}

// BuildProgram builds one program of this repository, such as "./hub", into a
// file, as it is shipped: static, without the race detector; flags are those of go build.
func BuildProgram(ctx context.Context, pkg, out string, flags ...string) error {
	root, err := RepoRoot()
	if err != nil {
		return err
	}
	return goBuild(ctx, root, append(flags, "-o", out, pkg)...)
}

// goBuild builds with the settings that all programs share, so that the build
// cache is shared as well: no cgo, and no flag that changes the compiler.
func goBuild(ctx context.Context, dir string, args ...string) error {
	_, err := goCommand(ctx, dir, append([]string{"build"}, args...)...)
	return err
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=", "GOARCH=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", &CommandError{Args: cmd.Args, Stderr: stderr.String(), Err: err}
	}
	return stdout.String(), nil
}

// digest hashes the named files.
func digest(files ...string) (string, error) {
	h := sha256.New()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("hash sources: %w", err)
		}
		sum := sha256.Sum256(b)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
