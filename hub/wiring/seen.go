// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// seen are the Clusters whose agent has been here since this process began, as
// long as they exist.
type seen struct {
	mu   sync.Mutex
	uids map[types.UID]struct{}
}

func (s *seen) add(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uids == nil {
		s.uids = map[types.UID]struct{}{}
	}
	s.uids[uid] = struct{}{}
}

func (s *seen) has(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.uids[uid]
	return ok
}

// clusterChanged is told of each change of a Cluster in the cache: one that is gone,
// or whose name another has, is forgotten.
func (s *seen) clusterChanged(old, next *v1alpha1.Cluster) {
	if old == nil || next != nil && next.UID == old.UID {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uids, old.UID)
}
