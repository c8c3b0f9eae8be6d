// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// probeSuffix makes the name of an object that is never made: see tryAnew.
const probeSuffix = "-convoy-probe"

// tryAnew finds out why the server calls an existing object's change invalid. If
// the same content would do as a new object (tried in a dry run under a name that is
// not in use), then the change touches a field that cannot be changed.
func (r *release) tryAnew(ctx context.Context, order tunnel.Order, it *item, content map[string]any, cause error) {
	message := it.explain(cause)
	live, err := r.look(ctx, it)
	if err != nil {
		var owned *ownedByOtherError
		if errors.As(err, &owned) {
			it.fail(rejected, exceptionOwned, owned.Error())
			return
		}
		it.fail(cannotTell, reasonOf(err), it.explain(err))
		return
	}
	if !it.found {
		it.fail(rejected, exceptionRejected, message)
		return
	}
	mended, cause := r.mend(ctx, it, content, live, cause)
	if mended {
		return
	}
	if message = it.explain(cause); classify(cause, surroundings{dry: true}) == cannotTell {
		it.fail(cannotTell, reasonOf(cause), message)
		return
	}
	probe := it.id
	probe.Name = probeName(it.id.Name)
	anew := withoutHeld(it.id, content, live)
	metadata, ok := anew["metadata"].(map[string]any)
	if !ok {
		it.fail(rejected, exceptionRejected, message)
		return
	}
	name := metadata["name"]
	metadata["name"] = probe.Name
	body, err := r.marks.body(anew, probe, precondition{})
	metadata["name"] = name
	if err == nil {
		var made map[string]any
		made, _, err = r.runner.target.apply(ctx, *it.res, probe.Namespace, probe.Name, body, true, true)
		if err == nil && isStatefulSet(it.id) {
			message = r.frozen(ctx, it, made, message)
		}
	}
	switch {
	case err != nil && onlyUnchangeable(cause):
		// That it cannot be made anew is no other fault of the change: the name may have to
		// be that of the content, as of a definition. But then it is not deleted.
		if order.Policy.Replace && replacements[groupKind{it.id.Group, it.id.Kind}] != "" && r.object(it.id) != nil {
			message = clip(message, maxMessage/2) + notReplaced + it.explain(err)
			if overQuota(err) {
				message += quotaHint
			}
		}
		it.fail(invalid, exceptionImmutable, message)
	case err != nil, !saysUnchangeable(cause):
		it.fail(rejected, exceptionRejected, message)
	case order.Policy.Replace && r.object(it.id) != nil:
		switch kept, err := r.staysInPlace(ctx, it, content); {
		case err != nil:
			it.fail(cannotTell, reasonOf(err), it.explain(err))
		case kept != nil:
			it.fail(invalid, exceptionImmutable, kept.Error()+"; "+message)
		default:
			it.replace = true
		}
	default:
		it.fail(invalid, exceptionImmutable, message)
	}
}

// tryRenewed finds out whether an object that exists is refused only since our fields of
// it are known by a version that lacks some of the render.
func (r *release) tryRenewed(ctx context.Context, it *item, content map[string]any, cause error) {
	live, err := r.look(ctx, it)
	if err == nil && it.found {
		var mended bool
		if mended, err = r.mend(ctx, it, content, live, cause); mended {
			return
		}
	}
	if err != nil && classify(err, surroundings{dry: true}) == cannotTell {
		it.fail(cannotTell, reasonOf(err), it.explain(err))
		return
	}
	it.fail(rejected, exceptionRejected, it.explain(cause))
}

// withoutHeld is the content of a probe: of a Service without the addresses and ports of
// the cluster that the live one holds itself, which are free once it is deleted.
func withoutHeld(id manifest.Identity, content, live map[string]any) map[string]any {
	if id.Group != "" || id.Kind != "Service" {
		return content
	}
	out, ok := clone(content).(map[string]any)
	if !ok {
		return content // it is a map, so this cannot be
	}
	spec, ok := out["spec"].(map[string]any)
	if !ok {
		return content
	}
	has, ok := live["spec"].(map[string]any)
	if !ok {
		return content
	}
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		// A Service without an address stays one without.
		if value := plainNumber(spec[field]); reflect.DeepEqual(value, has[field]) && has["clusterIP"] != "None" {
			delete(spec, field)
		}
	}
	held := map[any]bool{}
	for _, port := range portsOf(has) {
		held[port["nodePort"]] = true
	}
	for _, port := range portsOf(spec) {
		if n := plainNumber(port["nodePort"]); n != nil && held[n] {
			delete(port, "nodePort")
		}
	}
	return out
}

func portsOf(spec map[string]any) []map[string]any {
	list, ok := spec["ports"].([]any)
	if !ok {
		return nil
	}
	var ports []map[string]any
	for _, item := range list {
		if port, ok := item.(map[string]any); ok {
			ports = append(ports, port)
		}
	}
	return ports
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

// annotatedToStay says which annotation keeps an object from being deleted to be made
// anew: where it lives, as it was applied last, or as it is to be applied now.
func (r *release) annotatedToStay(ctx context.Context, it *item, content map[string]any) (string, error) {
	var rules deleteRules
	if why := rules.annotated(annotationTexts(content)); why != "" {
		return why, nil
	}
	m, err := r.runner.target.look(ctx, *it.res, it.id.Namespace, it.id.Name)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	if why := rules.annotated(m.Annotations); why != "" {
		return why, nil
	}
	o := r.object(it.id)
	if o == nil {
		return "", nil
	}
	r.mu.Lock()
	others := o.isAdopted(m.UID)
	r.mu.Unlock()
	if others || r.replaced(o, m.UID, m.Annotations[v1alpha1.AnnotationOwner]) {
		return "that " + madeByOthers, nil
	}
	rendered, err := r.renderedKeeps(ctx, []*object{o}, rules)
	if err != nil || rendered[o] == "" {
		return "", err
	}
	return rendered[o] + ", as it was applied", nil
}
