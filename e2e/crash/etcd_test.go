// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"kumodo.io/convoy/e2e/harness"
)

// prefix of all that a hub stores.
const prefix = "/registry/convoy.kumodo.io/"

// relay stands between a hub and its etcd, passes every call on as it is, and counts
// transactions that write below prefix. At the n-th it kills the hub: before etcd has
// it, or after etcd has answered and before the hub knows.
type relay struct {
	server *grpc.Server
	client *grpc.ClientConn
	// Address for --etcd-servers.
	Address string
	done    chan error

	mu     sync.Mutex
	n, at  int
	after  bool
	kill   func() error
	killed chan struct{}
	failed error
	writes []string
}

// startEtcd starts an etcd of its own beside the host's, with a relay before it.
func startEtcd(ctx context.Context, host *harness.Plane, dir string) (*relay, *harness.Process, error) {
	bin, err := harness.Binaries(ctx)
	if err != nil {
		return nil, nil, err
	}
	socket, peer := "unix://"+filepath.Join(dir, "e.sock"), "unix://"+filepath.Join(dir, "p.sock")
	process, err := host.Run(ctx, harness.Program{
		Name: "etcd-of-the-hub", Path: bin.Path("etcd"),
		Args: []string{
			"--name=default", "--data-dir=" + filepath.Join(dir, "etcd"), "--listen-client-urls=" + socket, "--advertise-client-urls=" + socket,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
			"--log-level=warn", "--unsafe-no-fsync=true",
		},
	})
	if err != nil {
		return nil, nil, err
	}
	client, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(frames{}), grpc.MaxCallRecvMsgSize(maxFrame), grpc.MaxCallSendMsgSize(maxFrame)))
	if err != nil {
		return nil, nil, fmt.Errorf("relay: %w", err)
	}
	r := &relay{client: client, Address: "unix://" + filepath.Join(dir, "r.sock"), done: make(chan error, 1), killed: make(chan struct{})}
	r.server = grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.UnknownServiceHandler(r.serve), grpc.MaxRecvMsgSize(maxFrame), grpc.MaxSendMsgSize(maxFrame))
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "unix", filepath.Join(dir, "r.sock"))
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	go func() { r.done <- r.server.Serve(listener) }()
	return r, process, nil
}

// maxFrame is the largest message that passes.
const maxFrame = 64 << 20

// frames passes messages as bytes.
type frames struct{}

type frame []byte

var errFrame = errors.New("not a frame")

// Marshal implements encoding.Codec.
func (frames) Marshal(v any) ([]byte, error) {
	if f, ok := v.(*frame); ok {
		return *f, nil
	}
	return nil, errFrame
}

// Unmarshal implements encoding.Codec.
func (frames) Unmarshal(data []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return errFrame
	}
	*f = bytes.Clone(data)
	return nil
}

// Name implements encoding.Codec: that of protobuf, which both ends speak.
func (frames) Name() string { return "proto" }

// Calls that write.
const (
	callTxn    = "/etcdserverpb.KV/Txn"
	callPut    = "/etcdserverpb.KV/Put"
	callDelete = "/etcdserverpb.KV/DeleteRange"
)

func (r *relay) serve(_ any, from grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(from)
	ctx := from.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md.Copy())
	}
	if method == callTxn || method == callPut || method == callDelete {
		var request, answer frame
		if err := from.RecvMsg(&request); err != nil {
			return err
		}
		what := written(method, request)
		mine, after := r.count(what)
		if mine && !after {
			return r.strike()
		}
		err := r.client.Invoke(ctx, method, &request, &answer)
		if mine {
			return errors.Join(err, r.strike())
		}
		if err != nil {
			return err
		}
		return from.SendMsg(&answer)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to, err := r.client.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var f frame
			if err := from.RecvMsg(&f); err != nil {
				if errors.Is(err, io.EOF) {
					err = to.CloseSend()
				}
				if err != nil {
					cancel()
				}
				return
			}
			if err := to.SendMsg(&f); err != nil {
				return // the answer says why
			}
		}
	}()
	for {
		var f frame
		switch err := to.RecvMsg(&f); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := from.SendMsg(&f); err != nil {
			return err
		}
	}
}

// written names what a call writes below prefix, or nothing.
func written(method string, request frame) string {
	below := func(verb string, key []byte) string {
		if !bytes.HasPrefix(key, []byte(prefix)) {
			return ""
		}
		return verb + " " + string(key[len(prefix):])
	}
	switch method {
	case callPut:
		var in etcdserverpb.PutRequest
		if err := proto.Unmarshal(request, &in); err == nil {
			return below("put", in.Key)
		}
	case callDelete:
		var in etcdserverpb.DeleteRangeRequest
		if err := proto.Unmarshal(request, &in); err == nil {
			return below("delete", in.Key)
		}
	default:
		var in etcdserverpb.TxnRequest
		if err := proto.Unmarshal(request, &in); err != nil {
			return ""
		}
		for _, op := range in.Success {
			what := ""
			if put := op.GetRequestPut(); put != nil {
				what = below("put", put.Key)
			} else if gone := op.GetRequestDeleteRange(); gone != nil {
				what = below("delete", gone.Key)
			}
			if what != "" {
				return what
			}
		}
	}
	return ""
}

// count says whether this call is the one.
func (r *relay) count(what string) (mine, after bool) {
	if what == "" {
		return false, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	r.writes = append(r.writes, what)
	return r.n == r.at, r.after
}

// strike kills the hub and gives what its call gets.
func (r *relay) strike() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.kill(); err != nil {
		r.failed = err
	}
	close(r.killed)
	return errKilled
}

// arm begins to count anew. n is 0 for a run that nothing disturbs.
func (r *relay) arm(n int, after bool, kill func() error) (killed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n, r.at, r.after, r.kill, r.killed, r.writes = 0, n, after, kill, make(chan struct{}), nil
	return r.killed
}

// seen gives the writes since arm.
func (r *relay) seen() ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.writes...), r.failed
}

func (r *relay) close() error {
	r.server.Stop()
	return errors.Join(<-r.done, r.client.Close())
}
