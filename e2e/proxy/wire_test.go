// SPDX-License-Identifier: Apache-2.0

//go:build debian

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// shape is what a wire does to packets in each direction.
type shape struct {
	// delay of each packet.
	delay time.Duration
	// loss is the part of packets that never arrives, 0 to 1.
	loss float64
	// rate in bits a second, 0 for no limit. What would wait for longer than
	// queueTime does not fit into the queue and is lost.
	rate float64
}

const (
	queueTime = 500 * time.Millisecond
	mtu       = 1500
	// inFlight bounds the packets that are on the wire in one direction.
	inFlight = 4096
)

// wire is a link whose packets go through this process, which delays and loses
// them: netem is not in every kernel, a tun device is. Real TCP stacks on both
// ends see a slow and lossy line.
type wire struct {
	*link
	ends  [2]*os.File
	shape atomic.Pointer[shape]
	loops sync.WaitGroup
	// passed and lost count packets.
	passed, lost atomic.Int64
}

func newWire(ctx context.Context, a, b *network, s shape) (*wire, error) {
	w := &wire{link: number(a, b)}
	w.shape.Store(&s)
	for i, end := range []struct {
		n    *network
		name string
	}{{a, w.aEnd}, {b, w.bEnd}} {
		var err error
		if w.ends[i], err = tun(end.n, end.name); err != nil {
			return nil, fmt.Errorf("wire between %s and %s: %w", a.name, b.name, err)
		}
	}
	if err := w.up(ctx); err != nil {
		return nil, err
	}
	for i := range w.ends {
		queue := make(chan packet, inFlight)
		w.loops.Go(func() { w.take(w.ends[i], queue, rand.New(rand.NewPCG(uint64(i), 18))) })
		w.loops.Go(func() { give(w.ends[1-i], queue) })
	}
	return w, nil
}

// tun makes a device in the network, whose packets are read and written here.
func tun(n *network, name string) (file *os.File, err error) {
	err = n.inside(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return fmt.Errorf("open tun: %w", err)
		}
		request, err := unix.NewIfreq(name)
		if err == nil {
			request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("make %s: %w", name, err), unix.Close(fd))
		}
		file = os.NewFile(uintptr(fd), name)
		return nil
	})
	return file, err
}

type packet struct {
	at   time.Time
	data []byte
}

// take reads packets and decides when, and whether, they arrive.
func (w *wire) take(from *os.File, queue chan<- packet, chance *rand.Rand) {
	defer close(queue)
	var busy time.Time // until when the line sends what came before
	buf := make([]byte, 2*mtu)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		s, now := w.shape.Load(), time.Now()
		if busy.Before(now) {
			busy = now
		}
		if chance.Float64() < s.loss || busy.Sub(now) > queueTime {
			w.lost.Add(1)
			continue
		}
		if s.rate > 0 {
			busy = busy.Add(time.Duration(float64(n) * 8 / s.rate * float64(time.Second)))
		}
		select {
		case queue <- packet{at: busy.Add(s.delay), data: append([]byte(nil), buf[:n]...)}:
			w.passed.Add(1)
		default:
			w.lost.Add(1)
		}
	}
}

// give writes packets when their time has come.
func give(to *os.File, queue <-chan packet) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for p := range queue {
		if wait := time.Until(p.at); wait > 0 {
			timer.Reset(wait)
			<-timer.C
		}
		if _, err := to.Write(p.data); errors.Is(err, os.ErrClosed) {
			return // a device that is down refuses packets, as a line that is cut
		}
	}
}

// close unplugs the wire.
func (w *wire) close() error {
	err := errors.Join(w.ends[0].Close(), w.ends[1].Close())
	w.loops.Wait()
	return err
}
