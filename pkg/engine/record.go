// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Record is all that is kept of one Release. It is written before anything is
// applied, with the objects that are about to be, and again when the operation
// has ended.
type Record struct {
	UID     string            `json:"uid"`
	Release tunnel.ReleaseRef `json:"release"`
	// Order is the newest accepted one, as it was signed.
	Order tunnel.Signed `json:"order"`
	// Applied is the render that was applied in full, last.
	Applied *Render `json:"applied,omitempty"`
	// Attempt is the render whose objects may be there in part.
	Attempt *Render `json:"attempt,omitempty"`
	// Done: the remove or release order was carried out.
	Done bool `json:"done,omitempty"`
	// Counter is one that no report has used yet.
	Counter   int64             `json:"counter"`
	Operation *tunnel.Operation `json:"operation,omitempty"`
	Inventory []Entry           `json:"inventory,omitempty"`
	Hooks     *Hooks            `json:"hooks,omitempty"`
	// Rules are the health rules in use, where they are not those of Order yet.
	Rules *Rules `json:"rules,omitempty"`
	// Held are deletions that wait to be confirmed; all else of their order is applied.
	Held *tunnel.HeldPrune `json:"held,omitempty"`
	// Attempts that failed for Order, where it allows only some.
	Attempts *Attempts `json:"attempts,omitempty"`
}

// Rules names a layer of health rules, none for the built-in ones, and what they read.
type Rules struct {
	Layer *tunnel.Layer     `json:"layer,omitempty"`
	Facts map[string]string `json:"facts,omitempty"`
}

// Render names the layers of a render, and the sequence of the order it came with.
type Render struct {
	Objects   tunnel.Layer  `json:"objects"`
	Sealed    *tunnel.Layer `json:"sealed,omitempty"`
	Namespace string        `json:"namespace,omitempty"`
	// Account that it was applied as, as <namespace>:<name>; empty: our own.
	Account  string `json:"account,omitempty"`
	Sequence int64  `json:"sequence"`
	// Hooks: those of it are run; without, they are ordinary objects.
	Hooks bool `json:"hooks,omitempty"`
	// Items of it that are no hooks, where there are hooks among them.
	Items int `json:"items,omitempty"`
}

// Entry is one object that is ours, or is about to become ours.
type Entry struct {
	manifest.Identity
	Version string `json:"version"`
	Wave    int32  `json:"wave,omitempty"`
	// Line of the object in the render that it was last applied from, and the
	// digest of that line.
	Line   int    `json:"line,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Render is the objects digest of that render.
	Render string `json:"render,omitempty"`
	// UID that the cluster gave it; empty while it is only intended.
	UID string `json:"uid,omitempty"`
	// Hash of the live values at the paths applied, in base64.
	Hash string `json:"hash,omitempty"`
	// Created: it did not exist before it was first applied.
	Created bool `json:"created,omitempty"`
	// Scaling: to whom the number of its replicas is left; empty: to nobody.
	Scaling string `json:"scaling,omitempty"`
	// Orphaned: it left the render and was not pruned.
	Orphaned bool `json:"orphaned,omitempty"`
	// State is its health when it is not Healthy, and Since when it is so.
	State string    `json:"state,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Adopted is the UID of an object that somebody else made, and that is never deleted.
	Adopted string `json:"adopted,omitempty"`
	// Ended: it was seen to have ended, well or badly, and may be gone since.
	Ended string `json:"ended,omitempty"`
	// Foreign is whose mark was seen on it last, if that is not ours: what another has
	// taken over is not made again when it is gone.
	Foreign string `json:"foreign,omitempty"`
	// Leaving: it was let through to be deleted.
	Leaving bool `json:"leaving,omitempty"`
}
