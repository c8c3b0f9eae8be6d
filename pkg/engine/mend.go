// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// claim is what has to become ours of an object before it can be applied: so that the
// apply takes away what the render lacks. It moves no value, only who owns it.
type claim struct {
	// named are the fields that the server refused beside others.
	named []string
	// takeOver: those of clients that apply by themselves too.
	takeOver bool
	// renew: our entry is of a version of the object that lacks fields of the render.
	renew bool
	// forced: what others own beside a field that the server named as well.
	forced bool
}

func (c claim) none() bool { return len(c.named) == 0 && !c.takeOver && !c.renew }

func (c claim) takes(e managerEntry) bool {
	return c.takeOver && clientSide(e, c.forced)
}

// stale is what the claim is for, of a live object, without what is left to others.
func (c claim) stale(content, live map[string]any, t spared) *stale {
	s := staleOf(content, live, c.named, c.takes, c.forced)
	if len(s.fields) > 0 {
		s.fields, _ = t.split(s.fields, live)
	}
	return s
}

// clientSideOf are the managers whose place we take.
func clientSideOf(live map[string]any, c claim) sets.Set[string] {
	names := sets.New[string]()
	for _, e := range managers(live) {
		if c.takes(e) {
			names.Insert(e.manager)
		}
	}
	return names
}

// mends says whether an apply that the server refused is the kind that a claim may
// mend, and by which.
func mends(err error, live map[string]any) (named []string, renew, ok bool) {
	var api apierrors.APIStatus
	if !errors.As(err, &api) || live == nil {
		return nil, false, false
	}
	st := api.Status()
	switch {
	case st.Code == http.StatusUnprocessableEntity && !denied(st.Message):
		for _, c := range causes(st) {
			if c.Field != "" && !slices.Contains(named, c.Field) {
				named = append(named, c.Field)
			}
		}
		return named, false, len(named) > 0
	case undeclared(st):
		entry, version := rawEntry(live)
		return nil, true, entry != nil && version != text(live["apiVersion"])
	}
	return nil, false, false
}

// mendable says so without looking at the object.
func mendable(err error) bool {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return false
	}
	st := api.Status()
	return st.Code == http.StatusUnprocessableEntity && !denied(st.Message) || undeclared(st)
}

// undeclared says that a field is not in the schema of some version of the object.
func undeclared(st metav1.Status) bool {
	return st.Code == http.StatusInternalServerError && strings.Contains(st.Message, textUndeclared)
}

