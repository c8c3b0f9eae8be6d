// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
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
	// early are the sessions that have not said hello, or were refused.
	early map[*session]struct{}
	// left tells of the last session of a Cluster, until its status says not
	// reachable.
	left map[string]departure
	// flaps are the last times that a session of a Cluster displaced another.
	flaps map[string][]time.Time
	// emptied is closed when there is no session any more; nil: nobody waits for it.
	emptied chan struct{}
}

// departure is the end of the last session of a Cluster.
type departure struct {
	at            time.Time
	bound, target string
}

func newSessions(changed func(tunnel.ClusterID, bool)) *Sessions {
	return &Sessions{
		changed: changed, live: map[string]*session{}, early: map[*session]struct{}{},
		left: map[string]departure{}, flaps: map[string][]time.Time{},
	}
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

// Len is how many sessions are live: those that said hello.
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

// enter counts a session that is authenticated and has no place in the table yet.
func (s *Sessions) enter(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early[one] = struct{}{}
}

// add puts a session into the table and returns the one that it displaces, and
// whether that happened too often of late. It does nothing to one that has ended.
func (s *Sessions) add(one *session, target string) (old *session, flapping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.early[one]; !ok {
		return nil, false
	}
	delete(s.early, one)
	one.target = target
	old = s.live[one.id.UID]
	s.live[one.id.UID] = one
	delete(s.left, one.id.UID)
	if old == nil {
		s.changed(one.id, true) // under the lock, so that the order is right
		return nil, false
	}
	now := time.Now()
	times := slices.DeleteFunc(s.flaps[one.id.UID], func(at time.Time) bool { return now.Sub(at) > DisplacedWindow })
	if flapping = len(times) >= MaxDisplaced; flapping {
		times = times[1:]
	}
	s.flaps[one.id.UID] = append(times, now)
	return old, flapping
}

// remove takes a session out, unless a newer one has its place.
func (s *Sessions) remove(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.early, one)
	if s.live[one.id.UID] == one {
		delete(s.live, one.id.UID)
		s.left[one.id.UID] = departure{time.Now(), one.bound, one.target}
		s.changed(one.id, false)
	}
	if s.emptied != nil && len(s.live)+len(s.early) == 0 {
		close(s.emptied)
		s.emptied = nil
	}
}

// empty is closed when there is no session any more. It is asked for once.
func (s *Sessions) empty() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	emptied := make(chan struct{})
	if len(s.live)+len(s.early) == 0 {
		close(emptied)
		return emptied
	}
	s.emptied = emptied
	return emptied
}

// count is how many sessions there are, with those that have not said hello.
func (s *Sessions) count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.live) + len(s.early)
}

// all sessions at the moment.
func (s *Sessions) all() []*session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*session, 0, len(s.live)+len(s.early))
	for _, one := range s.live {
		all = append(all, one)
	}
	for one := range s.early {
		all = append(all, one)
	}
	return all
}

// of are the sessions of one Cluster that were not refused.
func (s *Sessions) of(clusterUID string) []*session {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var of []*session
	if one := s.live[clusterUID]; one != nil && one.refused.Load() == nil {
		of = append(of, one)
	}
	for one := range s.early {
		if one.id.UID == clusterUID && one.refused.Load() == nil {
			of = append(of, one)
		}
	}
	return of
}

func (s *Sessions) closeAll() {
	for _, one := range s.all() {
		closeLink(one.link)
	}
}

// elsewhere is the cluster on which another session with the same identity is, or
// was until less than grace ago; "" when there is none but target.
func (s *Sessions) elsewhere(one *session, target string, grace time.Duration) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if other := s.live[one.id.UID]; other != nil {
		if other != one && other.bound == one.bound && other.target != target {
			return other.target
		}
		return ""
	}
	if left, ok := s.left[one.id.UID]; ok && left.bound == one.bound && left.target != target && time.Since(left.at) < grace {
		return left.target
	}
	return ""
}

// knows tells whether there was a session of the Cluster since the hub started.
func (s *Sessions) knows(clusterUID string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, left := s.left[clusterUID]
	return left || s.live[clusterUID] != nil
}

// away tells for how long a Cluster has had no session, since its last one ended or
// since the hub started, and for how long that is not held against it. It is not
// away while there is one.
func (s *Sessions) away(clusterUID string, started time.Time) (away, grace time.Duration) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.live[clusterUID] != nil {
		return 0, Grace
	}
	if left, ok := s.left[clusterUID]; ok {
		return time.Since(left.at), Grace
	}
	return time.Since(started), ReturnGrace
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
	for uid, times := range s.flaps {
		if time.Since(times[len(times)-1]) > DisplacedWindow {
			delete(s.flaps, uid)
		}
	}
}
