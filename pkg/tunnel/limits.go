// SPDX-License-Identifier: Apache-2.0

package tunnel

import "time"

// Limits of the wire. docs/protocol.md lists them, and a test compares the two.
const (
	// MaxMessage is the longest websocket message that is read.
	MaxMessage = 64 << 10
	// StreamWindow is how much a stream may hold that was not read yet.
	StreamWindow = 256 << 10
	// MaxFrame is the longest data frame that is accepted.
	MaxFrame = 16 << 10
	// FrameSize is the longest data frame that is sent: a ping never waits behind
	// more than 64 of them.
	FrameSize = 8 << 10
	// MaxStreams is how many streams each side may have open at once.
	MaxStreams = 16
	// StreamRate and StreamBurst bound the streams that a peer opens per second.
	// The first sync of a cluster with 1,000 Releases asks for 2,000 blobs.
	StreamRate  = 200
	StreamBurst = 400
	// OpenRate and OpenBurst pace our own streams, below what the peer refuses.
	OpenRate  = 150
	OpenBurst = 200
	// PingRate and PingBurst bound pings and their answers per second.
	PingRate  = 2
	PingBurst = 10
	// ResetRate and ResetBurst bound stream resets per second.
	ResetRate  = 100
	ResetBurst = 100
	// ControlRate and ControlBurst bound frames without a body, of any type.
	ControlRate  = 2000
	ControlBurst = 4000
	// StreamBudget bounds what all streams of a process hold unread. When it is used
	// up, the session that holds most is ended.
	StreamBudget = 128 << 20

	// WriteTimeout: a write that is blocked for so long ends the session.
	WriteTimeout = 30 * time.Second
	// StreamOpenTimeout: a stream that is not acknowledged ends the session.
	StreamOpenTimeout = 30 * time.Second
	// StreamCloseTimeout: a stream closed by one side only is reset after it.
	StreamCloseTimeout = 30 * time.Second
	// PingInterval is how often the agent pings, give or take PingJitter of it: at
	// most half of the shortest idle timer on the way, which is 60 s.
	PingInterval = 25 * time.Second
	PingJitter   = 0.2
	// ReadSilence: a session from which nothing was read for so long is dead.
	ReadSilence = 65 * time.Second
	// BeatInterval is how often an orders stream carries a line at least.
	BeatInterval = 30 * time.Second
	// HandshakeTimeout bounds all from accept to an authenticated session.
	HandshakeTimeout = 10 * time.Second
	// HeaderTimeout bounds the header of a request, outside and inside.
	HeaderTimeout = 5 * time.Second
	// IdleTimeout of a stream that carries no request.
	IdleTimeout = 60 * time.Second
	// MaxHeader is the longest header of a request or an answer.
	MaxHeader = 16 << 10
	// StallTimeout: a body that does not move for so long ends its stream.
	StallTimeout = 30 * time.Second
	// MinBodyRate is how many bytes a second of a request's body have to come on
	// average, after StallTimeout; slower ones end their stream.
	MinBodyRate = 1 << 10

	// MaxJoinBody is the longest body of the join endpoint.
	MaxJoinBody = 16 << 10
	// MaxHelloBody is the longest hello.
	MaxHelloBody = 256 << 10
	// MaxHaveBody is the longest orders request.
	MaxHaveBody = 2 << 20
	// MaxPresent is how many UIDs one line asks an agent to give back.
	MaxPresent = 500
	// MaxHeld is how many orders one held request gives back.
	MaxHeld = 64
	// MaxHeldBody is the longest held request.
	MaxHeldBody = 2 << 20
	// MaxReportBody is what the agent puts into one reports request, unless a
	// single report is longer.
	MaxReportBody = 1 << 20
	// MaxReportBodyLarge is the longest reports request: one report with an
	// inventory of 10,000 entries is about 3 MiB.
	MaxReportBodyLarge = 8 << 20
	// MaxAnswerBody is the longest answer that is not a blob.
	MaxAnswerBody = 2 << 20
	// MaxLiveBody is the longest answer about the objects of a Release, without its
	// end; what does not fit is counted there.
	MaxLiveBody = 1 << 20
	// MaxLiveEnd is the longest end of such an answer.
	MaxLiveEnd = 1 << 10
	// MaxLiveDifferences are how many fields of one object such an answer names.
	MaxLiveDifferences = 64
	// MaxLiveValue is the longest value in it.
	MaxLiveValue = 256
	// MaxOrderLine is the longest line of an orders stream.
	MaxOrderLine = 1 << 20
	// MaxBlob is the longest layer, unpacked.
	MaxBlob = 64 << 20
	// MaxOrders is how many Releases one Cluster may have.
	MaxOrders = 10000
	// MaxBlobFetches is how many blobs an agent fetches at once.
	MaxBlobFetches = 4

	// MaxToken is the longest join token text.
	MaxToken = 4 << 10
	// TokenTTL is how long a join token may live at most, and how long the agent
	// that used it may repeat the join with the same keys.
	TokenTTL = time.Hour
	// NonceTTL is how long a join nonce may be used, once.
	NonceTTL = 60 * time.Second
	// CertificateTTL of an agent's certificate.
	CertificateTTL = 24 * time.Hour
	// CertificateBackdate allows for clocks that are behind.
	CertificateBackdate = 5 * time.Minute
	// RenewFrom and RenewTo: a certificate is renewed at a random point between
	// these parts of its life.
	RenewFrom = 0.7
	RenewTo   = 0.9
	// HeadTTL is how long a signed head is fresh.
	HeadTTL = 15 * time.Minute
	// MaxSequenceLead is how far an order's sequence may be ahead of hub time.
	MaxSequenceLead = 24 * time.Hour
	// SessionTTL: a session is made anew after it.
	SessionTTL = 24 * time.Hour
)

// Limits of the hub's end that the other end does not know.
const (
	// maxReplies that wait to be written; a peer that takes none ends its session.
	maxReplies = 64
	// maxPeerWindow is more than a peer that keeps to StreamWindow ever grants.
	maxPeerWindow = 2 * StreamWindow
	// readSize of the buffers of receivers that have something to read.
	readSize = 16 << 10
)
