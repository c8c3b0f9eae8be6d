// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster whose etcd is restored from a snapshot goes back to an earlier state, and its
// versions with it. A watch that goes on from a version of before is told of nothing then
// until the cluster has come that far again, and what it would tell looks older than what
// was seen. So each watch that goes on asks first how far the cluster is.

// wentBack says whether the cluster is at an earlier version than the one to go on from, or
// has what changed last in an earlier state. It costs one small call; versions that are no
// numbers say nothing.
func (w *watch) wentBack(ctx context.Context, version string) (bool, error) {
	was := parseVersion(version)
	at, seen := w.newest()
	if was == 0 || seen == 0 {
		return false, nil
	}
	// Of one object by its name, so that the server need not search.
	body, _, err := w.runner.target.call(ctx, request{
		verb: "list", method: http.MethodGet, path: w.res.path(at.namespace, ""), accept: typeMetaList,
		query: url.Values{"fieldSelector": {"metadata.name=" + at.name}, "limit": {"1"}},
	})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsNotFound(err) {
		return false, errExpired
	}
	if err != nil {
		return false, err
	}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []struct {
			Metadata meta `json:"metadata"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return false, fmt.Errorf("decode list: %w", err)
	}
	now := parseVersion(list.Metadata.ResourceVersion)
	if now == 0 {
		return false, nil
	}
	back := now < was || len(list.Items) == 0 // gone, or never made: a list tells
	for i := range list.Items {
		back = back || parseVersion(list.Items[i].Metadata.ResourceVersion) < seen
	}
	if back {
		logr.FromContextOrDiscard(ctx).Info("the cluster may have gone back to an earlier state, objects are read anew",
			"resource", w.res.plural, "group", w.res.group, "was", was, "now", now)
	}
	return back, nil
}

// newest gives the place and the version of the tracked object that changed last, 0: none
// was seen that is there.
func (w *watch) newest() (at place, version uint64) {
	for p, t := range w.known() {
		t.r.mu.Lock()
		rv, there := t.o.rv, !t.o.missing
		t.r.mu.Unlock()
		if there && rv > version {
			at, version = p, rv
		}
	}
	return at, version
}

// rewind forgets how new what was seen is, of all objects of the watch.
func (w *watch) rewind() {
	for _, t := range w.known() {
		t.r.rewound(t.o)
	}
}

// rewound takes in that the next state of an object counts, however old it looks. What is
// written down went back too.
func (r *release) rewound(o *object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[o.id] != o && o.sight == nil {
		return
	}
	o.rv, o.judged = 0, false
	r.saveSoonLocked()
}
