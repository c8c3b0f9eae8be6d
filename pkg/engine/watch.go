// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// place is where an object is found in a watch.
type place struct{ namespace, name string }

// tracked is an object with the Release that has it.
type tracked struct {
	r *release
	o *object
}

// scope is what one watch covers: a resource of the whole cluster, or of one
// namespace where the Runner is bound to some.
type scope struct {
	resource
	namespace string // empty: all
}

// scopeOf says which watch sees an object of a resource in a namespace.
func (rn *Runner) scopeOf(res *resource, namespace string) scope {
	if len(rn.namespaces) == 0 || !res.namespaced {
		namespace = ""
	}
	return scope{*res, namespace}
}

// watch follows the objects of one scope that carry our label. It keeps none of
// their content.
type watch struct {
	runner *Runner
	res    scope
	cancel context.CancelFunc // ends it; called when nothing is tracked any more
	// poke has a place for one word that an object was applied, so that a pause after
	// a failure need not be waited out.
	poke chan struct{}
	// failing since then, and for so long that its objects are not known any more; for
	// its own goroutine.
	failing time.Time
	blind   bool

	mu sync.Mutex
	// objects by place; guarded by mu.
	objects map[place]tracked
}

// track adds an object to the watch of its resource, and starts that if need be.
// The caller may hold the release's mu; the watch never holds its own while it
// calls a release.
//
// Two Releases may mean to have the same object. Until one of them has applied it
// (claim), whoever came first is told of it.
func (rn *Runner) track(res *resource, r *release, o *object, claim bool) {
	rn.watchMu.Lock()
	defer rn.watchMu.Unlock()
	covers := rn.scopeOf(res, o.id.Namespace)
	w := rn.watches[covers]
	if w == nil {
		w = &watch{runner: rn, res: covers, objects: map[place]tracked{}, poke: make(chan struct{}, 1)}
		rn.watches[covers] = w
		rn.meter.watches.Inc()
		rn.startWatch(w)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := place{o.id.Namespace, o.id.Name}
	have, there := w.objects[at]
	if !there {
		rn.meter.objects.Inc()
	}
	if !there || have.r == r || claim {
		w.objects[at] = tracked{r, o}
	}
	if claim {
		select {
		case w.poke <- struct{}{}:
		default: // it is awake, or told already
		}
	}
}

// untrack takes an object out again; a watch without objects ends.
func (rn *Runner) untrack(res *resource, r *release, id manifest.Identity) {
	rn.watchMu.Lock()
	defer rn.watchMu.Unlock()
	covers := rn.scopeOf(res, id.Namespace)
	w := rn.watches[covers]
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at := place{id.Namespace, id.Name}
	if t, there := w.objects[at]; there && t.r == r {
		rn.meter.objects.Dec()
		delete(w.objects, at)
	}
	if len(w.objects) == 0 {
		delete(rn.watches, covers)
		rn.meter.watches.Dec()
		if w.cancel != nil {
			w.cancel()
		}
	}
}

// startWatch needs watchMu. Before the Runner runs it only notes the watch.
func (rn *Runner) startWatch(w *watch) {
	if rn.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(rn.ctx)
	w.cancel = cancel
	rn.group.Go(func() error {
		defer cancel()
		w.run(ctx)
		return nil
	})
}

func (w *watch) find(at place) (tracked, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.objects[at]
	return t, ok
}

// errExpired: the server no longer has the history from where we were.
var errExpired = errors.New("the watch has to begin anew")

// run lists and watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx).WithValues("resource", w.res.plural, "group", w.res.group)
	version, failures := "", 0
	for ctx.Err() == nil {
		began := w.runner.clock.Now()
		next, err := w.once(ctx, version)
		version = next
		if ctx.Err() != nil {
			return
		}
		w.missed(began, err)
		if w.runner.clock.Since(began) > watchShort {
			failures = 0
			if err == nil || errors.Is(err, errExpired) {
				continue // its time was over
			}
		}
		pause := backoff(failures, watchRetryMin, watchRetryMax)
		pause += time.Duration(rand.Int64N(int64(pause)/2 + 1))
		failures++
		if err != nil && !errors.Is(err, errExpired) {
			log.V(1).Info("watch failed, begins again", "error", err.Error(), "after", pause)
		}
		select {
		case <-ctx.Done():
		case <-w.poke:
		case <-w.runner.clock.After(pause):
		}
	}
}

// once lists, if there is no version to go on from, and watches until the server
// ends it. It returns the version to go on from.
func (w *watch) once(ctx context.Context, version string) (string, error) {
	how := "resume"
	if version != "" {
		back, err := w.wentBack(ctx, version)
		if errors.Is(err, errExpired) {
			return "", err
		}
		if err != nil {
			return version, err
		}
		if back {
			w.rewind()
			version = ""
		}
	}
	if version == "" {
		how = "list"
		listed, err := w.list(ctx)
		if err != nil {
			return "", err
		}
		version = listed
	}
	w.runner.meter.relists.WithLabelValues(how).Inc()
	version, err := w.follow(ctx, version)
	if errors.Is(err, errExpired) {
		return "", err
	}
	return version, err
}

