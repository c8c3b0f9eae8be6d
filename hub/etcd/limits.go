// SPDX-License-Identifier: Apache-2.0

package etcd

import "time"

const (
	// quotaBytes is the most that the database file may take. Beyond it etcd
	// raises the NOSPACE alarm and refuses writes.
	quotaBytes = 8 << 30
	// snapshotCount and catchUpEntries bound what raft keeps in memory. The
	// library's defaults, made for members that have to catch up, keep 15,000
	// entries: 113 MiB at 20 KiB each.
	snapshotCount  = 1_000
	catchUpEntries = 200
	// tickMilliseconds and electionMilliseconds: how fast a lone member becomes
	// its own leader.
	tickMilliseconds     = 50
	electionMilliseconds = 250
	// maxRequestBytes is the largest write.
	maxRequestBytes = 4 << 20

	// startTimeout bounds the wait for the member to become leader.
	startTimeout = 60 * time.Second
	// checkInterval of the alarm, of the size and of what could be given back.
	checkInterval = 30 * time.Second
	// defragmentBytes is the size below which giving space back is not worth it,
	// and defragmentShare the part of the file that must be unused.
	defragmentBytes = 64 << 20
	defragmentShare = 0.5
	// healShare: the NOSPACE alarm is taken back when less than this part of the
	// quota is in use after a defragmentation.
	healShare = 0.8

	// maxSocketPath is what the kernel allows for the path of a unix socket.
	maxSocketPath = 104
)
