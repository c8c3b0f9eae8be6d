// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"kumodo.io/convoy/e2e/harness/internal/message"
)

// enterPod runs as first process of new mount, pid, host name and IPC
// namespaces. It builds the root that the image and the kubelet would have
// given, drops what the securityContext drops, and becomes the program.
// It returns only on error.
func enterPod() error {
	// What is dropped is dropped for one thread: the one that calls exec.
	runtime.LockOSThread()
	f := os.NewFile(podSpecFD, "pod")
	b, err := io.ReadAll(io.LimitReader(f, message.MaxLine))
	if err != nil {
		return fmt.Errorf("read pod: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("read pod: %w", err)
	}
	var pod message.Pod
	if err := json.Unmarshal(b, &pod); err != nil {
		return fmt.Errorf("read pod: %w", err)
	}
	if err := unix.Sethostname([]byte(pod.Hostname)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	// Named by a path of this machine, which is out of sight later.
	if err := enterNetwork(pod.Network); err != nil {
		return err
	}
	if err := buildRoot(&pod); err != nil {
		return err
	}
	if err := dropPrivileges(&pod); err != nil {
		return err
	}
	if pod.WorkDir != "" {
		if err := os.Chdir(pod.WorkDir); err != nil {
			return fmt.Errorf("enter working directory: %w", err)
		}
	}
	// The parent-death signal is cleared by a change of user; set it again.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set parent-death signal: %w", err)
	}
	if err := syscall.Exec(pod.Path, append([]string{pod.Path}, pod.Args...), pod.Env); err != nil {
		return fmt.Errorf("exec %s: %w", pod.Path, err)
	}
	return nil
}

// enterNetwork moves this thread into a network namespace.
func enterNetwork(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open network: %w", err)
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close network: %w", err)
	}
	return nil
}

// buildRoot makes a root of tmpfs with /proc, a small /dev and the mounts,
// and moves into it. Nothing of this machine's files is seen but the mounts.
func buildRoot(pod *message.Pod) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", pod.Root, "tmpfs", unix.MS_NOSUID, "mode=0755,size=64m"); err != nil {
		return fmt.Errorf("mount root: %w", err)
	}
	proc := filepath.Join(pod.Root, "proc")
	if err := os.Mkdir(proc, 0o555); err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	mounts := make([]message.Mount, 0, len(pod.Mounts)+8)
	for _, d := range []string{"null", "zero", "full", "random", "urandom"} {
		mounts = append(mounts, message.Mount{From: "/dev/" + d, To: "/dev/" + d})
	}
	for _, e := range []string{"/etc/hosts", "/etc/resolv.conf"} {
		if _, err := os.Stat(e); err == nil {
			mounts = append(mounts, message.Mount{From: e, To: e, ReadOnly: true})
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look at %s: %w", e, err)
		}
	}
	for _, m := range append(mounts, pod.Mounts...) {
		if err := bind(pod.Root, m); err != nil {
			return err
		}
	}
	old := filepath.Join(pod.Root, ".old")
	if err := os.Mkdir(old, 0o700); err != nil {
		return fmt.Errorf("make old root: %w", err)
	}
	if err := unix.PivotRoot(pod.Root, old); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("enter root: %w", err)
	}
	if err := unix.Unmount("/.old", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave old root: %w", err)
	}
	if err := os.Remove("/.old"); err != nil {
		return fmt.Errorf("leave old root: %w", err)
	}
	if pod.ReadOnlyRoot {
		if err := unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID, ""); err != nil {
			return fmt.Errorf("make root read-only: %w", err)
		}
	}
	return nil
}

// bind mounts one file or folder, making its mount point first.
func bind(root string, m message.Mount) error {
	to := filepath.Join(root, m.To)
	info, err := os.Stat(m.From)
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.To, err)
	}
	if info.IsDir() {
		err = os.MkdirAll(to, 0o755)
	} else {
		if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
			err = os.WriteFile(to, nil, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.To, err)
	}
	if err := unix.Mount(m.From, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", m.To, err)
	}
	if m.ReadOnly {
		if err := unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("mount %s read-only: %w", m.To, err)
		}
	}
	return nil
}

func dropPrivileges(pod *message.Pod) error {
	if pod.DropCapabilities {
		for c := 0; c <= unix.CAP_LAST_CAP; c++ {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("drop capability %d: %w", c, err)
			}
		}
	}
	if err := syscall.Setgroups(pod.Groups); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setgid(pod.GID); err != nil {
		return fmt.Errorf("set group: %w", err)
	}
	if err := syscall.Setuid(pod.UID); err != nil {
		return fmt.Errorf("set user: %w", err)
	}
	if pod.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set no_new_privs: %w", err)
		}
	}
	return nil
}
