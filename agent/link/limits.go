// SPDX-License-Identifier: Apache-2.0

package link

import (
	"math/rand/v2"
	"time"
)

// Limits of the agent's end. Those that both ends know are in pkg/tunnel.
const (
	// DialTimeout bounds all from the first packet to the answered hello.
	DialTimeout = 45 * time.Second
	// BlobWait is how long Open waits for a session.
	BlobWait = 30 * time.Second
	// ReportGap between two reports about one Release.
	ReportGap = 200 * time.Millisecond
	// MaxPosts of reports at once: the hub answers when it has written.
	MaxPosts = 4
	// MaxPending reports that are not acknowledged, one a Release.
	MaxPending = 2 * 10000
	// PostTimeout of one request with reports.
	PostTimeout = 60 * time.Second
	// RequestTimeout of hello and renewal.
	RequestTimeout = 30 * time.Second
	// ReopenGap between two orders streams of one session.
	ReopenGap = time.Second
	// OrdersSilence: an orders stream without a line for so long is opened anew.
	OrdersSilence = 75 * time.Second
	// WatchInterval of the loop that looks for a dead session.
	WatchInterval = 5 * time.Second
	// HubTimeGap between two writes of the hub's time.
	HubTimeGap = time.Hour
	// MinSession is the shortest planned life of a session, whatever dates say.
	MinSession = time.Minute
	// MaxSilentEnds of sessions in a row are taken for a rejection of the certificate.
	MaxSilentEnds = 5
	// MaxGoAway bounds what a GoAway may ask for.
	MaxGoAway = 10 * time.Minute
	// HeldRetryMin to HeldRetryMax: pause before orders are given back again that the
	// hub could not take.
	HeldRetryMin = 5 * time.Second
	HeldRetryMax = time.Minute
	// MaxLayersGiven back at once.
	MaxLayersGiven = 2
	// MaxKeySet of order keys, and of CAs, that a hub may name.
	MaxKeySet = 16
	// MaxFormerKeys that are kept to verify what was accepted before.
	MaxFormerKeys = 16
	// LeaveUntrusted and LeaveAbsent: without a session for so long, the token of
	// another Cluster is taken; the first when the hub cannot prove that it is ours.
	LeaveUntrusted = time.Minute
	LeaveAbsent    = 10 * time.Minute
	// RedialWithin is what DefaultBackoff is made of, and MinRedialWithin and
	// MaxRedialWithin what another may be.
	RedialWithin    = 30 * time.Second
	MinRedialWithin = 500 * time.Millisecond
	MaxRedialWithin = 10 * time.Minute
	// RestartAfter is the default of Options.RestartAfter.
	RestartAfter = 30 * time.Minute
	// MaxHubLead: a hub that is further ahead of a clock here that may be right is not
	// let change what time it is taken for.
	MaxHubLead = 24 * time.Hour
	// RenewRetry after a renewal that failed, give or take half.
	RenewRetry = 5 * time.Minute
)

// Backoff says when to dial again. Waits are drawn evenly between 0 and what is
// written here, so that a fleet that lost its hub comes back spread out.
type Backoff struct {
	// Start: before the first dial of a program that has an identity.
	Start time.Duration
	// Lost: before the first retry after a session that was up.
	Lost time.Duration
	// Base doubles with each failure, up to Max.
	Base, Max time.Duration
	// Steady: a session that was up for so long starts the doubling anew.
	Steady time.Duration
	// RefusedMin to RefusedMax: after the hub said no.
	RefusedMin, RefusedMax time.Duration
	// Look for a new token so often meanwhile.
	Look time.Duration
}

// DefaultBackoff is for a fleet.
func DefaultBackoff() Backoff { return RedialBackoff(RedialWithin) }

// RedialBackoff has agents dial again within so long after a session was lost, and
// makes the other pauses of dials in proportion. What a hub that says no makes an
// agent wait does not change.
func RedialBackoff(within time.Duration) Backoff {
	return Backoff{
		Start: within / 2, Lost: within, Base: within / 15, Max: 4 * within,
		Steady: 120 * time.Second, RefusedMin: 5 * time.Minute, RefusedMax: 15 * time.Minute,
		Look: 15 * time.Second,
	}
}

// QuickBackoff is for tests and benchmarks.
func QuickBackoff() Backoff {
	return Backoff{
		Start: time.Millisecond, Lost: 100 * time.Millisecond, Base: 50 * time.Millisecond, Max: time.Second,
		Steady: 10 * time.Second, RefusedMin: 200 * time.Millisecond, RefusedMax: 400 * time.Millisecond,
		Look: 50 * time.Millisecond,
	}
}

// wait after failure number failures in a row, from 1; lost tells that a session
// was up, said that the hub refused, hint is what it asked for, 0 for nothing.
func (b Backoff) wait(failures int, lost, said bool, hint time.Duration) time.Duration {
	switch {
	case hint > 0:
		return hint + upTo(hint)
	case said:
		return b.RefusedMin + upTo(b.RefusedMax-b.RefusedMin)
	}
	most := b.Max
	if failures < 16 {
		most = min(b.Max, b.Base<<(failures-1))
	}
	if lost {
		most = max(most, b.Lost)
	}
	return upTo(most)
}

func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d) // spreads load, hides nothing
}