// list reads all marked objects page by page, and finds those that are gone.
func (w *watch) list(ctx context.Context) (version string, err error) {
	seen := map[place]bool{}
	query := url.Values{
		"labelSelector": {v1alpha1.LabelManaged + "=" + w.runner.hub},
		"limit":         {strconv.Itoa(pageSize)},
	}
	began := w.known()
	for {
		body, _, err := w.runner.target.call(ctx, request{verb: "list", method: http.MethodGet, path: w.res.path(w.res.namespace, ""), query: query})
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return "", errExpired
		}
		if apierrors.IsNotFound(err) {
			return "", w.unserved(ctx, began, err)
		}
		if err != nil {
			return "", err
		}
		var page struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return "", fmt.Errorf("decode list: %w", err)
		}
		for _, raw := range page.Items {
			object, err := decode(raw)
			if err != nil {
				return "", err
			}
			at := place{metaText(object, "namespace"), metaText(object, "name")}
			seen[at] = true
			if t, ok := w.find(at); ok {
				w.dress(object)
				t.r.observe(t.o, object)
			}
		}
		version = page.Metadata.ResourceVersion
		if page.Metadata.Continue == "" {
			break
		}
		query.Set("continue", page.Metadata.Continue)
	}
	for at, t := range began {
		if !seen[at] {
			t.r.absent(t.o, parseVersion(version))
		}
	}
	return version, nil
}

// dress gives an item of a list the type that only the list has.
func (w *watch) dress(object map[string]any) {
	if object["kind"] != nil {
		return
	}
	object["kind"] = w.res.kind
	object["apiVersion"] = w.res.version
	if w.res.group != "" {
		object["apiVersion"] = w.res.group + "/" + w.res.version
	}
}

// known copies what was tracked when a list began.
func (w *watch) known() map[place]tracked {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[place]tracked, len(w.objects))
	for at, t := range w.objects {
		all[at] = t
	}
	return all
}

// follow watches from a version on, until the server ends it. It returns the version
// to go on from.
func (w *watch) follow(ctx context.Context, version string) (string, error) {
	seconds := int64((watchMin + rand.N(watchMax-watchMin)) / time.Second)
	res, err := w.runner.target.open(ctx, request{
		verb: "watch", method: http.MethodGet, path: w.res.path(w.res.namespace, ""),
		query: url.Values{
			"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
			"labelSelector":  {v1alpha1.LabelManaged + "=" + w.runner.hub},
			"timeoutSeconds": {strconv.FormatInt(seconds, 10)},
		},
	})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsNotFound(err) {
		return "", errExpired
	}
	if err != nil {
		return version, err
	}
	defer res.Body.Close()
	w.sees()
	decoder := json.NewDecoder(res.Body)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) {
				return version, nil
			}
			return version, fmt.Errorf("read watch: %w", err)
		}
		w.runner.meter.events.Inc()
		next, err := w.take(event.Type, event.Object)
		if err != nil {
			return version, err
		}
		if next != "" {
			version = next
		}
	}
}

// take handles one event and returns its resource version.
func (w *watch) take(kind string, raw json.RawMessage) (string, error) {
	if kind == "ERROR" {
		var st metav1.Status
		if err := json.Unmarshal(raw, &st); err != nil {
			return "", fmt.Errorf("decode watch error: %w", err)
		}
		if st.Code == http.StatusGone {
			return "", errExpired
		}
		return "", &apierrors.StatusError{ErrStatus: st}
	}
	// Most of what carries our label is ours, but not all: look before decoding.
	var head struct {
		Metadata struct {
			Namespace       string `json:"namespace"`
			Name            string `json:"name"`
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &head); err != nil {
		return "", fmt.Errorf("decode watch event: %w", err)
	}
	m := head.Metadata
	t, ok := w.find(place{m.Namespace, m.Name})
	if !ok || kind == "BOOKMARK" {
		return m.ResourceVersion, nil
	}
	switch kind {
	case "DELETED":
		if t.o.sight != nil {
			// The last state of a hook's object says whether it had ended before it went.
			object, err := decode(raw)
			if err != nil {
				return "", err
			}
			t.r.observe(t.o, object)
		} else if mayEnd(t.o.id, raw) {
			object, err := decode(raw)
			if err != nil {
				return "", err
			}
			t.r.lastState(t.o, object)
		}
		t.r.vanished(t.o, m.UID, parseVersion(m.ResourceVersion))
	case "ADDED", "MODIFIED":
		if t.r.alreadySeen(t.o, m.UID, parseVersion(m.ResourceVersion)) {
			return m.ResourceVersion, nil
		}
		object, err := decode(raw)
		if err != nil {
			return "", err
		}
		t.r.observe(t.o, object)
	}
	return m.ResourceVersion, nil
}

// alreadySeen says whether a state was seen before, as the answer to our own apply.
func (r *release) alreadySeen(o *object, uid string, rv uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return o.seen && !o.missing && o.is(uid) && rv != 0 && rv <= o.rv
}

// absent takes in that a list of that version did not have an object.
func (r *release) absent(o *object, listed uint64) {
	r.mu.Lock()
	was, rv := o.applied, o.rv
	r.mu.Unlock()
	if !was || (rv != 0 && listed != 0 && rv > listed) {
		return
	}
	r.vanished(o, "", listed)
}