// wouldTake asks the server, in a dry run, whether it would have an object if everything
// went that an apply would take away after a claim. It gives the object as it would be.
// nil: there is nothing to claim, or it would not.
func (r *release) wouldTake(ctx context.Context, res resource, id manifest.Identity, content, live map[string]any, c claim, t spared) (want map[string]any, s *stale, err error) {
	s = c.stale(content, live, t)
	if s.none() && !c.renew {
		return nil, s, nil
	}
	merged, ok := s.merged(content, live)
	if !ok {
		return nil, s, nil
	}
	diff, _ := patchOf(live, merged)
	patch, ok := diff.(map[string]any)
	if !ok {
		return nil, s, nil
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	maps.DeleteFunc(metadata, func(name string, _ any) bool { return slices.Contains(serverMade, name) })
	for _, field := range []string{"apiVersion", "kind", "status"} {
		delete(patch, field)
	}
	if len(patch) == 1 && len(metadata) == 0 && !c.renew {
		return nil, s, nil // that is what it is already
	}
	body, err := encode(patch)
	if err != nil {
		return nil, s, err
	}
	answer, _, err := r.runner.target.call(ctx, request{
		verb: "dryrun", method: http.MethodPatch, path: res.path(id.Namespace, id.Name),
		query:       url.Values{"fieldManager": {v1alpha1.FieldManager}, "dryRun": {"All"}},
		contentType: typeMerge, body: body,
	})
	if err != nil {
		return nil, s, err
	}
	want, err = decode(answer)
	return want, s, err
}

// mend looks for a claim that lets an item be applied that the server refused. It is
// true when a dry run says that one does; what is then in the item holds until it is
// applied. Otherwise cause is what to tell: what the server said, or says now.
func (r *release) mend(ctx context.Context, it *item, content, live map[string]any, cause error) (mended bool, told error) {
	named, renew, ok := mends(cause, live)
	if !ok {
		return false, cause
	}
	c := claim{named: named, renew: renew, takeOver: it.claim.takeOver, forced: it.claim.forced}
	body, ok := clone(content).(map[string]any)
	if !ok {
		return false, cause
	}
	if _, err := r.marks.body(body, it.id, precondition{}); err != nil {
		return false, cause
	}
	t := r.sparedNow(it.id, content, live, it.scaling)
	if !t.none() {
		body = t.sparing(body, live)
	}
	want, s, err := r.wouldTake(ctx, *it.res, it.id, body, live, c, t)
	switch {
	case err == nil && want != nil:
		it.claim = c
		return true, nil
	case err != nil && (onlyUnchangeable(err) || classify(err, surroundings{dry: true}) == cannotTell):
		return false, err // beside what cannot change nothing is wrong, or nobody knows
	case len(s.held) > 0:
		return false, &heldError{cause: cause, field: s.held[0].path, manager: s.held[0].managed}
	}
	return false, cause
}

// mendLive is mend for an object that has drifted. It gives the object as it would be,
// and how it differs from that.
func (r *release) mendLive(ctx context.Context, o *object, res resource, content, live map[string]any, t spared, cause error) (want map[string]any, differ []change, c claim, err error) {
	named, renew, ok := mends(cause, live)
	if !ok {
		return nil, nil, c, cause
	}
	// It stood there without that when it was applied: who put it there is who changed the
	// object.
	c = claim{named: named, renew: renew, forced: true}
	want, s, err := r.wouldTake(ctx, res, o.id, content, live, c, t)
	if err != nil || want == nil {
		if len(s.held) > 0 {
			cause = &heldError{cause: cause, field: s.held[0].path, manager: s.held[0].managed}
		}
		return nil, nil, c, cause
	}
	differ = s.paths()
	if entry := ownEntry(live); entry != nil {
		compare(entry, live, true, want, true, nil, &differ)
	}
	for i := range differ {
		differ[i].path = displayPath(differ[i].keys)
		differ[i].managed = managerOf(managers(live), differ[i].keys)
	}
	return want, differ, c, nil
}

// repairMended repairs an object of which the server does not have what we applied
// beside what stands there now.
func (r *release) repairMended(ctx context.Context, o *object, res resource, content, live map[string]any, t spared, cause error, how repairing) (repaired, error) {
	_, differ, c, err := r.mendLive(ctx, o, res, content, live, t, cause)
	if err != nil {
		return repaired{}, &compareError{err}
	}
	uid := metaText(live, "uid")
	switch how {
	case repairNothing:
		r.observe(o, live)
		out := describe(differ, ownEntry(live) == nil)
		out.changed, out.at = false, parseVersion(metaText(live, "resourceVersion"))
		return out, nil
	case repairEntry:
		return repaired{}, nil
	case repairAll:
	}
	version, err := r.stake(ctx, res, o.id, uid, content, live, c, t)
	if err != nil {
		return repaired{}, err
	}
	body, err := r.marks.body(content, o.id, precondition{uid: uid, resourceVersion: version})
	if err != nil {
		return repaired{}, err
	}
	answer, _, err := r.runner.target.apply(ctx, res, o.id.Namespace, o.id.Name, body, true, false)
	if err != nil {
		return repaired{}, err
	}
	r.accept(o, answer)
	return describe(differ, false), nil
}

// heldError: what the server refuses stands beside a field that somebody else owns.
type heldError struct {
	cause          error
	field, manager string
}

func (e *heldError) Error() string { return explain(e.cause, false) + e.hint() }

func (e *heldError) hint() string {
	return fmt.Sprintf("; %s is managed by %q and stays, conflicts: Force removes it", e.field, e.manager)
}

func (e *heldError) Unwrap() error { return e.cause }

// stake carries a claim out: the fields become ours, with one patch that changes no
// value. content loses the nulls that would keep them. It is not for an object that is
// another one now.
func (r *release) stake(ctx context.Context, res resource, id manifest.Identity, uid string, content, live map[string]any, c claim, t spared) (resourceVersion string, err error) {
	if metaText(live, "uid") != uid {
		return "", apierrors.NewConflict(groupResource(&res), id.Name, errRaced)
	}
	s := c.stale(content, live, t)
	object, ok := clone(live).(map[string]any)
	if !ok {
		return "", fmt.Errorf("%s is no object: %w", id, errRaced)
	}
	u := &unstructured.Unstructured{Object: object}
	if names := clientSideOf(live, c); len(names) > 0 {
		if err := csaupgrade.UpgradeManagedFields(u, names, v1alpha1.FieldManager); err != nil {
			return "", fmt.Errorf("take fields over from kubectl: %w", err)
		}
	}
	if c.renew || len(s.fields) > 0 {
		own(u.Object, s.fields, c.forced)
	}
	withoutNulls(content, s.fields)
	entries, there, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil || !there {
		return "", fmt.Errorf("%s has no managedFields: %w", id, errors.Join(err, errRaced))
	}
	before, _, err := unstructured.NestedSlice(live, "metadata", "managedFields")
	if err == nil && same(before, entries) {
		return metaText(live, "resourceVersion"), nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": metaText(live, "resourceVersion")},
	})
	if err != nil {
		return "", fmt.Errorf("encode patch: %w", err)
	}
	m, err := r.runner.target.patch(ctx, res, id.Namespace, id.Name, typeJSONPatch, patch)
	return m.ResourceVersion, err
}

