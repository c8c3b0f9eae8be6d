// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sort"
	"sync"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

const ordersHeader = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"

// ordersStream is one open answer to POST /v1/orders. The stream was taken from
// the HTTP server, so that an idle one costs neither buffers nor a goroutine. It
// belongs to the session's owner.
type ordersStream struct {
	conn net.Conn
	has  map[string]int64 // what the agent was sent or said it had
	head []byte           // signature of the head last sent
	// asked: the agent was asked for what it holds beyond the hub, once a stream.
	asked bool
}

// handleOrders starts the stream of orders; the session's owner goes on with it.
func (s *session) handleOrders(w http.ResponseWriter, r *http.Request) {
	var req tunnel.OrdersRequest
	if err := tunnel.DecodeJSON(s.body(w, r), tunnel.MaxHaveBody, &req); err != nil || len(req.Have) > tunnel.MaxOrders {
		tunnel.WriteProblem(w, http.StatusBadRequest, tunnel.ReasonBadRequest, "the orders request could not be read", 0)
		return
	}
	if req.Have == nil {
		req.Have = map[string]int64{}
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		tunnel.WriteProblem(w, http.StatusInternalServerError, tunnel.ReasonInternal, "the stream could not be taken over", 0)
		return
	}
	stream := &ordersStream{conn: conn, has: req.Have}
	if err := stream.write([]byte(ordersHeader)); err != nil {
		stream.close()
		return
	}
	s.give(stream)
}

// update sends what the agent does not have, closed by a head.
func (o *ordersStream) update(g *Gateway, clusterUID string) error {
	orders, head, _ := g.opts.Orders.Current(clusterUID)
	buf := buffers.Get().(*bytes.Buffer) //nolint:forcetypeassert // the pool holds nothing else
	defer putBuffer(buf)
	buf.Reset()
	sent := 0
	current := make(map[string]int64, len(orders))
	for i := range orders {
		current[orders[i].UID] = orders[i].Sequence
		if o.has[orders[i].UID] == orders[i].Sequence {
			continue
		}
		if err := encode(buf, tunnel.OrderEvent{Order: &orders[i].Signed}); err != nil {
			return err
		}
		sent++
		if buf.Len() >= tunnel.MaxMessage {
			if err := o.write(buf.Bytes()); err != nil {
				return err
			}
			buf.Reset()
		}
	}
	var behind []string
	if !o.asked {
		o.asked = true
		behind = g.opts.Orders.Behind(clusterUID, o.has)
	}
	var unknown []string
	for uid := range o.has {
		if _, ok := current[uid]; !ok {
			unknown = append(unknown, uid)
		}
	}
	o.has = current
	if len(unknown) > 0 {
		sort.Strings(unknown)
		if err := encode(buf, tunnel.OrderEvent{Unknown: unknown}); err != nil {
			return err
		}
	}
	if sent > 0 || len(unknown) > 0 || !bytes.Equal(o.head, head.Signature) {
		if err := encode(buf, tunnel.OrderEvent{Head: &head}); err != nil {
			return err
		}
		o.head = head.Signature
	}
	for part := range slices.Chunk(behind, tunnel.MaxPresent) {
		if err := encode(buf, tunnel.OrderEvent{Present: part}); err != nil {
			return err
		}
	}
	g.metrics.orders.Add(float64(sent))
	if buf.Len() == 0 {
		return nil
	}
	return o.write(buf.Bytes())
}

func (o *ordersStream) send(e tunnel.OrderEvent) error {
	var buf bytes.Buffer
	if err := encode(&buf, e); err != nil {
		return err
	}
	return o.write(buf.Bytes())
}

func (o *ordersStream) write(p []byte) error {
	if err := o.conn.SetWriteDeadline(time.Now().Add(tunnel.StallTimeout)); err != nil {
		return fmt.Errorf("bound orders stream: %w", err)
	}
	if _, err := o.conn.Write(p); err != nil {
		return fmt.Errorf("write orders stream: %w", err)
	}
	return nil
}

// close a stream, also nil.
func (o *ordersStream) close() {
	if o == nil {
		return
	}
	if err := o.conn.Close(); err != nil {
		return // the session has ended, and the stream with it
	}
}

func encode(w io.Writer, e tunnel.OrderEvent) error {
	if err := json.NewEncoder(w).Encode(e); err != nil {
		return fmt.Errorf("encode order event: %w", err)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func putBuffer(b *bytes.Buffer) {
	if b.Cap() <= 2*tunnel.MaxMessage {
		buffers.Put(b)
	}
}
