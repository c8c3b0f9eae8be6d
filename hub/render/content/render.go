// SPDX-License-Identifier: Apache-2.0

package content

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"kumodo.io/convoy/hub/render/facts"
	"kumodo.io/convoy/hub/render/files"
	"kumodo.io/convoy/pkg/manifest"
)

// Render makes the objects. begin, if not nil, is told of a file before it is worked
// on. A Result comes with ErrIncomplete too, and says what is needed then.
func Render(job Job, tree *files.Tree, begin func(name string)) (*Result, error) {
	if begin == nil {
		begin = func(string) {}
	}
	r := &renderer{job: &job, tree: tree, facts: facts.NewRecorder(&job.World), begin: begin, result: &Result{}}
	err := r.render()
	if missing := tree.Missing(); len(missing) > 0 {
		// Whatever else was wrong may have come of it.
		r.result.Needs = Needs{Paths: missing}
		return r.result, ErrIncomplete
	}
	if err != nil {
		return r.result, err
	}
	if err := r.widen(); err != nil {
		return r.result, err
	}
	r.result.Reads = r.reads()
	return r.result, nil
}

// renderer is one render on its way through the steps.
type renderer struct {
	job    *Job
	tree   *files.Tree
	facts  *facts.Recorder
	begin  func(string)
	result *Result
	set    *manifest.Set
	crds   int      // so many objects at the head of set are of a chart's crds folder
	hidden []string // texts of Secrets, which the names of facts must not show
	// copies is set when a kustomization copies out of Secrets; copied are their texts.
	copies bool
	copied []string
	// unhooked objects were left out by their annotation of a hook.
	unhooked int
}

func (r *renderer) render() error {
	place, err := files.Clean(r.job.Content.Path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPath, err)
	}
	if r.result.Kind, err = Detect(r.job, r.tree, place); err != nil {
		return err
	}
	switch r.result.Kind {
	case Helm:
		err = r.chart(place)
	case Kustomize:
		err = r.kustomization(place)
	default:
		err = r.manifests(place)
	}
	if err != nil {
		return err
	}
	r.set.Namespace = r.job.Namespace
	own := r.own()
	if err := r.mutate(); err != nil {
		return err
	}
	own.texts = append(own.texts, r.own().texts...)
	r.hidden = long(append(r.secrets(), own.texts...))
	if err := r.lifecycle(); err != nil {
		return err
	}
	if err := r.hooks(); err != nil {
		return err
	}
	r.crdsFirst()
	if r.job.Pin {
		if err := r.pin(); err != nil {
			return err
		}
	}
	if len(r.set.Objects) == r.result.Hooks && !r.job.AllowEmpty {
		return r.empty()
	}
	if err := seal(r.set, r.secrets(), own); err != nil {
		return err
	}
	r.result.Set = r.set
	return r.set.Arrange()
}

// empty says that there are no objects, and of hooks that they are why. Hooks alone are
// nothing that stays: a render of them would have all that runs deleted.
func (r *renderer) empty() error {
	switch {
	case r.result.Hooks > 0:
		return fmt.Errorf("%w but %d hooks, which would delete all that runs; syncPolicy.prune.allowEmpty permits it", ErrEmpty, r.result.Hooks)
	case r.unhooked > 0:
		return fmt.Errorf("%w; %d with a hook's annotation (helm.sh/hook, argocd.argoproj.io/hook) left out: tests, hooks of a word that is not known, of rollbacks, and those to be skipped", ErrEmpty, r.unhooked)
	}
	return ErrEmpty
}

// kustomizations are the names that a kustomization may have.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Detect says what kind of content stands at a place: what the job says, or else what
// the place looks like.
func Detect(job *Job, tree *files.Tree, place string) (string, error) {
	switch c := &job.Content; {
	case c.Helm != nil:
		return Helm, nil
	case c.Kustomize != nil:
		return Kustomize, nil
	case c.Manifests != nil:
		return Manifests, nil
	}
	if !tree.IsDir(place) {
		if strings.HasSuffix(place, ".tgz") && tree.IsFile(place) {
			return Helm, nil
		}
		return Manifests, nil
	}
	if tree.IsFile(path.Join(place, "Chart.yaml")) {
		return Helm, nil
	}
	for _, name := range kustomizations {
		if tree.IsFile(path.Join(place, name)) {
			return Kustomize, nil
		}
	}
	return Manifests, nil
}

// widen has a class of facts count as read as a whole where the name of one shows a
// text of a Secret, as when a template looks a key up that it has from there: names
// of facts are kept in clear.
func (r *renderer) widen() error {
	texts, err := newIndex(r.hidden, minLineBytes)
	if err != nil {
		return err
	}
	for _, read := range r.facts.Reads() {
		for _, class := range []struct{ prefix, whole string }{
			{facts.Cluster, facts.Cluster}, {facts.SelfLabels, facts.SelfLabels}, {facts.SelfAnnotations, facts.SelfAnnotations}, {facts.API, facts.APIs},
		} {
			if name, ok := strings.CutPrefix(read, class.prefix); ok && texts.shows(name) {
				r.facts.All(class.whole)
			}
		}
	}
	return nil
}

// reads are the facts, and the parts of the tree outside of the content's path, which
// counts as a whole anyway.
func (r *renderer) reads() []string {
	reads := r.facts.Reads()
	place, err := files.Clean(r.job.Content.Path)
	if err != nil {
		return reads // there was no render then
	}
	for _, seen := range r.tree.Seen() {
		if inside := place == "" || seen == place || strings.HasPrefix(seen, place+"/"); !inside {
			reads = append(reads, facts.Path+seen)
		}
	}
	slices.Sort(reads)
	return reads
}

// add appends the objects of one rendered text.
func (r *renderer) add(objects []manifest.Object, err error) error {
	if err != nil {
		return err
	}
	r.set.Objects = append(r.set.Objects, objects...)
	return nil
}

// join collects the faults of several files in one list.
func join(all manifest.Errors, err error) manifest.Errors {
	var list manifest.Errors
	switch {
	case errors.As(err, &list):
		return append(all, list...)
	case err != nil:
		return append(all, err)
	}
	return all
}
