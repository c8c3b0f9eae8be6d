// SPDX-License-Identifier: Apache-2.0

package harness

import "time"

const (
	// maxLogTail is how much of a log an error shows, in bytes.
	maxLogTail = 4 << 10
	// maxAuditLine bounds one line of an audit log, in bytes.
	maxAuditLine = 4 << 20
	// maxCommandOutput bounds what is kept of a command's output, in bytes.
	maxCommandOutput = 64 << 20

	// startTimeout is how long a plane may take to be ready. Three planes
	// that start together on two busy cores stay well below it.
	startTimeout = 2 * time.Minute
	// readyPoll is the pause between two looks at an endpoint that cannot be
	// watched.
	readyPoll = 50 * time.Millisecond
	// stopGrace is how long a program may take to end after SIGTERM.
	stopGrace = 15 * time.Second
	// closeTimeout is how long the supervisor may take to kill and remove.
	closeTimeout = 30 * time.Second

	// certLife is how long the certificates of a plane are valid.
	certLife = 30 * 24 * time.Hour

	// firstPort and lastPort bound the ports that are handed out. They lie
	// below the range from which the kernel takes ports for outgoing
	// connections, so that only a listener can be in the way.
	firstPort = 20000
	lastPort  = 32000

	// watchPause is the pause before a failed list or watch is tried again.
	watchPause = 100 * time.Millisecond

	// tokenSeconds is the life of a ServiceAccount token when the pod does
	// not say it; the API server accepts no less.
	tokenSeconds = 600
	// volumeRefresh is how often Secret and ConfigMap volumes are read again.
	volumeRefresh = 30 * time.Second
	// restartBackOff and maxRestartBackOff bound the pause before a program
	// is started again. They are shorter than a kubelet's.
	restartBackOff    = 100 * time.Millisecond
	maxRestartBackOff = 2 * time.Second
	// restartReset is how long a program must have run for its next end to
	// count as the first.
	restartReset = 10 * time.Second
)
