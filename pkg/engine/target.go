// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	kjson "sigs.k8s.io/json"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// Media types of requests and answers.
const (
	typeJSON      = "application/json"
	typeApply     = "application/apply-patch+yaml"
	typeMerge     = "application/merge-patch+json"
	typeJSONPatch = "application/json-patch+json"
	typeMeta      = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// resource is where objects of a kind live on the API server.
type resource struct {
	group, version, plural, kind string
	namespaced                   bool
}

// path is written as it goes out: what is no letter of an address is escaped.
func (r resource) path(namespace, name string) string {
	var b strings.Builder
	if r.group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/")
		b.WriteString(r.group)
		b.WriteByte('/')
	}
	b.WriteString(r.version)
	if r.namespaced && namespace != "" {
		b.WriteString("/namespaces/")
		b.WriteString(segment(namespace))
	}
	b.WriteByte('/')
	b.WriteString(r.plural)
	if name != "" {
		b.WriteByte('/')
		b.WriteString(segment(name))
	}
	return b.String()
}

// segment is a name as one part of a path. No object has a slash in its name: one is
// escaped so that the server takes the name for what it is and refuses it, and not for
// that of another object.
func segment(name string) string { return url.PathEscape(strings.ReplaceAll(name, "/", "%2F")) }

// target speaks to the API server. It has no cache and no rate limit of its own:
// the server's priority and fairness govern, and maxCalls bounds what is under way.
type target struct {
	client *http.Client
	base   *url.URL
	clock  clock.Clock
	calls  chan struct{}
	meter  *metrics
}

func newTarget(config *rest.Config, c clock.Clock, m *metrics) (*target, error) {
	config = rest.CopyConfig(config)
	// Answers are small and the server is near: compressing costs more than it saves.
	config.DisableCompression = true
	config.Timeout = 0 // each call has its own, watches have none
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the cluster: %w", err)
	}
	return &target{client: client, base: base, clock: c, calls: make(chan struct{}, maxCalls), meter: m}, nil
}

// request is one call.
type request struct {
	verb        string // for metrics: get, list, apply, dryrun, delete, ...
	method      string
	path        string
	query       url.Values
	contentType string
	accept      string
	body        []byte
}

// open sends a request and returns the answer when it is no error. The caller
// closes the body.
func (t *target) open(ctx context.Context, r request) (*http.Response, error) {
	u := *t.base
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + r.path
	path, err := url.PathUnescape(u.RawPath)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	u.Path = path
	u.RawQuery = r.query.Encode()
	for attempt := 0; ; attempt++ {
		req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(r.body))
		if err != nil {
			return nil, fmt.Errorf("make a request: %w", err)
		}
		if r.contentType != "" {
			req.Header.Set("Content-Type", r.contentType)
		}
		accept := r.accept
		if accept == "" {
			accept = typeJSON
		}
		req.Header.Set("Accept", accept)
		impersonate(ctx, req)
		start := t.clock.Now()
		res, err := t.client.Do(req)
		if err != nil {
			t.meter.call(r.verb, 0, t.clock.Since(start))
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, NoAnswer(err))
		}
		t.meter.call(r.verb, res.StatusCode, t.clock.Since(start))
		if res.StatusCode < http.StatusBadRequest {
			return res, nil
		}
		err = readStatus(res, r)
		if wait, throttled := apierrors.SuggestsClientDelay(err); throttled &&
			res.StatusCode == http.StatusTooManyRequests && attempt < maxThrottled {
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("%s %s: %w", r.method, r.path, context.Cause(ctx))
			case <-t.clock.After(time.Duration(max(wait, 1)) * time.Second):
				continue
			}
		}
		return nil, err
	}
}

// readStatus turns an answer that is an error into a StatusError.
func readStatus(res *http.Response, r request) error {
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxStatus))
	if err != nil {
		return fmt.Errorf("%s %s: read error answer %d: %w", r.method, r.path, res.StatusCode, NoAnswer(err))
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Status != "" {
		if status.Code == 0 {
			status.Code = int32(res.StatusCode)
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	after, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil {
		after = 0 // absent, or a date: no wish that we could follow
	}
	return apierrors.NewGenericServerResponse(res.StatusCode, r.method,
		schema.GroupResource{}, "", clip(string(body), 200), after, true)
}

// call sends a request, waits for its whole answer and returns it with the code.
func (t *target) call(ctx context.Context, r request) ([]byte, int, error) {
	select {
	case t.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
	defer func() { <-t.calls }()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	res, err := t.open(ctx, r)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s: read answer: %w", r.method, r.path, NoAnswer(err))
	}
	return body, res.StatusCode, nil
}

// decode reads one object. Whole numbers become int64, so that values compare.
func decode(body []byte) (map[string]any, error) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &object); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return object, nil
}

