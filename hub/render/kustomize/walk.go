// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/pkg/manifest"
)

// walk follows the references of a kustomization and copies the files behind them.
type walk struct {
	tree   *files.Tree
	copied map[string][]byte
	// data are the files whose bytes count as they are.
	data map[string]bool
	// schema is set when the build brings a schema of its own.
	schema     bool
	visits     int
	references int
	// absent are the references to what is not there. The walk goes on behind them, so
	// that all are known at once: a tree may be a part of its source.
	absent manifest.Errors
	// secrets are texts of generators of Secrets, which no message may repeat.
	secrets []string
	// replaced names the replacements.
	replaced []string
	// copies is set when one of them, or a var, copies out of a Secret; cuts are the parts
	// of a value that they take.
	copies bool
	cuts   []cut
}

func newWalk(tree *files.Tree) *walk {
	return &walk{tree: tree, copied: map[string][]byte{}, data: map[string]bool{}}
}

// keep takes a fault about something that is not there; others end the walk.
func (w *walk) keep(err error) error {
	if !errors.Is(err, ErrMissing) {
		return err
	}
	w.absent = append(w.absent, err)
	return nil
}

// place is how a kustomization was reached: by the folders above it, itself last, and
// for settings of plugins by the kustomization that uses them, whose folder they are
// relative to.
type place struct {
	above []string
	user  *node
}

// kustomization walks one folder.
func (w *walk) kustomization(folder string, from place) error {
	for _, above := range from.above {
		if below(above, folder) {
			return at(named(folder), "", ErrCycle)
		}
	}
	if w.visits++; w.visits > maxVisits || len(from.above) >= maxDepth {
		return at(named(folder), "", fmt.Errorf("%w: more than %d kustomizations, or %d inside each other", ErrTooLarge, maxVisits, maxDepth))
	}
	file, err := w.find(folder)
	if err != nil {
		return err
	}
	data, err := w.tree.Read(file)
	if err != nil {
		return err
	}
	text, err := harmless(file, data)
	if err != nil {
		return err
	}
	var k types.Kustomization
	if err := k.Unmarshal(text); err != nil {
		w.copied[file] = text // what is told of the fault depends on it
		return at(file, "", fmt.Errorf("%w: %s", ErrBuild, shown(w.tell(folder, err.Error()))))
	}
	k.FixKustomization()
	w.copied[file] = text
	n := &node{walk: w, file: file, folder: folder, place: place{above: append(slices.Clone(from.above), folder), user: from.user}}
	return n.follow(&k)
}

// find gives the one kustomization file of a folder.
func (w *walk) find(folder string) (string, error) {
	if !w.tree.IsDir(folder) {
		if _, err := w.tree.Read(folder); err != nil && !isMissing(err) {
			return "", err // a submodule or a link stands there
		}
		return "", at(named(folder), "", ErrMissing)
	}
	var found []string
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if file := strings.TrimPrefix(folder+"/"+name, "/"); w.tree.IsFile(file) {
			found = append(found, file)
		}
	}
	switch len(found) {
	case 0:
		return "", at(named(folder), "", ErrNone)
	case 1:
		return found[0], nil
	default:
		return "", at(named(folder), "", fmt.Errorf("%w: %s", ErrSeveral, strings.Join(found, ", ")))
	}
}

// node is one kustomization on the way.
type node struct {
	*walk
	place
	file   string
	folder string
}

// check is one step of following a kustomization.
type check func(*types.Kustomization) error

