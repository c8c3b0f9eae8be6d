// SPDX-License-Identifier: Apache-2.0

package gateway

import "time"

// Limits of the listener, before anybody is authenticated, and of the sessions.
// Those that both ends know are in pkg/tunnel.
const (
	// MaxHandshakes is how many connections may be unauthenticated at once.
	MaxHandshakes = 256
	// MaxHandshakesPerIP of them from one address, unless the gateway stands
	// behind a terminator, where all come from one.
	MaxHandshakesPerIP = 64
	// MaxWaiting connections wait for their turn, each for MaxWait at most.
	MaxWaiting = 1000
	MaxWait    = 5 * time.Second
	// SessionRate and SessionBurst bound new connections per second.
	SessionRate  = 300
	SessionBurst = 300
	// MaxSessions at once; more are told to come back after RetryFull.
	MaxSessions = 20000
	RetryFull   = 60 * time.Second

	// EnrollRate and EnrollBurst bound joins, recoveries and renewals per second.
	EnrollRate  = 100
	EnrollBurst = 100
	RetryEnroll = 5 * time.Second
	// RetryEmpty is when agents come back to a hub that has no Clusters.
	RetryEmpty = 15 * time.Second
	// MaxNonces that were given and not used yet.
	MaxNonces = 10000
	// JoinLifetime of a connection to the join endpoint.
	JoinLifetime = 30 * time.Second
	// RenewGap between two renewals of one session.
	RenewGap = 10 * time.Second

	// MaxRecoveries of one identity in any RecoveryWindow; an agent recovers when its
	// certificate ran out, and that lasts as long.
	MaxRecoveries  = 12
	RecoveryWindow = 24 * time.Hour
	// maxFormer clusters that a Cluster stood for are remembered.
	maxFormer = 8
	// ConflictMemory is how long a Cluster says that an agent on another cluster was
	// refused, after the last time.
	ConflictMemory = 10 * time.Minute
	// MaxDisplaced sessions of one Cluster in DisplacedWindow are normal; more are
	// counted, logged, and told to people.
	MaxDisplaced    = 3
	DisplacedWindow = 5 * time.Minute

	// HelloTimeout of a session that is authenticated and has not said hello.
	HelloTimeout = 30 * time.Second
	// SweepInterval of the one loop that looks for dead and revoked sessions.
	SweepInterval = 5 * time.Second
	// RefusedLifetime of a session that is not allowed: long enough to say why.
	RefusedLifetime = 10 * time.Second
	// Grace after which a Cluster without a session is not reachable any more.
	Grace = 90 * time.Second
	// ReturnGrace is that of a Cluster which had no session since the hub started: it
	// was the hub that was away, and ten thousand agents need longer than Grace to come
	// back one after another.
	ReturnGrace = 3 * time.Minute
	// ReachableInterval between two comparisons of sessions and statuses, and
	// ReachableRate of status writes per second that follow from one.
	ReachableInterval = 10 * time.Second
	ReachableRate     = 100

	// MaxLargeBodies that are read at once: reports of more than tunnel.MaxReportBody
	// and orders that are given back.
	MaxLargeBodies = 8
	// MaxEncoders that compress blobs at once; more are sent plain.
	MaxEncoders = 16
	// CallTimeout of a request to an agent, unless its context ends before.
	CallTimeout = 30 * time.Second
	// FetchTimeout of a layer that is had back from an agent.
	FetchTimeout = 5 * time.Minute
	// DrainTimeout is how long an ordered end waits for sessions to go.
	DrainTimeout = 25 * time.Second
	// DrainWithin is the shortest time in which agents are asked to go and to come
	// back, and DrainRate how many a second are asked to at most.
	DrainWithin = 30 * time.Second
	DrainRate   = 200
	// hijackBuffer of each websocket; what is longer goes past it.
	hijackBuffer = 256
)