// meta is the little of an object that most decisions need.
type meta struct {
	UID             string            `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Annotations     map[string]string `json:"annotations"`
	Finalizers      []string          `json:"finalizers"`

	Owners   []metav1.OwnerReference `json:"ownerReferences"`
	Deletion *metav1.Time            `json:"deletionTimestamp"`
	Managers []struct {
		Manager     string                            `json:"manager"`
		Operation   metav1.ManagedFieldsOperationType `json:"operation"`
		Subresource string                            `json:"subresource"`
	} `json:"managedFields"`
}

// applied says whether our field manager has applied the object.
func (m meta) applied() bool {
	for _, e := range m.Managers {
		if e.Manager == v1alpha1.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			return true
		}
	}
	return false
}

func decodeMeta(body []byte) (meta, error) {
	var object struct {
		Metadata meta `json:"metadata"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return meta{}, fmt.Errorf("decode metadata: %w", err)
	}
	return object.Metadata, nil
}

// get reads an object whole.
func (t *target) get(ctx context.Context, r resource, namespace, name string) (map[string]any, error) {
	body, _, err := t.call(ctx, request{verb: "get", method: http.MethodGet, path: r.path(namespace, name)})
	if err != nil {
		return nil, err
	}
	return decode(body)
}

// look reads an object's metadata alone.
func (t *target) look(ctx context.Context, r resource, namespace, name string) (meta, error) {
	body, _, err := t.call(ctx, request{verb: "get", method: http.MethodGet, path: r.path(namespace, name), accept: typeMeta})
	if err != nil {
		return meta{}, err
	}
	return decodeMeta(body)
}

// applyQuery are the parameters of a server-side apply.
func applyQuery(force, dry bool) url.Values {
	q := url.Values{"fieldManager": {v1alpha1.FieldManager}, "fieldValidation": {"Strict"}}
	if force {
		q.Set("force", "true")
	}
	if dry {
		q.Set("dryRun", "All")
	}
	return q
}

// tryApply is an apply that changes nothing. It says whether the object would be
// made, and otherwise its UID and resource version.
func (t *target) tryApply(ctx context.Context, r resource, namespace, name string, body []byte, force bool) (found bool, m meta, err error) {
	answer, code, err := t.call(ctx, request{
		verb: "dryrun", method: http.MethodPatch, path: r.path(namespace, name),
		query: applyQuery(force, true), contentType: typeApply, accept: typeMeta, body: body,
	})
	if err != nil {
		return false, meta{}, err
	}
	if code == http.StatusCreated {
		return false, meta{}, nil
	}
	m, err = decodeMeta(answer)
	return true, m, err
}

// apply makes the object as body says, and returns it as it then is.
func (t *target) apply(ctx context.Context, r resource, namespace, name string, body []byte, force, dry bool) (object map[string]any, created bool, err error) {
	verb := "apply"
	if dry {
		verb = "dryrun"
	}
	answer, code, err := t.call(ctx, request{
		verb: verb, method: http.MethodPatch, path: r.path(namespace, name),
		query: applyQuery(force, dry), contentType: typeApply, body: body,
	})
	if err != nil {
		return nil, false, err
	}
	object, err = decode(answer)
	return object, code == http.StatusCreated, err
}

// patch sends a merge or JSON patch and returns the object's metadata.
func (t *target) patch(ctx context.Context, r resource, namespace, name, contentType string, body []byte) (meta, error) {
	answer, _, err := t.call(ctx, request{
		verb: "patch", method: http.MethodPatch, path: r.path(namespace, name),
		query: url.Values{"fieldManager": {v1alpha1.FieldManager}}, contentType: contentType, accept: typeMeta, body: body,
	})
	if err != nil {
		return meta{}, err
	}
	return decodeMeta(answer)
}

// remove deletes exactly the object with that UID and resource version.
func (t *target) remove(ctx context.Context, r resource, namespace, name, uid, resourceVersion string, policy metav1.DeletionPropagation) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions:     &metav1.Preconditions{UID: ptrTo(uidOf(uid)), ResourceVersion: &resourceVersion},
		PropagationPolicy: &policy,
	})
	if err != nil {
		return fmt.Errorf("encode delete options: %w", err)
	}
	_, _, err = t.call(ctx, request{
		verb: "delete", method: http.MethodDelete, path: r.path(namespace, name),
		contentType: typeJSON, accept: typeMeta, body: body,
	})
	return err
}
