// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"io"
	"time"

	"kumodo.io/convoy/pkg/tunnel"
)

// Engine takes orders.
type Engine interface {
	// Accept takes an order whose signature was verified. An error means that it
	// was refused, which the engine reports by itself.
	Accept(order tunnel.Order, signed tunnel.Signed) error
	// Head tells which orders the hub has for this Cluster, by Release UID, proven
	// by a signed head that was just received. What the engine holds beyond it is
	// unknown to the hub, and kept. orders is not used afterwards.
	Head(head tunnel.Head, orders map[string]int64)
	// Have is what the engine holds: Release UID to sequence.
	Have() map[string]int64
}

// Reporting is the rest of what the link tells the engine.
type Reporting interface {
	// Acknowledged: the hub has the report with that counter, or a newer one.
	Acknowledged(releaseUID string, counter int64)
	// Refuse reports an order that was not handed over, since its signature does
	// not verify or it cannot be read. What is said of it is not to be trusted.
	Refuse(release tunnel.ReleaseRef, sequence int64, finding tunnel.Finding)
	// Newest is the newest report of a Release, for the hub that asks live.
	Newest(releaseUID string) (tunnel.Report, bool)
}

// Holder gives back what the hub lost.
type Holder interface {
	// Held returns the orders that are held of the Releases with these UIDs, as they
	// were signed. A Release that is not held is left out.
	Held(releaseUIDs []string) []tunnel.Signed
	// Layer opens a layer that a Release held here refers to, with its size. The
	// error is ErrNotHeld for all others.
	Layer(ctx context.Context, digest string) (io.ReadCloser, int64, error)
}

// Inspector answers what the hub asks about single objects.
type Inspector interface {
	// Live tells how each object of a Release is now. tunnel.ErrNoRelease: it is not
	// known here.
	Live(ctx context.Context, releaseUID string, view tunnel.LiveView, yield func(tunnel.LiveObject) error) (tunnel.LiveEnd, error)
}

// IdentityStore keeps the identity over restarts.
type IdentityStore interface {
	// Load returns ErrNoIdentity when there is none.
	Load(ctx context.Context) (*Identity, error)
	// Save replaces it whole.
	Save(ctx context.Context, id *Identity) error
}

// Identity is what the agent is and whom it trusts.
type Identity struct {
	Hub        string `json:"hub"`
	ClusterUID string `json:"clusterUID"`
	GatewayURL string `json:"gatewayURL"`
	// JoinKey is the public key of the token that was used, so that it is not
	// tried again.
	JoinKey []byte `json:"joinKey"`
	// CAPin is the pin from the token. HubCA are the CAs, PEM, that the hub named
	// when it was last heard: it may prove itself with any of them.
	CAPin string `json:"caPin"`
	HubCA []byte `json:"hubCA,omitempty"`
	// OrderKeys are those whose orders are accepted, as the hub last named them.
	OrderKeys [][]byte `json:"orderKeys,omitempty"`
	// FormerOrderKeys were named once and are not any more, the newest last. What
	// they signed is not accepted, but stays true of what was accepted before: an
	// order outlives the key that signed it.
	FormerOrderKeys [][]byte `json:"formerOrderKeys,omitempty"`
	// BoundKey is the seed of the long-lived Ed25519 key. Secret.
	BoundKey []byte `json:"boundKey"`
	// ClientKey is the P-256 key of the certificate, PKCS #8 DER. Secret.
	ClientKey []byte `json:"clientKey"`
	// Certificate, PEM; empty before the join was answered.
	Certificate []byte `json:"certificate,omitempty"`
	// HubTime is the latest time that the hub was heard to say.
	HubTime time.Time `json:"hubTime"`
	// Next is an identity that is being joined as with a newer token.
	Next *Identity `json:"next,omitempty"`
}

// Joined tells whether a hub has ever answered for it.
func (i *Identity) Joined() bool { return i != nil && len(i.Certificate) > 0 }
