// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// item is one object of a render that is being applied.
type item struct {
	id      manifest.Identity
	version string
	res     *resource // nil while the kind is not served
	line    int32
	wave    int32
	tier    int
	digest  string
	written string // namespace as written in the render

	// What the look at the cluster found. checked: it holds for found, uid, rv.
	checked bool
	found   bool
	uid, rv string
	from    *release // it passes to us from this one
	marked  bool     // it had our mark, or that of whom it passes from, before this render

	force     bool  // conflicts are ours to win
	claim     claim // fields that become ours first, as those of kubectl's client-side apply
	replace   bool  // an immutable field changes and the policy says to make it anew
	class     class
	unchanged bool // nothing to do
	// shaped: it was looked at for what is left to others; plain: that is nothing.
	shaped, plain bool
	scaling       scaling
	failed        *problem
	hides         map[string]string // sealed values of an object that is no Secret, by where they stand
	refused       time.Time         // when it was first, although its definition had changed
}

// plan is what is to be done for one render.
type plan struct {
	render *Render
	count  int // of items
	items  []*item
	waves  []int32
	// hooks are run, not applied; lines has the items by their line, nil for a hook.
	hooks []*hook
	lines []*item
	// running: the hooks are to be run, in the round of this order.
	running bool
	// namespaces and kinds that the render itself brings.
	namespaces map[string]bool
	kinds      map[groupKind]definition
	webhooks   bool
	scalers    []scaler
}

type groupKind struct{ group, kind string }

// definition is what a CustomResourceDefinition of the render says of its kind.
type definition struct {
	plural     string
	namespaced bool
	digest     string
}

// tierOf makes few steps out of the kind order: kinds in one step do not need each
// other.
func tierOf(group, kind string) int {
	order := manifest.KindOrder(group, kind)
	switch {
	case order <= 1: // Namespace; CustomResourceDefinition
		return order
	case order <= 9: // classes, quotas, accounts, Secrets, ConfigMaps, volumes, ClusterRoles
		return 2
	case order <= 11: // ClusterRoleBindings, Roles
		return 3
	case order <= 13: // RoleBindings, Services
		return 4
	case order < 100: // workloads and kinds without a place of their own
		return 5
	}
	return order // policies, webhooks
}

// layers opens a stored render for reading. The caller calls done.
func (r *release) layers(ctx context.Context, render *Render) (reader *manifest.Reader, done func() error, err error) {
	objects, err := r.runner.state.OpenRender(ctx, render.Objects.Digest)
	if err != nil {
		return nil, nil, fmt.Errorf("open objects layer: %w", err)
	}
	closers := []io.Closer{objects}
	done = func() error {
		var errs []error
		for _, c := range closers {
			errs = append(errs, c.Close())
		}
		return errors.Join(errs...)
	}
	var sealed io.Reader
	if render.Sealed != nil {
		s, err := r.runner.state.OpenRender(ctx, render.Sealed.Digest)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open sealed layer: %w", err), done())
		}
		closers = append(closers, s)
		sealed = s
	}
	reader, err = manifest.NewReader(objects, sealed)
	if err != nil {
		return nil, nil, errors.Join(&renderError{reason: v1alpha1.ReasonRenderRefused, err: err}, done())
	}
	return reader, done, nil
}

// verified reads a stored layer through its digest.
type verified struct {
	io.Reader
	sum hash.Hash
}

func newVerified(from io.Reader) *verified {
	sum := sha256.New()
	return &verified{Reader: io.TeeReader(from, sum), sum: sum}
}

func (v *verified) digest() string { return "sha256:" + hex.EncodeToString(v.sum.Sum(nil)) }

