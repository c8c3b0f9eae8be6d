// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// folder of the case files.
const folder = "../testdata/cases"

// shared is what all tests of the package play on; each case has namespaces of its own.
var shared *World

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	shared, err = Start(ctx)
	defer func() {
		// Tests may have taken longer than a start may.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, shared.Close(ending))
	}()
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// soak says whether slow cases are played too.
func soak() bool { return os.Getenv("CONVOY_SOAK") != "" }

func read(t *testing.T, id string) *Case {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v, %v", id, found, err)
	}
	c, err := Read(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// renamed is a case under a name of its own, so that it can be played beside itself.
func renamed(t *testing.T, c *Case, suffix string) *Case {
	t.Helper()
	raw, err := os.ReadFile(c.File)
	if err != nil {
		t.Fatal(err)
	}
	id, namespace := c.ID, c.Namespace()
	out, err := Parse(c.File, []byte(strings.NewReplacer("id: "+id, "id: "+id+suffix, namespace, namespace+suffix).Replace(string(raw))))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// played is a case in the middle of being played by a test.
type played struct {
	*Player
	t   *testing.T
	ctx context.Context //nolint:containedctx // of the test
	out strings.Builder
}

// play begins a case; the test says which steps to play and looks in between.
func play(t *testing.T, id string, limit time.Duration) *played {
	t.Helper()
	p := newPlayed(t, shared, read(t, id), limit)
	p.start()
	return p
}

// playText is play for a case that is written in the test.
func playText(t *testing.T, world *World, text string) *played {
	t.Helper()
	c, err := Parse(t.Name(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := newPlayed(t, world, c, 5*time.Minute)
	p.start()
	return p
}

func (p *played) start() {
	p.t.Helper()
	if err := p.Begin(p.ctx); err != nil {
		p.t.Fatal(err)
	}
}

func newPlayed(t *testing.T, world *World, c *Case, limit time.Duration) *played {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	p := &played{t: t, ctx: ctx}
	p.Player = NewPlayer(world, c, Options{Out: &p.out})
	t.Cleanup(func() {
		defer cancel()
		if t.Failed() {
			t.Log(p.out.String())
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := p.End(end); err != nil {
			t.Errorf("end of case %s: %v", c.ID, err)
		}
	})
	return p
}

// step plays the step of that name.
func (p *played) step(names ...string) {
	p.t.Helper()
	for _, name := range names {
		s := p.c.find(name)
		if s == nil {
			p.t.Fatalf("there is no step %s", name)
		}
		if err := p.Step(p.ctx, s); err != nil {
			p.t.Fatalf("step %s: %v\n%s", name, err, p.out.String())
		}
	}
}

// object of a cluster; nil when there is none.
func (p *played) object(t *target, kind, name string) *unstructured.Unstructured {
	p.t.Helper()
	gvk, err := t.cube.guess(kind)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.objectOn(t.cube, gvk, name)
}

func (p *played) objectOn(q *cube, gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	p.t.Helper()
	out, err := q.get(p.ctx, gvk, p.c.Namespace(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// live gives an object that has to be there.
func (p *played) live(t *target, kind, name string) *unstructured.Unstructured {
	p.t.Helper()
	out := p.object(t, kind, name)
	if out == nil {
		p.t.Fatalf("%s %s is not live on %s\n%s", kind, name, t.cluster, p.out.String())
	}
	if out.GetDeletionTimestamp() != nil {
		p.t.Fatalf("%s %s is being deleted on %s", kind, name, t.cluster)
	}
	return out
}

// gone says that an object must not be there.
func (p *played) gone(t *target, kind, name string) {
	p.t.Helper()
	if out := p.object(t, kind, name); out != nil {
		p.t.Errorf("%s %s is still there on %s\n%s", kind, name, t.cluster, p.out.String())
	}
}

// same says that an object has the UID that it had.
func (p *played) same(t *target, before *unstructured.Unstructured) {
	p.t.Helper()
	if now := p.live(t, before.GetKind(), before.GetName()); now.GetUID() != before.GetUID() {
		p.t.Errorf("%s %s was made again on %s", before.GetKind(), before.GetName(), t.cluster)
	}
}

// status of a Release.
func (p *played) status(t *target, name string) *corev1alpha1.Release {
	p.t.Helper()
	for _, r := range p.releases {
		if r.name != name {
			continue
		}
		out, err := p.read(p.ctx, t, r)
		if err != nil || out == nil {
			p.t.Fatalf("release %s: %v", name, err)
		}
		return out
	}
	p.t.Fatalf("there is no Release %s", name)
	return nil
}

// is says that a condition has a status and, unless empty, a reason.
func (p *played) is(t *target, name, typ, status, reason string) {
	p.t.Helper()
	c := condition(p.status(t, name), typ)
	if c == nil || string(c.Status) != status || reason != "" && c.Reason != reason {
		p.t.Errorf("Release %s on %s: %s is %+v, want %s %s", name, t.cluster, typ, c, status, reason)
	}
}
