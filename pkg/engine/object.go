// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"
	"time"

	"kumodo.io/convoy/pkg/manifest"
)

// object is what is kept in memory of one object that is ours: who it is, where in
// which render it came from, and what was seen of it last. Its content is not kept.
// All fields are guarded by the release's mu.
type object struct {
	id      manifest.Identity
	version string    // it was applied with; fixed with res
	res     *resource // nil while the cluster does not serve the kind
	wave    int32
	line    int32
	// digest of its line in render, the render that it was last applied from.
	digest string
	render *Render

	// uid is that of the object which we applied: the only one that may ever be
	// deleted. other is the UID seen now, if that is another object's.
	uid, other string
	rv         uint64 // of what was seen last
	// want is the projection that our last apply gave, live the one seen now.
	want, live projection

	applied   bool // want is set
	seen      bool // live is set, in this run
	missing   bool // seen to be gone
	entryGone bool // our entry in managedFields is gone
	created   bool // it did not exist before it was first applied
	orphaned  bool
	listed    bool // it is in the render of the newest order, as far as that was read
	held      bool // by a finalizer that the cluster does not lift itself
	// stays: an annotation on it, as it was seen last, keeps it when it leaves the render.
	stays bool
	// adopted is the UID of one that somebody else made in its place, and that was only
	// taken over: it is never deleted.
	adopted string
	// ended is set when it was seen to have ended, and may go then.
	ended *ended
	// leaving: it was let through to be deleted, and is not repaired any more.
	leaving *leaving
	health  health
	why     string // of the health, when not healthy
	smooth  *smooth

	// foreign is the owner that was found on it, if it is not us.
	foreign string
	problem *problem
	since   time.Time // of what makes it an exception
	contest *contest
	// scaling says to whom its number of replicas is left. unsure is the rule of what is
	// left to others that could not be judged for it.
	scaling scaling
	unsure  string
	// unscaled is set while the number is left to an autoscaler that is gone.
	unscaled *unscaled
	// unseen says why it is not seen any more; empty: it is.
	unseen string
	// judged: the state of judgedAt was compared; it differs, in what differs says.
	judged   bool
	judgedAt uint64
	differs  string
	// sight is set of the object of a hook, which is only watched.
	sight *sight
}

// problem is what stands in the way of an object.
type problem struct {
	reason  string
	message string
	// unsure: whether the object differs could not be found out.
	unsure bool
	// lasts: it is no matter of a moment, so that nobody has to wait before it is told.
	lasts bool
}

// drifted says whether an applied object is not as it was after our last apply.
func (o *object) drifted() bool {
	return o.applied && o.leaving == nil && o.foreign == "" && o.seen && !o.spent() && (o.missing || o.entryGone || o.other != "" || o.live != o.want)
}

// inSync says whether an object was seen as we applied it, or as it ended.
func (o *object) inSync() bool {
	if o.spent() {
		return o.applied && o.seen
	}
	return o.applied && o.seen && !o.missing && !o.entryGone && o.other == "" && o.foreign == "" && o.live == o.want
}

// is says whether a UID is that of the object seen last.
func (o *object) is(uid string) bool {
	if o.other != "" {
		return o.other == uid
	}
	return o.uid == uid
}

// notice takes the UID of the object seen now.
func (o *object) notice(uid string) {
	o.other = ""
	if uid != o.uid {
		o.other = uid
	}
}

// parseVersion reads a resource version. Servers promise that they can be ordered;
// 0 stands for one that is no number, which is taken for newer than anything.
func parseVersion(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func formatVersion(n uint64) string { return strconv.FormatUint(n, 10) }