// plan reads a render once, whole, before anything of it is tried: format, digests,
// keys that are ours to set, what it brings along.
func (r *release) plan(ctx context.Context, order tunnel.Order, render *Render) (p *plan, err error) {
	refuse := func(reason string, err error) error { return &renderError{reason: reason, err: err} }
	objects, err := r.runner.state.OpenRender(ctx, render.Objects.Digest)
	if err != nil {
		return nil, fmt.Errorf("open objects layer: %w", err)
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	sum := newVerified(objects)
	var sealedSum *verified
	var sealed io.Reader
	if render.Sealed != nil {
		s, err := r.runner.state.OpenRender(ctx, render.Sealed.Digest)
		if err != nil {
			return nil, fmt.Errorf("open sealed layer: %w", err)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		sealedSum = newVerified(s)
		sealed = sealedSum
	}
	reader, err := manifest.NewReader(sum, sealed)
	if err != nil {
		return nil, refuse(v1alpha1.ReasonRenderRefused, err)
	}
	p = &plan{
		render: render, count: reader.Header().Count,
		namespaces: map[string]bool{}, kinds: map[groupKind]definition{},
	}
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, refuse(v1alpha1.ReasonRenderRefused, err)
		}
		if err := p.add(entry, hooked(order)); err != nil {
			return nil, refuse(v1alpha1.ReasonRenderRefused, err)
		}
	}
	// A render of nothing but hooks would prune all that runs, as an empty one would.
	if p.count = len(p.items); p.count == 0 && !order.Policy.AllowEmpty {
		return nil, refuse(v1alpha1.ReasonEmptyRender, errors.New("the render holds no object; what runs is kept"))
	}
	for layer, v := range map[string]*verified{render.Objects.Digest: sum, digestOf(render.Sealed): sealedSum} {
		if v == nil {
			continue
		}
		if _, err := io.Copy(io.Discard, v); err != nil {
			return nil, fmt.Errorf("read render: %w", err)
		}
		if got := v.digest(); got != layer {
			return nil, refuse(v1alpha1.ReasonRenderRefused, fmt.Errorf("the stored layer has digest %s, ordered is %s", got, layer))
		}
	}
	return p, r.resolve(ctx, order, p)
}

func digestOf(l *tunnel.Layer) string {
	if l == nil {
		return ""
	}
	return l.Digest
}

// add takes one object of the render into the plan, as a hook if it is one and hooks
// are run.
func (p *plan) add(e *manifest.Entry, hooks bool) error {
	// Few objects have to be looked into here; all others are decoded when it is
	// their turn.
	var content map[string]any
	if isDefinition(e.Identity) || isScaler(e.Identity) || bytes.Contains(e.Raw, []byte(v1alpha1.LabelManaged)) ||
		bytes.Contains(e.Raw, []byte(v1alpha1.AnnotationOwner)) || bytes.Contains(e.Raw, []byte(v1alpha1.AnnotationHook)) {
		var err error
		if content, err = e.Object(); err != nil {
			return err
		}
	}
	if marked(content) {
		return fmt.Errorf("%s carries a label or annotation that only the engine sets", e.Identity)
	}
	it := &item{
		id: e.Identity, version: e.Version, line: int32(e.Line), wave: e.Wave,
		tier: tierOf(e.Group, e.Kind), digest: e.Digest, written: e.Namespace,
	}
	if hooks && content != nil {
		if is, err := p.addHook(*it, content); err != nil || is {
			p.lines = append(p.lines, nil)
			return err
		}
	}
	p.items, p.lines = append(p.items, it), append(p.lines, it)
	if n := len(p.waves); n == 0 || p.waves[n-1] != e.Wave {
		if n > 0 && p.waves[n-1] > e.Wave {
			return fmt.Errorf("%s: the waves are not in order", e.Identity)
		}
		p.waves = append(p.waves, e.Wave)
	}
	switch {
	case e.Group == "" && e.Kind == "Namespace":
		p.namespaces[e.Name] = true
	case e.Group == "admissionregistration.k8s.io":
		p.webhooks = true
	case e.Group == "apiextensions.k8s.io" && e.Kind == "CustomResourceDefinition":
		p.addKind(content, e.Digest)
	case isScaler(e.Identity):
		p.addScaler(it, content)
	}
	return nil
}

func (p *plan) addKind(content map[string]any, digest string) {
	spec, ok := content["spec"].(map[string]any)
	if !ok {
		return
	}
	names, ok := spec["names"].(map[string]any)
	if !ok {
		return
	}
	p.kinds[groupKind{text(spec["group"]), text(names["kind"])}] = definition{
		plural: text(names["plural"]), namespaced: text(spec["scope"]) == "Namespaced", digest: digest,
	}
}

