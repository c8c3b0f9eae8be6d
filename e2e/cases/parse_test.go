// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryCaseFileIsRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	for _, file := range files {
		c, err := Read(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(filepath.Base(file), c.ID+"-") || c.Right == "" {
			t.Errorf("%s: id %q, right %q", file, c.ID, c.Right)
		}
	}
}

func TestABrokenCaseFileIsRefusedWithThePlace(t *testing.T) {
	t.Parallel()
	const head = "# id: XX-01\n---\n"
	for name, test := range map[string]struct{ text, want string }{
		"no id":             {"---\nstep: a\ndo: check\n", "x.yaml:1: broken case file: the comments at the top need a line like"},
		"not YAML":          {head + "step: a\ndo: [check\n", "x.yaml:"},
		"not YAML, later":   {head + "step: a\ndo: render\n---\nkind: A\nmetadata: {name: a}\n---\na: b\n  c: d\n", "x.yaml:10: broken case file: mapping values"},
		"unknown do":        {head + "step: a\ndo: dance\n", `x.yaml:3: broken case file: step a: do: "dance" is none of`},
		"no do":             {head + "step: a\n", `x.yaml:3: broken case file: step "a" has no key do`},
		"before a step":     {head + "kind: ConfigMap\n", "x.yaml:3: broken case file: a document before the first one with the key step"},
		"no step":           {head, "x.yaml:1: broken case file: no document has the key step"},
		"same name":         {head + "step: a\ndo: check\n---\nstep: a\ndo: check\n", `x.yaml:6: broken case file: a second step "a"`},
		"unknown base":      {head + "step: a\ndo: render\nbase: v0\n", `x.yaml:5: broken case file: step a: base "v0" is no earlier render step`},
		"unknown how":       {head + "step: a\ndo: live\nhow: pach\n---\nkind: A\nmetadata: {name: a}\n", `x.yaml:5: broken case file: step a: how: "pach" is none of create, update,`},
		"misspelt drop":     {head + "step: a\ndo: render\ndorp: [b]\n", `x.yaml:5: broken case file: a step has no key "dorp"; drop?`},
		"misspelt replicas": {head + "step: a\ndo: live\nreplica: 3\n", `x.yaml:5: broken case file: a step has no key "replica"; replicas?`},
		"misspelt expect":   {head + "step: a\ndo: check\nexpects: [b]\n", `x.yaml:5: broken case file: a step has no key "expects"; expect?`},
		"misspelt as":       {head + "step: a\ndo: live\nAs: x\n", `x.yaml:5: broken case file: a step has no key "As"; as?`},
		"fill of nothing":   {head + "step: a\ndo: render\nfill:\n- {document: 2, path: data.k, bytes: 3}\n---\nkind: A\nmetadata: {name: a}\n", "x.yaml:6: broken case file: step a: fill: there is no document 2 of 1"},
		"fill of no path":   {head + "step: a\ndo: render\nfill:\n- {document: 1, path: data.k, bytes: 3}\n---\nkind: A\nmetadata: {name: a}\n", `x.yaml:6: broken case file: step a: fill: path "data.k": there is no "data"`},
		"drop of nothing":   {head + "step: a\ndo: render\ndrop: [b]\n---\nkind: A\nmetadata: {name: a}\n", "x.yaml:5: broken case file: step a: drop: there is no b"},
		"a list as tree":    {head + "step: a\ndo: files\ntree: [a]\n", "x.yaml:5: broken case file: tree has to map paths to texts"},
		"an object unnamed": {head + "step: a\ndo: live\n---\nkind: A\n", "x.yaml:6: broken case file: step a: an object without kind or metadata.name"},
		"health of two":     {head + "step: a\ndo: health\n---\nkind: A\n---\nkind: B\n", "x.yaml:3: broken case file: step a: health needs exactly one object, there are 2"},
		"a target alone":    {head + "step: a\ndo: live\nhow: ssa\ntarget: {kind: A, name: a}\n", "x.yaml:5: broken case file: step a: how: ssa needs an object; a target is enough for scale and delete alone"},
		"a target by name":  {head + "step: a\ndo: live\nhow: delete\ntarget: web\n", "x.yaml:6: broken case file: step a: target has to be like {kind: Deployment"},
		"scale to nothing":  {head + "step: a\ndo: live\nhow: scale\ntarget: A a\n", "x.yaml:3: broken case file: step a: scale needs replicas"},
		"a guest":           {head + "step: a\ndo: check\n---\nkind: A\n", "x.yaml:6: broken case file: step a: a document after a check step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("x.yaml", []byte(test.text))
			if !errors.Is(err, ErrCase) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s...", err, test.want)
			}
		})
	}
}

