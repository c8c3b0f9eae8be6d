// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// aCase is one that needs no control plane.
func aCase(t *testing.T, text string) *Case {
	t.Helper()
	c, err := Parse("x.yaml", []byte("# id: XX-01\n---\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnEventMeansTheReleasesThatItNames(t *testing.T) {
	t.Parallel()
	p := &Player{}
	for _, name := range []string{"r1", "a-b", "b"} {
		p.releases = append(p.releases, &release{name: name})
	}
	for what, want := range map[string]string{
		"the Release is deleted while the backend is down": "r1",
		"Release b is deleted":                             "b",
		"releases a-b and b are deleted":                   "a-b b",
		"the Release a-b of the second cluster is deleted": "a-b",
		"all Releases are deleted":                         "r1 a-b b",
		"both Releases are deleted":                        "r1 a-b b",
		"the Release shop is deleted":                      "",
	} {
		found := false
		for _, h := range happenings() {
			m := h.words.FindStringSubmatch(what)
			if m == nil || len(m) != 3 || !strings.Contains(h.words.String(), "releases?((?:") {
				continue
			}
			found = true
			var got []string
			for _, r := range p.named(quantity(m[1]) + " " + m[2]) {
				got = append(got, r.name)
			}
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		if !found {
			t.Errorf("%s: nobody knows these words", what)
		}
	}
}

func TestAnEventThatTellsSeveralThingsIsTakenPartByPart(t *testing.T) {
	t.Parallel()
	p := &Player{}
	for what, want := range map[string]bool{
		"the agent is stopped; the hub is killed; then the agent is started":                                      true,
		"the hub is stopped and then the agents are restarted, then the hub is back":                              true,
		"the hub is restored from the backup; it knows v1 of r1 and nothing of r2; agents connect again":          false,
		"the cluster is destroyed; a new one with the same name and a fresh agent registers":                      false,
		"values.rev becomes 2; the holder of finalizer a.b/c takes a minute to let the old Job go":                false,
		"repeat v1 and v2 but someone deletes the namespace by hand first":                                        false,
		"Secret shared is deleted by hand; the Release's spec.syncPolicy.automatic becomes false; 5 seconds pass": true,
	} {
		if got := p.several(clausesOf(what)); got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestWhatAStepDoesNotUseIsSaid(t *testing.T) {
	t.Parallel()
	c := aCase(t, "step: a\ndo: render\nas: me\nhow: ssa\ncolour: blue\n---\nkind: A\nmetadata: {name: a}\n")
	if diff := cmp.Diff([]string{"as", "colour", "how"}, c.Steps[0].Unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDriftIsShownWhereACaseExpectsThat(t *testing.T) {
	t.Parallel()
	const live = "step: edit\ndo: live\n---\nkind: A\nmetadata: {name: a}\n---\n"
	for text, want := range map[string]bool{
		live + "step: look\ndo: check\nexpect:\n- InSync is False and names A\n": true,
		live + "step: look\ndo: check\nexpect: InSync is not True\n":             true,
		live + "step: look\ndo: check\nexpect: InSync is True\n":                 false,
		"step: look\ndo: check\nexpect: InSync is False\n":                       false,
	} {
		if got := aCase(t, text).showsDrift() != nil; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAScaleTakesItsNumberFromTheStepOrTheObject(t *testing.T) {
	t.Parallel()
	c := aCase(t, `step: a
do: live
how: scale
target: Deployment team/web
replicas: 4
---
step: b
do: live
how: scale
---
kind: Deployment
metadata: {name: web}
spec: {replicas: 5}
---
step: c
do: live
how: scale
target: {kind: Deployment, name: web, namespace: team, replicas: 6}
---
step: d
do: live
how: scale
---
apiVersion: autoscaling/v1
kind: Scale
metadata: {name: web, namespace: team}
spec: {replicas: 7}
---
step: e
do: live
how: scale
target: StatefulSet web
---
apiVersion: autoscaling/v1
kind: Scale
metadata: {name: web}
spec: {replicas: 8}
`)
	for i, want := range []int64{4, 5, 6, 7, 8} {
		doc := c.Steps[i].objects()[0]
		if got := c.Steps[i].replicas(doc); got == nil || *got != want || doc.Name() != "web" {
			t.Errorf("%s: %v", doc, got)
		}
	}
	for i, want := range map[int]string{3: "Deployment team/web", 4: "StatefulSet web"} {
		if got := c.Steps[i].scaled(c.Steps[i].objects()[0]).String(); got != want {
			t.Errorf("what is scaled is %s, want %s", got, want)
		}
	}
	if got := c.Steps[0].Target.String(); got != "Deployment team/web" {
		t.Errorf("the target is %s", got)
	}
}

func TestHealthOfOddObjectsIsJudgedAndEachStatementShown(t *testing.T) {
	t.Parallel()
	c := aCase(t, `step: a
do: health
expect: Degraded or Progressing
---
apiVersion: apps/v1
kind: Deployment
metadata: null
spec: []
status: [1]
---
step: b
do: health
expect: [the first, the second]
---
kind: Odd
status: {conditions: {a: [null]}}
---
step: c
do: health
---
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: 5, generation: x}
status: {phase: 7}
`)
	var out bytes.Buffer
	p := &Player{opts: Options{Out: &out}}
	for _, s := range c.Steps {
		if err := p.health(s); err != nil {
			t.Errorf("step %s: %v", s.Name, err)
		}
	}
	for _, words := range []string{"expected: Degraded or Progressing (as it is)", "[ ] the first", "[ ] the second", "expected: nothing is said"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("not printed: %s\n%s", words, out.String())
		}
	}
}

func TestALinkCanBeDroppedAndReplaced(t *testing.T) {
	t.Parallel()
	c := aCase(t, `step: a
do: files
tree: {app/a: a}
symlinks: {app/b: a, app/c: a}
---
step: b
do: files
base: a
drop: app/b
tree: {app/c: c}
`)
	files, links, err := c.files(c.find("b"))
	if err != nil || len(links) != 0 || files["app/c"] != "c" {
		t.Errorf("files %v, links %v, %v", files, links, err)
	}
}