// follow looks at every field that can lead somewhere.
func (n *node) follow(k *types.Kustomization) error {
	for _, step := range []check{n.charts, n.onlyLists, n.openAPI, n.resources, n.settings, n.patches, n.replacements, n.generators, n.plugin} {
		if err := n.keep(step(k)); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) charts(k *types.Kustomization) error {
	if len(k.HelmCharts) > 0 {
		return at(n.file, "helmCharts", ErrHelm)
	}
	if k.HelmGlobals != nil {
		return at(n.file, "helmGlobals", ErrHelm)
	}
	return nil
}

func (n *node) openAPI(k *types.Kustomization) error {
	if len(k.OpenAPI) > 0 {
		n.schema = true
	}
	if reference := k.OpenAPI["path"]; reference != "" {
		return n.yaml("openapi.path", reference)
	}
	return nil
}

func (n *node) resources(k *types.Kustomization) error {
	for _, reference := range k.Resources {
		if err := n.keep(n.resource("resources", reference, n.user)); err != nil {
			return err
		}
	}
	for _, reference := range k.Components {
		name, err := n.resolve("components", reference)
		if err != nil {
			return err
		}
		if !n.tree.IsDir(name) {
			err = at(n.file, "components", entry(reference, n.nothing(name)))
		} else {
			err = n.kustomization(name, place{above: n.above, user: n.user})
		}
		if err := n.keep(err); err != nil {
			return err
		}
	}
	return nil
}

// resource follows an entry that is a file of objects or a folder with a
// kustomization. With a user they are the settings of its plugins.
func (n *node) resource(field, reference string, user *node) error {
	name, err := n.resolve(field, reference)
	if err != nil {
		return err
	}
	switch {
	case n.tree.IsDir(name):
		return n.kustomization(name, place{above: n.above, user: user})
	case !n.tree.IsFile(name):
		return at(n.file, field, entry(reference, n.nothing(name)))
	}
	if err := n.yaml(field, reference); err != nil {
		return err
	}
	if user != nil {
		return user.settingsOfPlugins(name, n.copied[name])
	}
	return nil
}

func (n *node) settings(k *types.Kustomization) error {
	for _, reference := range k.Configurations {
		if err := n.yaml("configurations", reference); err != nil {
			return err
		}
	}
	for _, reference := range k.Crds {
		if err := n.yaml("crds", reference); err != nil {
			return err
		}
		name, err := n.resolve("crds", reference)
		if err == nil {
			err = finite(name, n.copied[name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) patches(k *types.Kustomization) error {
	for i, patch := range k.PatchesStrategicMerge { //nolint:staticcheck // kustomize still builds it, so it is followed
		if err := n.patch("patchesStrategicMerge", i, "", string(patch)); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		name    string
		patches []types.Patch
	}{{"patchesJson6902", k.PatchesJson6902}, {"patches", k.Patches}} { //nolint:staticcheck // as above
		for i, patch := range list.patches {
			if patch.Path != "" {
				if err := n.yaml(numbered(list.name, i, "path"), patch.Path); err != nil {
					return err
				}
			}
			if err := n.inline(numbered(list.name, i, "patch"), patch.Patch); err != nil {
				return err
			}
		}
	}
	return nil
}

// patch follows a text that is a patch, or the path of one.
func (n *node) patch(list string, i int, field, text string) error {
	trimmed := strings.TrimSpace(text)
	if oneLine(text) && !strings.HasPrefix(trimmed, "{") {
		return n.yaml(numbered(list, i, field), text)
	}
	return n.inline(numbered(list, i, field), text)
}

func (n *node) replacements(k *types.Kustomization) error {
	n.copying(k)
	for i, replacement := range k.Replacements {
		n.replaced = append(n.replaced, n.file+": "+numbered("replacements", i, ""))
		if replacement.Path == "" {
			continue
		}
		if err := n.yaml(numbered("replacements", i, "path"), replacement.Path); err != nil {
			return err
		}
		if name, err := n.resolve("replacements", replacement.Path); err == nil {
			n.copyingText(string(n.copied[name]))
		}
	}
	return nil
}

func (n *node) generators(k *types.Kustomization) error {
	for i, generator := range k.ConfigMapGenerator {
		if err := n.pairs(numbered("configMapGenerator", i, ""), generator.KvPairSources); err != nil {
			return err
		}
		if err := n.envs(n.file, numbered("configMapGenerator", i, ""), generator.KvPairSources); err != nil {
			return err
		}
	}
	for i, generator := range k.SecretGenerator {
		if err := n.secretFiles(n.file, numbered("secretGenerator", i, ""), &k.SecretGenerator[i]); err != nil {
			return err
		}
		if err := n.pairs(numbered("secretGenerator", i, ""), generator.KvPairSources); err != nil {
			return err
		}
		if err := n.secretGenerator(n.file, numbered("secretGenerator", i, ""), &k.SecretGenerator[i]); err != nil {
			return err
		}
	}
	return nil
}

// pairs follows the files that a generator takes.
func (n *node) pairs(field string, sources types.KvPairSources) error {
	for _, source := range sources.FileSources {
		if err := n.bytes(field+".files", filePart(source)); err != nil {
			return err
		}
	}
	for _, reference := range append(slices.Clone(sources.EnvSources), sources.EnvSource) {
		if reference == "" {
			continue
		}
		if err := n.bytes(field+".envs", reference); err != nil {
			return err
		}
	}
	return nil
}

// filePart is the path of KEY=PATH.
func filePart(source string) string {
	if _, after, ok := strings.Cut(source, "="); ok {
		return after
	}
	return source
}
