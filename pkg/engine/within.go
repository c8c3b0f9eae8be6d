// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// With a namespace goes all that is in it, and with a definition all of its kind. So none
// of them is deleted while it holds anything that is not itself being deleted: what the
// render has, what is kept for whatever reason, and what is still to be deleted.

// within says whether an object would go with another one.
func within(id, place manifest.Identity) bool {
	switch {
	case isNamespace(place):
		return id.Namespace == place.Name
	case isDefinition(place):
		_, group, ok := strings.Cut(place.Name, ".")
		return ok && id.Group == group
	}
	return false
}

// inside is within, by what is known of an object.
func (o *object) inside(place manifest.Identity) bool {
	if !within(o.id, place) {
		return false
	}
	if isDefinition(place) && o.res != nil {
		plural, _, _ := strings.Cut(place.Name, ".")
		return o.res.plural == plural
	}
	return true
}

// staysWithinLocked names an object of the Release that would go with one that is to be
// deleted, and is not among those that are. Empty: there is none.
func (r *release) staysWithinLocked(place manifest.Identity, going func(*object) bool) string {
	if !isNamespace(place) && !isDefinition(place) {
		return ""
	}
	first := ""
	for _, o := range r.objects {
		if name := o.id.String(); o.inside(place) && !going(o) && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// staysWithin does so for what was let through to be deleted.
func (r *release) staysWithin(place manifest.Identity) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.staysWithinLocked(place, func(o *object) bool { return o.leaving != nil })
}

// holdsOwn is why an object is kept that holds another of the Release.
func holdsOwn(name string) string { return "it holds " + name + " of this Release, which stays" }

// afterContents moves deletions of namespaces and definitions behind those of what would
// go with them: some of it may turn out to be kept.
func afterContents(all []*deletion) {
	for _, d := range all {
		d.wave = d.o.wave
	}
	for _, d := range all {
		if !isNamespace(d.o.id) && !isDefinition(d.o.id) {
			continue
		}
		for _, other := range all {
			if other.o.inside(d.o.id) {
				d.wave = min(d.wave, other.o.wave)
			}
		}
	}
}

// occupied says what stands in the way of the deletion of a namespace or a definition.
type occupied struct {
	why  string // it is kept
	wait string // it is not deleted yet: an object that is to go before it
}

// inhabitant judges an object that lives in what is to be deleted, and that is not being
// deleted itself. It says that of one without meaning, or that goes by itself, nothing
// stands in the way.
func (r *release) inhabitant(res resource, item *metav1.ObjectMeta, strange bool) occupied {
	id := manifest.Identity{Group: res.group, Kind: res.kind, Namespace: item.Namespace, Name: item.Name}
	if item.Annotations[v1alpha1.AnnotationOwner] != r.marks.owner {
		if strange {
			return occupied{why: "others have objects in it, as " + id.String()}
		}
		return occupied{}
	}
	uid := string(item.UID)
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[id]
	if o == nil {
		for _, other := range r.objects {
			if other.uid == uid && other.id.Name == id.Name {
				o = other // it is known under another group
			}
		}
	}
	switch {
	case o != nil && o.isAdopted(uid):
		return occupied{why: "others have objects in it, as " + id.String()}
	case o != nil && o.leaving != nil:
		return occupied{wait: id.String()}
	case o != nil:
		return occupied{why: holdsOwn(id.String())}
	case !strange, slices.ContainsFunc(r.runs, func(run *HookRun) bool { return run.UID == uid }):
		return occupied{} // that of a hook was judged already
	}
	return occupied{why: "it holds " + id.String() + ", which carries the marks of this Release and is not known to it"}
}
