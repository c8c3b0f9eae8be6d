// SPDX-License-Identifier: Apache-2.0

package apiserver

import "time"

const (
	// EtcdPrefix is where everything of convoy lies in etcd. No key of ours is
	// outside it.
	EtcdPrefix = "/registry/convoy.kumodo.io"

	// DefaultSecurePort of the aggregated API. Control planes of some clouds reach
	// nodes on 443 and 10250 only.
	DefaultSecurePort = 10250

	// DefaultBudgetCount of deletions that uninstall something.
	DefaultBudgetCount = 20
	// DefaultBudgetPercent of the Releases; the greater of the two holds.
	DefaultBudgetPercent = 20
	// DefaultBudgetWindow in which they are counted.
	DefaultBudgetWindow = 10 * time.Minute
	// minBudgetWindow and maxBudgetWindow bound its window.
	minBudgetWindow = time.Second
	maxBudgetWindow = 24 * time.Hour

	// deleteCollectionWorkers: the library's default is one, which makes the
	// deletion of a large namespace slow.
	deleteCollectionWorkers = 16

	// maxStreams of one HTTP/2 connection: the aggregator sends everybody's
	// requests through few connections.
	maxStreams = 1000

	// servingLifetime of the API server's own certificate. A new one is made when
	// a third of it is left.
	servingLifetime = 30 * 24 * time.Hour

	// adminLifetime of the certificate in the admin kubeconfig; a new one is
	// written at every start.
	adminLifetime = 365 * 24 * time.Hour

	// watchGrace is how long the end of the server waits for watches to end, which
	// they do at once when told, and shutdownTimeout for connections to close after
	// that: the library's own is a minute.
	watchGrace      = 5 * time.Second
	shutdownTimeout = 5 * time.Second

	// readyInterval is how often a starting server asks itself whether it is ready.
	readyInterval = 20 * time.Millisecond

	// etcdDialTimeout bounds the wait for etcd.
	etcdDialTimeout = 20 * time.Second
)
