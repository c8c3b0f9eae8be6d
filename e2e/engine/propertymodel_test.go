// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// propertyNames are all names that objects of a sequence may have.
var propertyNames = []string{"anchor", "b", "c", "d", "e", "f", "g"}

// cell is one object of a render.
type cell struct {
	value string
	wave  int
	keep  bool
}

// model says what must be in the namespace of a sequence.
type model struct {
	ns     string
	wanted map[string]cell
	// foreign objects, of others or let go of, and their values.
	foreign map[string]string
	// extra keys that others have added to objects.
	extra map[string]string
	uids  map[string]types.UID
	value int
}

func newModel(ns string) *model {
	return &model{
		ns: ns, wanted: map[string]cell{}, foreign: map[string]string{}, extra: map[string]string{}, uids: map[string]types.UID{},
	}
}

func (m *model) clone() *model {
	c := *m
	c.wanted, c.foreign, c.extra, c.uids = maps.Clone(m.wanted), maps.Clone(m.foreign), maps.Clone(m.extra), maps.Clone(m.uids)
	return &c
}

// draw makes the next render: the anchor is always there, so that it is never empty.
func (p *property) draw(rng *rand.Rand) {
	next := map[string]cell{}
	for _, name := range propertyNames {
		in, wave, keep := rng.IntN(10) < 6, rng.IntN(3)-1, rng.IntN(7) == 0
		if name != "anchor" && !in {
			continue
		}
		p.value++
		next[name] = cell{value: fmt.Sprintf("v%d", p.value), wave: wave, keep: keep}
		if before, there := p.wanted[name]; there && rng.IntN(3) == 0 {
			next[name] = before // not all of it changes
		}
	}
	for name, c := range p.wanted {
		if _, stays := next[name]; !stays {
			p.lose(name, c)
		}
	}
	for name := range next {
		delete(p.foreign, name) // it is taken over
	}
	p.wanted = next
}

// redraw changes values and waves of the objects that are wanted.
func (p *property) redraw(rng *rand.Rand) {
	for _, name := range propertyNames {
		c, in := p.wanted[name]
		if !in || rng.IntN(2) == 0 {
			continue
		}
		p.value++
		c.value, c.wave = fmt.Sprintf("v%d", p.value), rng.IntN(3)-1
		p.wanted[name] = c
	}
}

// leave empties the model of what the Release has.
func (p *property) leave() {
	for name, c := range p.wanted {
		p.lose(name, c)
	}
	p.wanted = map[string]cell{}
}

// lose is what becomes of an object that leaves the render.
func (p *property) lose(name string, c cell) {
	if c.keep {
		p.foreign[name] = c.value
		return
	}
	p.watch.allow(name)
	delete(p.uids, name)
	delete(p.extra, name)
}

// deleted notes that somebody deleted an object.
func (m *model) deleted(name string) {
	delete(m.uids, name)
	delete(m.extra, name)
}

func (m *model) render() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m.wanted)) {
		c := m.wanted[name]
		keep := ""
		if c.keep {
			keep = ", helm.sh/resource-policy: keep"
		}
		fmt.Fprintf(&out, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, annotations: {%s: %q%s}}\ndata: {k: %s}\n---\n",
			name, m.ns, v1alpha1.AnnotationSyncWave, fmt.Sprint(c.wave), keep, c.value)
	}
	return out.String()
}

func (m *model) pick(rng *rand.Rand, from map[string]cell) string {
	names := slices.Sorted(maps.Keys(from))
	return names[rng.IntN(len(names))]
}

// free is a name that nobody has; empty: there is none.
func (m *model) free(rng *rand.Rand) string {
	var names []string
	for _, name := range propertyNames {
		_, ours := m.wanted[name]
		_, theirs := m.foreign[name]
		if !ours && !theirs {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[rng.IntN(len(names))]
}

// somebody sets a key of an object, and says whether there was one.
func (p *property) somebody(name, key, value string) bool {
	p.b.t.Helper()
	_, err := p.b.plane.Dynamic().Resource(configmaps).Namespace(p.ns).Patch(p.b.ctx, name, types.MergePatchType,
		fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil && !apierrors.IsNotFound(err) {
		p.b.t.Fatal(err)
	}
	return err == nil
}

func (p *property) erase(name string) {
	p.b.t.Helper()
	err := p.b.plane.Dynamic().Resource(configmaps).Namespace(p.ns).Delete(p.b.ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		p.b.t.Fatal(err)
	}
}

func (p *property) make(name, value string) {
	p.b.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": p.ns},
		"data": map[string]any{"k": value},
	}}
	if _, err := p.b.plane.Dynamic().Resource(configmaps).Namespace(p.ns).Create(p.b.ctx, object, metav1.CreateOptions{FieldManager: "somebody"}); err != nil {
		p.b.t.Fatal(err)
	}
}

// check waits until the namespace is as the model says, and compares what has no
// right to change on the way there.
func (p *property) check() {
	p.b.t.Helper()
	owner := p.b.hub + "/uid-" + p.name
	for _, name := range propertyNames {
		c, ours := p.wanted[name]
		value, theirs := p.foreign[name]
		switch {
		case ours:
			p.b.live(configmaps, p.ns, name, "became "+c.value, func(u *unstructured.Unstructured) bool {
				return data(u, "k") == c.value && u.GetAnnotations()[v1alpha1.AnnotationOwner] == owner && data(u, "mine") == p.extra[name]
			})
		case theirs:
			p.b.live(configmaps, p.ns, name, "was left alone with "+value, func(u *unstructured.Unstructured) bool {
				return data(u, "k") == value && u.GetAnnotations()[v1alpha1.AnnotationOwner] == "" && u.GetLabels()[v1alpha1.LabelManaged] == ""
			})
		default:
			p.b.gone(configmaps, p.ns, name)
		}
	}
	list, err := p.b.plane.Dynamic().Resource(configmaps).Namespace(p.ns).List(p.b.ctx, metav1.ListOptions{})
	if err != nil {
		p.b.t.Fatal(err)
	}
	for i := range list.Items {
		name := list.Items[i].GetName()
		if !slices.Contains(propertyNames, name) {
			continue // the control plane's own
		}
		if before, known := p.uids[name]; known && before != list.Items[i].GetUID() {
			p.b.t.Errorf("ConfigMap %s was made anew, and nobody had deleted it", name)
		}
		p.uids[name] = list.Items[i].GetUID()
	}
	for _, name := range p.watch.surprises() {
		p.b.t.Errorf("ConfigMap %s was deleted, and neither had it left the render nor had somebody done so", name)
	}
}

// deletions collects what is deleted in a namespace.
type deletions struct {
	mu      sync.Mutex
	allowed map[string]int
	seen    map[string]int
}

// watchDeletions looks at a namespace until the test ends.
func watchDeletions(t *testing.T, b *bench, ns string) *deletions {
	t.Helper()
	w, err := b.plane.Dynamic().Resource(configmaps).Namespace(ns).Watch(b.ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := &deletions{allowed: map[string]int{}, seen: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if event.Type != watch.Deleted {
				continue
			}
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				d.mu.Lock()
				d.seen[u.GetName()]++
				d.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() { w.Stop(); <-done })
	return d
}

// allow one deletion more of an object.
func (d *deletions) allow(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.allowed[name]++
}

// surprises are the objects that were deleted more often than allowed.
func (d *deletions) surprises() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name, n := range d.seen {
		if n > d.allowed[name] && slices.Contains(propertyNames, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