func TestARenderIsItsBaseWithReplacedAndDroppedObjects(t *testing.T) {
	t.Parallel()
	c, err := Parse("x.yaml", []byte(`# id: XX-01
---
step: v1
do: render
fill: {document: 2, path: data.blob, bytes: 10, copies: 2}
---
kind: ConfigMap
metadata: {name: one, namespace: t-xx-01}
data: {k: 0o17, quoted: "0o17"} # as written
---
kind: ConfigMap
metadata: {name: many}
data: {blob: ""}
---
kind: Secret
metadata: {name: one}
---
step: v2
do: render
base: v1
drop: [Secret one, many-2]
---
kind: ConfigMap
metadata: {name: one}
data: {k: v2}
---
kind: ConfigMap
metadata: {name: new}
`))
	if err != nil {
		t.Fatal(err)
	}
	v1, _, err := c.files(c.find("v1"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range v1 {
		names = append(names, name)
	}
	if len(names) != 4 || !strings.Contains(v1["app/00001-configmap-one.yaml"], `{k: 0o17, quoted: "0o17"} # as written`) {
		t.Errorf("v1 is %v", v1)
	}
	docs, err := c.render(c.find("v2"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, doc := range docs {
		got = append(got, doc.String())
	}
	if diff := cmp.Diff([]string{"ConfigMap one", "ConfigMap many-1", "ConfigMap new"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if blob := docs[1].text("data", "blob"); len(blob) != 10 {
		t.Errorf("filled with %q", blob)
	}
}

func TestEventsOfTheCaseFilesAreKnownOrLeftToTheReader(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"the Release is deleted":                                                     "Release is deleted",
		"the Release is deleted while the backend is still down":                     "Release is deleted",
		"release r2 is deleted":                                                      "release r2 is deleted",
		"the hub's store is backed up":                                               "hub's store is backed up",
		"the hub is restored from the backup; it knows v1 of r1 and nothing of r2":   "hub is restored",
		"the Release gets the explicit permission to render nothing, on top of v2":   "permission to render nothing, on top of v2",
		"someone deletes the CRD by hand":                                            "someone deletes the CRD by ",
		"the owner of the finalizer removes it":                                      "finalizer removes it",
		"B's agent is stopped":                                                       "agent is stopped",
		"the cluster is destroyed; a new one with the same name registers":           "cluster is destroyed",
		"the old cluster comes back from a snapshot and its agent dials in":          "old cluster comes back",
		"clusters edge, edge-a and edge-a-b register; releases a-b and b target all": "clusters edge, edge-a and edge-a-b register",
		"an asteroid hits the data center":                                           "",
	} {
		got := ""
		for _, h := range happenings() {
			if got = h.words.FindString(what); got != "" {
				break
			}
		}
		if got != want {
			t.Errorf("%q: %q is known, want %q", what, got, want)
		}
	}
}

func TestAPathThatLeadsOutOfTheTreeIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := place(dir, "../out", func(path string) error { return os.WriteFile(path, nil, 0o600) })
	if !errors.Is(err, ErrCase) {
		t.Errorf("got %v", err)
	}
}

func TestEventsOfSourcesAreToldInClauses(t *testing.T) {
	t.Parallel()
	for what, want := range map[string][]bool{
		"ref is the annotated tag v1 on start":                                                                                                       {true},
		"a commit moved is made; tag v1 is force-moved to it (as a lightweight tag)":                                                                 {true, true},
		"ref becomes branch feature/a/b, then branch name with a tag of the same name on another commit":                                             {true, true},
		"ref changes from tag to branch main and back; then a commit is pinned together with a branch that does not contain it":                      {true, true},
		"branch main is force-pushed to an unrelated history; then branch main is deleted":                                                           {true, true},
		"the Release's path becomes lfs (pointers only on disk); then its chart becomes lfs/chart.tgz":                                               {true, true},
		"in turn - the token expires; the SSH host key changes; the server answers 429 with a retry time of 90 s":                                    {true, false, true},
		"the server's certificate is from a private CA that is not configured, then configured":                                                      {true, true},
		"same chart, but app/values.yaml is empty and the numbers are in a values file named by the Release":                                         {true},
		"same chart, app/values.yaml empty, the numbers inline in the Release's values (written as YAML, stored by the hub's API server, read back)": {true},
		"literals become mode=two and the image becomes example/app:does-not-exist":                                                                  {true},
		"the image becomes example/app:2":  {true},
		"an asteroid hits the data center": {false},
	} {
		var got []bool
		for _, part := range clausesOf(what) {
			got = append(got, meant(part) != nil)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", what, diff)
		}
	}
}

func TestAFolderIsNamedByItsWholeName(t *testing.T) {
	t.Parallel()
	files := map[string]string{"over/kustomization.yaml": "{resources: [../linked-base]}\n"}
	if named(files, "linked") || !named(files, "linked-base") {
		t.Error("linked is taken for linked-base")
	}
}
