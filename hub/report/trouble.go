// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// While an operation runs, a status is written when its conditions change, and not for
// counts, or for objects that are on their way. Conditions name one object; which others
// are in trouble is worth a write as well, at most one each noticeApart.

// trouble is what of an exception makes another one: messages and times do not.
type trouble struct{ group, kind, namespace, name, reason string }

// troubles of exceptions, without what is on its way.
func troubles(list []v1alpha1.ObjectException) map[trouble]bool {
	out := make(map[trouble]bool, len(list))
	for i := range list {
		if e := &list[i]; e.Reason != v1alpha1.ReasonProgressing {
			out[trouble{e.Group, e.Kind, e.Namespace, e.Name, e.Reason}] = true
		}
	}
	return out
}

// sameTroubles says whether the same objects are in the same trouble.
func sameTroubles(old, next []v1alpha1.ObjectException) bool {
	a, b := troubles(old), troubles(next)
	if len(a) != len(b) {
		return false
	}
	for t := range b {
		if !a[t] {
			return false
		}
	}
	return true
}

// healthTerminating is what an inventory says of an object that is being deleted and is
// still there.
const healthTerminating = "Terminating"

// leaving says whether an inventory shows that deletions are held.
func (i *inventory) leaving() bool {
	return i != nil && slices.ContainsFunc(i.entries, func(e v1alpha1.InventoryEntry) bool { return e.Health == healthTerminating })
}