// resolve finds where the kinds live and gives namespaced objects a namespace.
func (r *release) resolve(ctx context.Context, order tunnel.Order, p *plan) error {
	seen := make(map[manifest.Identity]bool, len(p.items))
	for _, it := range p.all() {
		if err := r.locate(ctx, order, p, it); err != nil && !errors.Is(err, errUnknownKind) {
			if ctx.Err() != nil {
				return errStopped
			}
			it.class = cannotTell
			it.failed = &problem{reason: exceptionUnknown, message: explain(err, false)}
		}
		if seen[it.id] {
			return &renderError{
				reason: v1alpha1.ReasonRenderRefused,
				err:    fmt.Errorf("%s stands in the render twice", it.id),
			}
		}
		seen[it.id] = true
	}
	return nil
}

// locate finds where an item's kind lives, now.
func (r *release) locate(ctx context.Context, order tunnel.Order, p *plan, it *item) error {
	if it.res != nil {
		return nil
	}
	found, err := r.runner.discovery.find(ctx, it.id.Group, it.version, it.id.Kind)
	if err == nil {
		it.res = r.runner.intern(found)
		it.id.Namespace = namespaceFor(it.written, found.namespaced, order.Policy.Namespace)
		return nil
	}
	namespaced, known := it.written != "", false
	if d, ok := p.kinds[groupKind{it.id.Group, it.id.Kind}]; ok {
		namespaced, known = d.namespaced, true
	}
	if !known && r.had(it.id, order.Policy.Namespace) {
		namespaced = true
	}
	it.id.Namespace = namespaceFor(it.written, namespaced, order.Policy.Namespace)
	return err
}

// had says whether an object without a namespace of its own lives in the order's.
func (r *release) had(id manifest.Identity, namespace string) bool {
	id.Namespace = namespace
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[id] != nil
}

func namespaceFor(written string, namespaced bool, fallback string) string {
	switch {
	case !namespaced:
		return ""
	case written != "":
		return written
	}
	return fallback
}

// around says what of the plan bears on the errors of an item.
func (p *plan) around(it *item, order tunnel.Order, changed func(groupKind, definition) bool, dry bool) surroundings {
	gk := groupKind{it.id.Group, it.id.Kind}
	d, brings := p.kinds[gk]
	return surroundings{
		bringsKind:      brings && (it.res == nil || changed(gk, d)),
		bringsNamespace: it.id.Namespace != "" && p.namespaces[it.id.Namespace],
		bringsWebhook:   p.webhooks && it.id.Group != "admissionregistration.k8s.io",
		madeNamespace:   it.id.Namespace != "" && it.id.Namespace == order.Policy.Namespace,
		dry:             dry,
	}
}

// content decodes one line of a stored render.
func (r *release) content(ctx context.Context, render *Render, line int32, digest string) (map[string]any, error) {
	content, _, err := r.contentHiding(ctx, render, line, digest)
	return content, err
}

// contentHiding is content, and gives the sealed values of the line, by where they stand.
func (r *release) contentHiding(ctx context.Context, render *Render, line int32, digest string) (content map[string]any, hides map[string]string, err error) {
	err = r.contents(ctx, render, func(n int32) bool { return n == line }, func(e *manifest.Entry) (bool, error) {
		if e.Digest != digest {
			return false, &renderError{
				reason: v1alpha1.ReasonRenderRefused,
				err:    fmt.Errorf("line %d of the stored render is not what was applied", line),
			}
		}
		hides = e.Sealed
		content, err = e.Object()
		return false, err
	})
	if err == nil && content == nil {
		err = fmt.Errorf("line %d of %s: %w", line, render.Objects.Digest, ErrNotStored)
	}
	return content, hides, err
}

// contents calls f for the lines that want picks, in order, until f says to stop.
func (r *release) contents(ctx context.Context, render *Render, want func(line int32) bool, f func(*manifest.Entry) (more bool, err error)) (err error) {
	reader, done, err := r.layers(ctx, render)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &renderError{reason: v1alpha1.ReasonRenderRefused, err: err}
		}
		if !want(int32(entry.Line)) {
			continue
		}
		if more, err := f(entry); err != nil || !more {
			return err
		}
	}
}
