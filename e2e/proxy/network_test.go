// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kumodo.io/convoy/e2e/harness"
)

// network is a network namespace without a name. It is there as long as this
// process or a program in it is, and with it goes what is in it, so that nothing
// has to be removed, even after kill -9: the programs are a supervisor's, which
// outlives this process just long enough to end them.
type network struct {
	name string
	file *os.File
}

const thisNetwork = "/proc/thread-self/ns/net"

// newNetwork makes a namespace that has loopback and passes nothing on.
func newNetwork(ctx context.Context, name string) (*network, error) {
	n := &network{name: name}
	err := onThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() (err error) {
		if n.file, err = os.Open(thisNetwork); err != nil {
			return fmt.Errorf("open network: %w", err)
		}
		for _, key := range []string{"ip_forward", "conf/all/rp_filter", "conf/default/rp_filter"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+key, []byte("0"), 0o600); err != nil {
				return fmt.Errorf("set %s: %w", key, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("network %s: these tests need root and network namespaces: %w", name, err)
	}
	return n, n.ip(ctx, "link", "set", "lo", "up")
}

// onThread runs f on a thread whose network enter has changed, and leaves no
// thread of this process behind in it.
func onThread(enter, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open(thisNetwork)
		if err != nil {
			result <- err
			return
		}
		defer home.Close()
		if err = enter(); err == nil {
			err = f()
		}
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread() // otherwise the thread ends with this goroutine
		}
		result <- err
	}()
	return <-result
}

// inside runs f in the network. f makes its sockets itself, not in goroutines.
func (n *network) inside(f func() error) error {
	if n == nil {
		return f()
	}
	return onThread(func() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }, f)
}

// path of the namespace, for other programs.
func (n *network) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// close lets go of the namespace.
func (n *network) close() error { return n.file.Close() }

// command runs in the network.
func (n *network) command(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + n.path(), "--", program}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v in %s: %w: %s", program, args, n.name, err, out)
	}
	return nil
}

func (n *network) ip(ctx context.Context, args ...string) error { return n.command(ctx, "ip", args...) }

// start starts a program in the network. It ends with the supervisor.
func (n *network) start(ctx context.Context, sup *harness.Supervisor, p harness.Program) (*harness.Process, error) {
	p.Args = append([]string{"--net=" + n.path(), "--", p.Path}, p.Args...)
	p.Path = "nsenter"
	return sup.Start(ctx, p)
}

// dial connects out of the network. The address is an IP address with a port.
func (n *network) dial(ctx context.Context, protocol, address string) (conn net.Conn, err error) {
	err = n.inside(func() error {
		conn, err = (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, protocol, address)
		return err
	})
	return conn, err
}

// listen listens in the network.
func (n *network) listen(ctx context.Context, address string) (l net.Listener, err error) {
	err = n.inside(func() error {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		return err
	})
	return l, err
}

// answers waits until something in the network takes connections.
func (n *network) answers(ctx context.Context, address string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := n.dial(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("nobody answers on %s in %s: %w", address, n.name, err)
		}
	}
}

// subnets counts the links, so that each has addresses of its own.
var subnets atomic.Int32

// link joins two networks by a cable whose ends are named after its number, and
// gives the addresses of both ends.
type link struct {
	a, b         *network
	aEnd, bEnd   string
	aAddr, bAddr string
}

func newLink(ctx context.Context, a, b *network) (*link, error) {
	l := number(a, b)
	if err := a.ip(ctx, "link", "add", "name", l.aEnd, "type", "veth", "peer", "name", l.bEnd, "netns", b.path()); err != nil {
		return nil, err
	}
	return l, l.up(ctx)
}

// number gives a link its names and addresses.
func number(a, b *network) *link {
	n := subnets.Add(1)
	// Addresses that are set aside for measuring networks.
	base := netip.AddrFrom4([4]byte{198, 18, byte(1 + n/64), byte(4 * (n % 64))})
	l := &link{a: a, b: b, aEnd: "a" + strconv.Itoa(int(n)), bEnd: "b" + strconv.Itoa(int(n))}
	l.aAddr, l.bAddr = base.Next().String(), base.Next().Next().String()
	return l
}

func (l *link) up(ctx context.Context) error {
	return errors.Join(
		l.a.ip(ctx, "addr", "add", l.aAddr+"/30", "dev", l.aEnd), l.a.ip(ctx, "link", "set", l.aEnd, "up"),
		l.b.ip(ctx, "addr", "add", l.bAddr+"/30", "dev", l.bEnd), l.b.ip(ctx, "link", "set", l.bEnd, "up"))
}

// route leads an address, that of a hub, from a over the link.
func (l *link) route(ctx context.Context, to string) error {
	return l.a.ip(ctx, "route", "replace", to, "via", l.bAddr)
}

// relay passes on connections from a listener in one network to an address that
// is dialled from another (nil: that of this process). It stands for what is on
// the machine itself: an agent's own API server, the hub's own host.
type relay struct {
	listener net.Listener
	open     sync.WaitGroup
	stop     context.CancelFunc
}

func newRelay(ctx context.Context, from *network, listen string, to *network, target string) (*relay, error) {
	return newTap(ctx, from, listen, to, target, func(down, up net.Conn) (toUp, toDown io.Writer) { return up, down })
}

// newTap is a relay that lets open choose where the bytes of a connection go.
func newTap(ctx context.Context, from *network, listen string, to *network, target string, open func(down, up net.Conn) (toUp, toDown io.Writer)) (*relay, error) {
	l, err := from.listen(ctx, listen)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &relay{listener: l, stop: cancel}
	r.open.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			r.open.Go(func() { r.pass(ctx, down, to, target, open) })
		}
	})
	return r, nil
}

func (r *relay) pass(ctx context.Context, down net.Conn, to *network, target string, open func(down, up net.Conn) (toUp, toDown io.Writer)) {
	defer down.Close()
	up, err := to.dial(ctx, "tcp", target)
	if err != nil {
		return // the other end sees the end of its connection
	}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { down.Close(); up.Close() })()
	toUp, toDown := open(down, up)
	var both sync.WaitGroup
	both.Go(func() { flow(up, toUp, down) })
	both.Go(func() { flow(down, toDown, up) })
	both.Wait()
}

// flow copies until one of the two ends, and tells the receiver.
func flow(to net.Conn, w io.Writer, from net.Conn) {
	_, err := io.Copy(w, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}

// close ends the relay and all that goes through it.
func (r *relay) close() error {
	err := r.listener.Close()
	r.stop()
	r.open.Wait()
	return err
}
