// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// probeSuffix makes the name of an object that is never made: see tryAnew.
const probeSuffix = "-convoy-probe"

// tryAnew finds out why the server calls an existing object's change invalid. If
// the same content would do as a new object (tried in a dry run under a name that is
// not in use), then the change touches a field that cannot be changed.
func (r *release) tryAnew(ctx context.Context, order tunnel.Order, it *item, content map[string]any, cause error) {
	message := explain(cause, isSecret(it.id))
	if err := r.lookAt(ctx, it); err != nil {
		var owned *ownedByOtherError
		if errors.As(err, &owned) {
			it.fail(rejected, exceptionOwned, owned.Error())
			return
		}
		it.fail(cannotTell, reasonOf(err), explain(err, isSecret(it.id)))
		return
	}
	if !it.found {
		it.fail(rejected, exceptionRejected, message)
		return
	}
	probe := it.id
	probe.Name = probeName(it.id.Name)
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		it.fail(rejected, exceptionRejected, message)
		return
	}
	metadata["name"] = probe.Name
	body, err := r.marks.body(content, probe, precondition{})
	metadata["name"] = it.id.Name
	if err == nil {
		var made map[string]any
		made, _, err = r.runner.target.apply(ctx, *it.res, probe.Namespace, probe.Name, body, true, true)
		if err == nil && isStatefulSet(it.id) {
			message = r.frozen(ctx, it, made, message)
		}
	}
	switch {
	case err != nil, !saysUnchangeable(cause):
		it.fail(rejected, exceptionRejected, message)
	case order.Policy.Replace && replaceable(it.id) && r.object(it.id) != nil:
		it.replace = true
	default:
		it.fail(invalid, exceptionImmutable, message)
	}
}

// probeName is a name that is not in use and that every kind allows.
func probeName(name string) string {
	const most = 63 - len(probeSuffix)
	if len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(name, ".-") + probeSuffix
}

func isStatefulSet(id manifest.Identity) bool { return id.Group == "apps" && id.Kind == "StatefulSet" }

// mutable are the fields of a StatefulSet that may change. The server lists them when
// another one does, and does not say which.
var mutable = map[string]bool{
	"replicas": true, "template": true, "updateStrategy": true, "revisionHistoryLimit": true,
	"persistentVolumeClaimRetentionPolicy": true, "minReadySeconds": true, "ordinals": true,
}

// frozen names the fields of a StatefulSet that would change and cannot: made is what
// the server would make of the render as a new object.
func (r *release) frozen(ctx context.Context, it *item, made map[string]any, message string) string {
	live, err := r.runner.target.get(ctx, *it.res, it.id.Namespace, it.id.Name)
	if err != nil {
		return message // the server's own words have to do
	}
	fields := frozenFields(live, made)
	if len(fields) == 0 {
		return message
	}
	return joinFields(fields) + ": cannot be changed in a StatefulSet that exists; " + clip(message, maxMessage/2)
}

func frozenFields(live, made map[string]any) []string {
	before, ok := live["spec"].(map[string]any)
	if !ok {
		return nil
	}
	after, ok := made["spec"].(map[string]any)
	if !ok {
		return nil
	}
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if !mutable[name] && !reflect.DeepEqual(before[name], after[name]) {
			fields = append(fields, "spec."+name)
		}
	}
	return fields
}

// replaceable says whether an object may be deleted to be made anew, should the
// policy say so. Not those that take others' objects or data with them.
func replaceable(id manifest.Identity) bool {
	switch (groupKind{id.Group, id.Kind}) {
	case groupKind{"", "Namespace"}, groupKind{"", "PersistentVolumeClaim"}, groupKind{"", "PersistentVolume"},
		groupKind{"apiextensions.k8s.io", "CustomResourceDefinition"}:
		return false
	}
	return true
}
