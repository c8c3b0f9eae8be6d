// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
)

// check looks at the alarm and at the size of the file, and gives back what is
// unused when nothing is being written, or when etcd is out of space.
func (s *Server) check(ctx context.Context, log logr.Logger, member *embed.Etcd) {
	size, used := member.Server.Backend().Size(), member.Server.Backend().SizeInUse()
	revision := member.Server.KV().Rev()
	idle := revision == s.revision
	s.revision = revision
	full := noSpace(member)

	s.mu.Lock()
	before := s.alarm
	s.alarm = full
	s.mu.Unlock()
	s.metrics.observe(size, used, full)
	if full && !before {
		log.Error(ErrNoSpace, "embedded etcd raised its alarm", "size", size, "quota", int64(quotaBytes))
	}

	if full || (idle && fragmented(size, used)) {
		if err := member.Server.Defragment(); err != nil {
			log.Error(err, "could not defragment embedded etcd", "size", size, "used", used)
			return
		}
		size, used = member.Server.Backend().Size(), member.Server.Backend().SizeInUse()
		s.metrics.observe(size, used, full)
		log.Info("defragmented embedded etcd", "size", size, "used", used)
	}
	if full && float64(used) < healShare*quotaBytes {
		s.disarm(ctx, log, member)
	}
}

// fragmented says whether so much of the file is unused that giving it back is
// worth a short halt.
func fragmented(size, used int64) bool {
	return size > defragmentBytes && float64(size-used) > defragmentShare*float64(size)
}

func noSpace(member *embed.Etcd) bool {
	for _, a := range member.Server.Alarms() {
		if a.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return true
		}
	}
	return false
}

// disarm lets etcd accept writes again, now that there is room.
func (s *Server) disarm(ctx context.Context, log logr.Logger, member *embed.Etcd) {
	_, err := member.Server.Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action:   etcdserverpb.AlarmRequest_DEACTIVATE,
		MemberID: uint64(member.Server.MemberID()),
		Alarm:    etcdserverpb.AlarmType_NOSPACE,
	})
	if err != nil {
		log.Error(err, "could not take back the alarm of embedded etcd")
		return
	}
	s.mu.Lock()
	s.alarm = false
	s.mu.Unlock()
	log.Info("embedded etcd accepts writes again")
}
