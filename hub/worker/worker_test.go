// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"kumodo.io/convoy/hub/worker"
)

const childArg = "worker-under-test"

var limits = worker.Limits{ResidentBytes: 256 << 20, AddressBytes: 2 << 30, HeapBytes: 200 << 20, JobCPU: 2 * time.Second, Jobs: 10, FileBytes: 1 << 20}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childArg {
		child(os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

// child does what its job says.
func child(args []string) {
	barrier := worker.BarrierAll
	if args[0] == "process" {
		barrier = worker.BarrierProcess
	}
	set, err := worker.Confine(args[1:], barrier)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := worker.Serve(os.Stdin, os.Stdout, set, func(call *worker.Call) (any, any) {
		var what string
		if err := json.Unmarshal(call.Job, &what); err != nil {
			return nil, err.Error()
		}
		return act(what, call)
	}); err != nil {
		os.Exit(1)
	}
}

func act(what string, call *worker.Call) (done, failed any) {
	tell := func(err error) (any, any) {
		if err == nil {
			return "it worked", nil
		}
		return nil, err.Error()
	}
	switch what {
	case "echo":
		if _, err := io.Copy(call.Out, call.Data); err != nil {
			return tell(err)
		}
		return "echoed", nil
	case "fail":
		return nil, "no"
	case "environment":
		return len(os.Environ()), nil
	case "socket":
		_, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		return tell(err)
	case "dial":
		_, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", "127.0.0.1:1")
		return tell(err)
	case "listen":
		_, err := net.Listen("tcp", "127.0.0.1:0")
		return tell(err)
	case "read a host file":
		_, err := os.ReadFile("/etc/passwd")
		return tell(err)
	case "write a file":
		return tell(os.WriteFile("x", make([]byte, 100), 0o600))
	case "write a large file":
		return tell(os.WriteFile("x", make([]byte, 2<<20), 0o600))
	case "run a program":
		return tell(exec.Command("/bin/true").Run())
	case "signal the parent":
		return tell(syscall.Kill(os.Getppid(), 0))
	case "fork":
		_, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 {
			os.Exit(0)
		}
		return tell(errno)
	case "garbage collect":
		debug.FreeOSMemory()
		return "ok", nil
	case "loop":
		for { //nolint:revive // it is what the test is about
		}
	case "wait":
		select {}
	case "recurse":
		return recurse(0), nil
	case "allocate":
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 8<<20))
			_ = all
		}
	case "exit":
		if err := call.At("looking at a.yaml"); err != nil {
			return tell(err)
		}
		os.Exit(7)
	case "panic":
		panic("boom")
	case "write garbage":
		_, err := os.Stdout.Write([]byte("this is not a frame, and it is long enough"))
		return tell(err)
	case "answer without reading":
		if err := worker.WriteJSON(os.Stdout, worker.Done, "early"); err != nil {
			return tell(err)
		}
		select {}
	}
	return nil, "unknown job"
}

//go:noinline
func recurse(n int) int { return recurse(n+1) + 1 }

func start(t *testing.T, barrier string, limits worker.Limits) *worker.Process {
	t.Helper()
	p, err := worker.Start(worker.Self(childArg, barrier), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// do gives the data and the text of the last frame.
func do(ctx context.Context, p *worker.Process, what string, data io.Reader) (out []byte, last string, err error) {
	err = p.Do(ctx, time.Minute, what, data, func(kind worker.Kind, payload []byte) error {
		if kind == worker.Data {
			out = append(out, payload...)
			return nil
		}
		last = string(kind) + string(payload)
		return nil
	})
	return out, last, err
}

func TestAWorkerDoesOneJobAfterTheOther(t *testing.T) {
	p := start(t, "all", limits)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	for _, data := range [][]byte{nil, []byte("short"), big} {
		out, last, err := do(t.Context(), p, "echo", bytes.NewReader(data))
		if err != nil || !bytes.Equal(out, data) || last != `O"echoed"` {
			t.Fatalf("%d of %d bytes, %s, %v", len(out), len(data), last, err)
		}
		// A job that fails before it has read its data leaves the worker usable.
		if _, last, err := do(t.Context(), p, "fail", bytes.NewReader(big)); err != nil || last != `E"no"` {
			t.Fatalf("%s, %v", last, err)
		}
	}
}

func TestARenderWorkerHasNoNetworkNoFilesNoProgramsNoEnvironment(t *testing.T) {
	p := start(t, "all", limits)
	for _, what := range []string{"socket", "dial", "listen", "read a host file", "write a file", "run a program", "signal the parent", "fork"} {
		_, last, err := do(t.Context(), p, what, nil)
		if err != nil || !strings.HasPrefix(last, "E") || !strings.Contains(last, "operation not permitted") {
			t.Errorf("%s: %s, %v", what, last, err)
		}
	}
	if _, last, err := do(t.Context(), p, "environment", nil); err != nil || last != "O0" {
		t.Errorf("environment variables: %s, %v", last, err)
	}
	if _, last, err := do(t.Context(), p, "garbage collect", nil); err != nil || last != `O"ok"` {
		t.Errorf("garbage collection: %s, %v", last, err)
	}
}

func TestAFetchWorkerHasNetworkAndFilesButNoPrograms(t *testing.T) {
	p := start(t, "process", limits)
	for what, want := range map[string]string{"socket": "O", "listen": "O", "write a file": "O", "run a program": "E", "signal the parent": "E", "fork": "E", "write a large file": "E"} {
		_, last, err := do(t.Context(), p, what, nil)
		if err != nil || !strings.HasPrefix(last, want) {
			t.Errorf("%s: %s, %v", what, last, err)
		}
	}
}

func TestAWorkerThatMisbehavesIsEndedAndSaysWhy(t *testing.T) {
	tests := []struct {
		what string
		want error
		text string
	}{
		{"loop", worker.ErrCPU, "2s"},
		{"recurse", worker.ErrDeep, "recurses too deep"},
		{"allocate", nil, "memory"},
		{"exit", worker.ErrDied, "looking at a.yaml: the worker process died (exit status 7)"},
		{"panic", worker.ErrDied, "panic: boom"},
		{"write garbage", worker.ErrDied, ""},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			p := start(t, "all", limits)
			_, _, err := do(t.Context(), p, test.what, nil)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAJobThatTakesTooLongIsEnded(t *testing.T) {
	for _, what := range []string{"wait", "answer without reading"} {
		p := start(t, "all", limits)
		begin := time.Now()
		err := p.Do(t.Context(), 300*time.Millisecond, what, bytes.NewReader(make([]byte, 1<<20)), func(worker.Kind, []byte) error { return nil })
		if !errors.Is(err, worker.ErrDeadline) || time.Since(begin) > 3*time.Second {
			t.Errorf("%s: after %s: %v", what, time.Since(begin), err)
		}
	}
}

func TestAJobThatIsGivenUpEndsItsWorker(t *testing.T) {
	p := start(t, "all", limits)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, _, err := do(ctx, p, "wait", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestABrokenSourceIsToldAsSuch(t *testing.T) {
	p := start(t, "all", limits)
	broken := errors.New("disk on fire")
	if _, _, err := do(t.Context(), p, "echo", iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestAWorkerEndsWhenItsHubIsGone(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], childArg, "all", "{}")
	cmd.Stdin = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(in.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}

func TestAWorkerIsNotStartedByHand(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), os.Args[0], childArg, "all").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "started by the hub") {
		t.Errorf("%s, %v", out, err)
	}
}
