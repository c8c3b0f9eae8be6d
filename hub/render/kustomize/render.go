// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"path"
	"sync"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"kumodo.io/convoy/hub/render/files"
)

// Options of one build.
type Options struct {
	// Tree is the whole source: bases lie beside the path.
	Tree *files.Tree
	// Path of the folder with the kustomization, "" or "." for the source's root.
	Path string
	// Copied, if not nil, is told the texts that Secrets hold, of the files and of the
	// result, when replacements or vars copy out of Secrets. It is not called otherwise.
	Copied func(texts []string)
}

// mount is where the source lies in the library's file system. Nothing is above it.
const mount = "/source"

// building guards the library: it keeps the schema of the build that it is at in
// variables of its package, so two builds at once would answer with each other's.
var building sync.Mutex

// Render builds the kustomization and gives its objects, each as JSON in a file of
// its own, in the order of kustomize's output. An error names the file that has the
// fault; one of the library itself wraps ErrBuild.
//
// Builds in one process wait for each other.
func Render(o Options) ([]files.File, error) {
	folder, err := cleaned(path.Clean("./" + o.Path))
	if err != nil {
		return nil, at(o.Path, "", err)
	}
	w := newWalk(o.Tree)
	if err := w.keep(w.kustomization(folder, place{})); err != nil {
		return nil, err
	}
	if len(w.absent) > 0 {
		return nil, w.absent
	}
	built, err := build(w, folder)
	if err != nil {
		return nil, err
	}
	if w.copies && o.Copied != nil {
		texts, err := w.secretTexts(built)
		if err != nil {
			return nil, w.failed(folder, err)
		}
		o.Copied(texts)
	}
	list := make([]files.File, 0, built.Size())
	for i, resource := range built.Resources() {
		data, err := resource.MarshalJSON()
		if err != nil {
			return nil, w.failed(folder, err)
		}
		list = append(list, files.File{Name: fmt.Sprintf("%s (kustomize, object %d)", named(folder), i+1), Data: data})
	}
	return list, nil
}

// build runs the library over what the walk has copied.
func build(w *walk, folder string) (built resmap.ResMap, err error) {
	system := filesys.MakeFsInMemory()
	for name, data := range w.copied {
		if err := system.WriteFile(path.Join(mount, name), data); err != nil {
			return nil, at(name, "", err)
		}
	}
	building.Lock()
	defer building.Unlock()
	if w.schema {
		// A schema of its own would stay for the builds after it.
		openapi.ResetOpenAPI()
		defer openapi.ResetOpenAPI()
	}
	defer func() {
		// The library gives up by panics for some inputs, a schema that cannot be read
		// among them. Its locks are released by defer.
		if r := recover(); r != nil {
			built, err = nil, w.failed(folder, fmt.Errorf("gave up: %v", r))
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // as `kustomize build`; a warning goes out otherwise
	built, err = krusty.MakeKustomizer(options).Run(system, path.Join(mount, folder))
	if err != nil {
		return nil, w.failed(folder, err)
	}
	return built, nil
}

// failed is the library's answer, in the names of the source and of bounded size. It
// repeats nothing but names.
func (w *walk) failed(folder string, err error) error {
	return fmt.Errorf("%s: %w: %s", named(folder), ErrBuild, w.tell(folder, err.Error()))
}

// named is a folder in a message.
func named(folder string) string {
	if folder == "" {
		return "."
	}
	return folder
}