// rawEntry is our entry in managedFields as it stands there, and the version that its
// fields are of.
func rawEntry(live map[string]any) (entry map[string]any, version string) {
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return nil, ""
	}
	list, ok := metadata["managedFields"].([]any)
	if !ok {
		return nil, ""
	}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if ok && text(m["manager"]) == v1alpha1.FieldManager && text(m["operation"]) == "Apply" && text(m["subresource"]) == "" {
			return m, text(m["apiVersion"])
		}
	}
	return nil, ""
}

// own adds fields to our entry in managedFields, in the version that the object is read
// in. alone: nobody else has them any more.
func own(live, fields map[string]any, alone bool) {
	entry, _ := rawEntry(live)
	metadata, ok := live["metadata"].(map[string]any)
	if !ok {
		return
	}
	if entry == nil {
		entry = map[string]any{
			"manager": v1alpha1.FieldManager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{},
		}
		list, ok := metadata["managedFields"].([]any)
		if !ok {
			list = nil // there is none yet
		}
		metadata["managedFields"] = append(list, entry)
	}
	list, ok := metadata["managedFields"].([]any)
	if alone && ok {
		metadata["managedFields"] = slices.DeleteFunc(list, func(item any) bool {
			m, ok := item.(map[string]any)
			if !ok || text(m["manager"]) == v1alpha1.FieldManager && text(m["operation"]) == "Apply" {
				return false
			}
			tree, ok := m["fieldsV1"].(map[string]any)
			if ok {
				disown(tree, fields)
			}
			return ok && len(tree) == 0
		})
	}
	entry["apiVersion"] = text(live["apiVersion"])
	have, ok := entry["fieldsV1"].(map[string]any)
	if !ok {
		have = map[string]any{}
		entry["fieldsV1"] = have
	}
	addFields(have, fields)
}

func addFields(have, more map[string]any) {
	for key, value := range more {
		sub, ok := value.(map[string]any)
		if !ok {
			continue
		}
		old, there := have[key].(map[string]any)
		if !there {
			have[key] = clone(sub)
			continue
		}
		if len(old) == 0 && len(sub) > 0 {
			old["."] = map[string]any{}
		}
		addFields(old, sub)
	}
}

// withoutNulls takes nulls out of the render that stand where fields are to go: a null would
// be a wish for them.
func withoutNulls(content any, fields map[string]any) {
	for _, key := range sortedKeys(fields) {
		sub, ok := fields[key].(map[string]any)
		if !ok || key == "." {
			continue
		}
		if m, ok := content.(map[string]any); ok {
			name := strings.TrimPrefix(key, "f:")
			if value, there := m[name]; there && value == nil {
				delete(m, name)
				continue
			}
		}
		if child, there := stated(content, key); there {
			withoutNulls(child, sub)
		}
	}
}
