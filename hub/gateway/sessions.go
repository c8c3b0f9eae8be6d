// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// Sessions is the table of live sessions, by Cluster UID. The newest session of
// a Cluster wins.
type Sessions struct {
	changed func(tunnel.ClusterID, bool)

	mu   sync.RWMutex
	live map[string]*session
	// left tells when the last session of a Cluster ended, until its status says
	// not reachable.
	left map[string]time.Time
}

func newSessions(changed func(tunnel.ClusterID, bool)) *Sessions {
	return &Sessions{changed: changed, live: map[string]*session{}, left: map[string]time.Time{}}
}

// Info is what is known of a live session. It is never written to storage.
type Info struct {
	Cluster tunnel.ClusterID
	// Since the session is authenticated.
	Since time.Time
	// Silence is how long ago anything was read.
	Silence time.Duration
	// In and Out are bytes inside the websocket.
	In, Out int64
	// Remote is the address that the hub sees.
	Remote string
}

// Len is how many sessions are live.
func (s *Sessions) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.live)
}

// Connected tells whether the Cluster's agent has a session.
func (s *Sessions) Connected(clusterUID string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live[clusterUID] != nil
}

// Info of a Cluster's session, false when there is none.
func (s *Sessions) Info(clusterUID string) (Info, bool) {
	s.mu.RLock()
	one := s.live[clusterUID]
	s.mu.RUnlock()
	if one == nil {
		return Info{}, false
	}
	in, out := one.link.Conn.Bytes()
	return Info{
		Cluster: one.id, Since: one.since, Silence: one.link.Conn.Silence(), In: in, Out: out,
		Remote: one.link.Conn.RemoteAddr().String(),
	}, true
}

// Call sends a request to a Cluster's agent and returns its answer, or ErrAway.
// The host of the URL does not matter. It takes CallTimeout at most; the caller
// closes the body, which is bounded by tunnel.MaxAnswerBody.
func (s *Sessions) Call(clusterUID string, r *http.Request) (*http.Response, error) {
	one, err := s.find(clusterUID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), CallTimeout)
	resp, err := tunnel.NewClient(one.link).Do(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("call agent of %s: %w", one.id, err)
	}
	resp.Body = &boundBody{ReadCloser: http.MaxBytesReader(nil, resp.Body, tunnel.MaxAnswerBody), cancel: cancel}
	return resp, nil
}

func (s *Sessions) find(clusterUID string) (*session, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if one := s.live[clusterUID]; one != nil {
		return one, nil
	}
	return nil, fmt.Errorf("cluster %s: %w", clusterUID, ErrAway)
}

// add puts a session into the table and returns the one that it displaces.
func (s *Sessions) add(one *session) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.live[one.id.UID]
	s.live[one.id.UID] = one
	delete(s.left, one.id.UID)
	if old == nil {
		s.changed(one.id, true) // under the lock, so that the order is right
	}
	return old
}

// remove takes a session out, unless a newer one has its place.
func (s *Sessions) remove(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[one.id.UID] == one {
		delete(s.live, one.id.UID)
		s.left[one.id.UID] = time.Now()
		s.changed(one.id, false)
	}
}

// all sessions at the moment.
func (s *Sessions) all() []*session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*session, 0, len(s.live))
	for _, one := range s.live {
		all = append(all, one)
	}
	return all
}

func (s *Sessions) closeAll() {
	for _, one := range s.all() {
		closeLink(one.link)
	}
}

// away tells for how long a Cluster has had no session: since its last one
// ended, or since the hub started. False when there is one.
func (s *Sessions) away(clusterUID string, started time.Time) (time.Duration, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.live[clusterUID] != nil {
		return 0, false
	}
	if left, ok := s.left[clusterUID]; ok {
		return time.Since(left), true
	}
	return time.Since(started), true
}

// forget what is not needed once the status says not reachable.
func (s *Sessions) forget(keep map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid := range s.left {
		if !keep[uid] {
			delete(s.left, uid)
		}
	}
}
