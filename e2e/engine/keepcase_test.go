// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kumodo.io/convoy/pkg/tunnel"
)

// caseRender gives the documents of a step of a case file, as they are written.
func caseRender(t testing.TB, id, step string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("../testdata/cases", id+"-*.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("case %s: %v, %v", id, found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	inside := false
	for _, document := range strings.Split(string(text), "\n---\n") {
		if name, marker := strings.CutPrefix(document, "step: "); marker {
			name, _, _ = strings.Cut(name, "\n")
			inside = name == step
		} else if inside {
			out = append(out, document)
		}
	}
	if len(out) == 0 {
		t.Fatalf("case %s has no documents in step %s", id, step)
	}
	return strings.Join(out, "\n---\n") + "\n"
}

// inventory that was told of a Release last: it is in no report after one that was
// acknowledged.
func (b *bench) inventory(uid string) []tunnel.InventoryEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range slices.Backward(b.all) {
		if r.Release.UID == uid && r.Inventory != nil {
			return r.Inventory
		}
	}
	return nil
}

func TestPR03ItemsOfListsAreObjectsOfTheirOwnAndKeptOnesOutliveThePruneAndTheRelease(t *testing.T) {
	inModes(t, testPR03ItemsOfListsAreObjectsOfTheirOwnAndKeptOnesOutliveThePruneAndTheRelease)
}

func testPR03ItemsOfListsAreObjectsOfTheirOwnAndKeptOnesOutliveThePruneAndTheRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-pr-03")
	v1, v2 := caseRender(t, "PR-03", "v1"), caseRender(t, "PR-03", "v2")
	b.apply("pr03", ns, v1)
	uids := map[string]string{}
	for _, name := range []string{"plain", "listed"} {
		uids[name] = string(b.get(claims, ns, name).GetUID())
	}
	for _, name := range []string{"stays", "listed-nons", "nested"} {
		b.get(configmaps, ns, name)
	}
	if list := b.inventory("uid-pr03"); len(list) != 5 || slices.ContainsFunc(list, func(e tunnel.InventoryEntry) bool { return strings.HasSuffix(e.Kind, "List") }) {
		t.Errorf("the inventory is %+v", list)
	}
	kept := func() {
		t.Helper()
		for name, uid := range uids {
			if got := b.get(claims, ns, name); string(got.GetUID()) != uid || got.GetDeletionTimestamp() != nil {
				t.Errorf("the claim %s is %v", name, got.Object)
			}
		}
	}
	_, r := b.apply("pr03", ns, v2)
	b.gone(configmaps, ns, "listed-nons")
	b.gone(configmaps, ns, "nested")
	kept()
	if m := r.Applied.Message; !strings.Contains(m, "PersistentVolumeClaim "+ns+"/listed") || !strings.Contains(m, "PersistentVolumeClaim "+ns+"/plain") {
		t.Errorf("the status does not name both claims as kept: %+v", r.Applied)
	}
	if list := b.inventory("uid-pr03"); len(list) != 1 || len(r.Exceptions) != 0 {
		t.Errorf("inventory %+v, exceptions %+v", list, r.Exceptions)
	}
	b.accept(b.bare("pr03", tunnel.VerbRemove))
	b.report("uid-pr03", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "stays")
	kept()
	// A later Release adopts them without a conflict, and keeps them too.
	b.apply("pr03-later", ns, v1)
	kept()
	b.accept(b.bare("pr03-later", tunnel.VerbRemove))
	b.report("uid-pr03-later", "removed", func(r tunnel.Report) bool { return r.Done })
	b.gone(configmaps, ns, "nested")
	kept()
	for name := range uids {
		b.live(claims, ns, name, "nobody's", func(u *unstructured.Unstructured) bool {
			return u.GetAnnotations()["convoy.kumodo.io/owner"] == ""
		})
	}
}
