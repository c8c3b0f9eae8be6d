// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
	"kumodo.io/convoy/pkg/tunnel"
)

// Phases that a render may name besides those of the API: they are PreSync and
// PostSync, of the first render of a Release or of a later one alone.
const (
	phasePreInstall  = "PreInstall"
	phasePreUpgrade  = "PreUpgrade"
	phasePostInstall = "PostInstall"
	phasePostUpgrade = "PostUpgrade"
)

// Phases of the API, as they stand in annotations, records and reports.
const (
	phasePreSync    = string(v1alpha1.HookPreSync)
	phasePostSync   = string(v1alpha1.HookPostSync)
	phaseSyncFailed = string(v1alpha1.HookSyncFailed)
	phasePreDelete  = string(v1alpha1.HookPreDelete)
	phasePostDelete = string(v1alpha1.HookPostDelete)
)

// knownPhases are the words that the annotation may have.
var knownPhases = map[string]bool{
	phasePreSync: true, phasePreInstall: true, phasePreUpgrade: true,
	phasePostSync: true, phasePostInstall: true, phasePostUpgrade: true,
	phaseSyncFailed: true, phasePreDelete: true, phasePostDelete: true,
}

// hook is one object of a render that is run at a point of an operation: made, waited
// for and maybe deleted. It is in no inventory: nobody repairs or prunes it.
type hook struct {
	item
	name   string
	phases map[string]bool
	// before, onSuccess and onFailure say when its object is deleted.
	before, onSuccess, onFailure bool
	keep                         bool          // never deleted
	timeout                      time.Duration // of one run; 0: that of the operation
}

// hooked says whether hooks of an order's render are run. Without the feature they are
// ordinary objects, as they were before there was a feature of that name.
func hooked(order tunnel.Order) bool { return slices.Contains(order.Requires, tunnel.FeatureHooks) }

// newHook reads what the annotations of an object say of it as a hook; nil: it is none.
func newHook(it item, annotations map[string]string) (*hook, error) {
	words, is := annotations[v1alpha1.AnnotationHook]
	if !is {
		return nil, nil //nolint:nilnil // not a hook, and no error
	}
	h := &hook{
		item: it, name: annotations[v1alpha1.AnnotationHookName], phases: map[string]bool{},
		// With a definition, a namespace or a claim others' objects or data would go.
		keep: deleteRules{removal: true}.annotated(annotations) != "" || holdsMore(it.id),
	}
	for _, word := range splitWords(words) {
		if !knownPhases[word] {
			return nil, fmt.Errorf("%s: annotation %s: no phase is called %s", it.id, v1alpha1.AnnotationHook, clip(word, 64))
		}
		h.phases[word] = true
	}
	if len(h.phases) == 0 {
		return nil, fmt.Errorf("%s: annotation %s names no phase", it.id, v1alpha1.AnnotationHook)
	}
	policies := splitWords(annotations[v1alpha1.AnnotationHookDeletePolicy])
	for _, word := range policies {
		switch v1alpha1.HookDeletePolicy(word) {
		case v1alpha1.HookBeforeCreation:
			h.before = true
		case v1alpha1.HookSucceeded:
			h.onSuccess = true
		case v1alpha1.HookFailed:
			h.onFailure = true
		default:
			return nil, fmt.Errorf("%s: annotation %s: no policy is called %s", it.id, v1alpha1.AnnotationHookDeletePolicy, clip(word, 64))
		}
	}
	h.before = h.before || len(policies) == 0
	if text, there := annotations[v1alpha1.AnnotationHookTimeout]; there {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds <= 0 {
			return nil, fmt.Errorf("%s: annotation %s is no number of seconds", it.id, v1alpha1.AnnotationHookTimeout)
		}
		h.timeout = time.Duration(seconds) * time.Second
	}
	return h, nil
}

func splitWords(text string) []string {
	var words []string
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// addHook takes an object into the plan as a hook, if it is one.
func (p *plan) addHook(it item, content map[string]any) (bool, error) {
	h, err := newHook(it, annotationTexts(content))
	if err != nil || h == nil {
		return false, err
	}
	if len(p.hooks) == maxHooks {
		return false, fmt.Errorf("%s: a render may have %d hooks", it.id, maxHooks)
	}
	p.hooks = append(p.hooks, h)
	return true, nil
}

// runsIn says whether the hook runs in a phase: of a first render, or of a later one.
func (h *hook) runsIn(phase string, upgrade bool) bool {
	if h.phases[phase] {
		return true
	}
	switch {
	case phase == phasePreSync && upgrade:
		return h.phases[phasePreUpgrade]
	case phase == phasePreSync:
		return h.phases[phasePreInstall]
	case phase == phasePostSync && upgrade:
		return h.phases[phasePostUpgrade]
	case phase == phasePostSync:
		return h.phases[phasePostInstall]
	}
	return false
}

// called is the name of the hook for people: its own, or that of its object.
func (h *hook) called() string {
	if h.name != "" {
		return h.name
	}
	return hookName(h.id)
}

// hookName is what a hook without a name of its own is called.
func hookName(id manifest.Identity) string {
	return id.Kind + "/" + id.Namespace + "/" + id.Name
}

// hooksOf lists the hooks of a phase in the order in which they run.
func (p *plan) hooksOf(phase string, upgrade bool) []*hook {
	var out []*hook
	for _, h := range p.hooks {
		if h.runsIn(phase, upgrade) {
			out = append(out, h)
		}
	}
	return out
}

// all lists the objects and the hooks of a plan.
func (p *plan) all() []*item {
	if len(p.hooks) == 0 {
		return p.items
	}
	out := slices.Clone(p.items)
	for _, h := range p.hooks {
		out = append(out, &h.item)
	}
	return out
}

// isRun says whether the object of a hook is work that ends by itself. Others are made
// and stay.
func isRun(id manifest.Identity) bool {
	return id.Group == "batch" && id.Kind == "Job" || id.Group == "" && id.Kind == "Pod"
}
