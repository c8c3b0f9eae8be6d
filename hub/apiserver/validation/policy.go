// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
	cel "kumodo.io/convoy/pkg/expression"
)

// Limits of policies. Sizes are in bytes.
const (
	MaxClusterWave = 1000
	MaxDependsOn   = 16
	MaxRuleSets    = 16

	MaxIgnoreRules    = 32
	MaxIgnorePointers = 64
	MaxIgnoreManagers = 16
	// MaxPointer of a JSON pointer, MaxManager of the name of a field manager, which is
	// the API server's own.
	MaxPointer = 1 << 10
	MaxManager = 128

	MaxRetries = 1000
	MinRetry   = time.Second
	MaxRetry   = 24 * time.Hour
	// defaultRetryMin is the first pause where none is given.
	defaultRetryMin = 2 * time.Second
)

// guardedKinds are kept by a prune unless they are named.
var guardedKinds = []string{
	"Namespace", "CustomResourceDefinition", "PersistentVolumeClaim", "PersistentVolume", "VolumeSnapshot", "VolumeSnapshotContent",
}

// precedence checks what a Release waits for. Circles are looked for where other
// Releases can be looked at.
func precedence(s *v1alpha1.ReleaseSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.ClusterWave < -MaxClusterWave || s.ClusterWave > MaxClusterWave {
		errs = append(errs, field.Invalid(p.Child("clusterWave"), s.ClusterWave, fmt.Sprintf("must be from %d to %d", -MaxClusterWave, MaxClusterWave)))
	}
	on := p.Child("dependsOn")
	if n := len(s.DependsOn); n > MaxDependsOn {
		return append(errs, field.TooMany(on, n, MaxDependsOn))
	}
	seen := map[string]bool{}
	for i := range s.DependsOn {
		name := s.DependsOn[i].Name
		errs = append(errs, requiredName(name, on.Index(i).Child("name"), apivalidation.NameIsDNSSubdomain)...)
		if seen[name] {
			errs = append(errs, field.Duplicate(on.Index(i).Child("name"), name))
		}
		seen[name] = true
	}
	return errs
}

// serviceAccount checks the name of an account on the target, with or without its
// namespace.
func serviceAccount(name string, p *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	namespace, account, apart := strings.Cut(name, ":")
	if !apart {
		return requiredName(name, p, apivalidation.ValidateServiceAccountName)
	}
	if namespace == "" || account == "" {
		return field.ErrorList{field.Invalid(p, name, "must be a name, or <namespace>:<name>")}
	}
	return append(requiredName(namespace, p, apivalidation.ValidateNamespaceName), requiredName(account, p, apivalidation.ValidateServiceAccountName)...)
}

// drift checks rules of what is left to others.
func drift(d *v1alpha1.DriftPolicy, p *field.Path) field.ErrorList {
	ignore := p.Child("ignore")
	if n := len(d.Ignore); n > MaxIgnoreRules {
		return field.ErrorList{field.TooMany(ignore, n, MaxIgnoreRules)}
	}
	var errs field.ErrorList
	for i := range d.Ignore {
		errs = append(errs, driftRule(&d.Ignore[i], ignore.Index(i))...)
	}
	return errs
}

func driftRule(rule *v1alpha1.DriftIgnore, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, text := range []struct{ name, value string }{{"group", rule.Group}, {"kind", rule.Kind}, {"namespace", rule.Namespace}, {"name", rule.Name}} {
		if len(text.value) > MaxTargetText {
			errs = append(errs, field.TooLong(p.Child(text.name), "", MaxTargetText))
		}
	}
	if len(rule.Pointers)+len(rule.Managers) == 0 && rule.Kind == "" && rule.Name == "" {
		errs = append(errs, field.Required(p.Child("kind"), "a rule without pointers and managers leaves whole objects to others: it has to name their kind, or one of them"))
	}
	if n := len(rule.Pointers); n > MaxIgnorePointers {
		errs = append(errs, field.TooMany(p.Child("pointers"), n, MaxIgnorePointers))
	}
	for i, pointer := range rule.Pointers {
		errs = append(errs, jsonPointer(pointer, p.Child("pointers").Index(i))...)
	}
	if n := len(rule.Managers); n > MaxIgnoreManagers {
		errs = append(errs, field.TooMany(p.Child("managers"), n, MaxIgnoreManagers))
	}
	for i, manager := range rule.Managers {
		at := p.Child("managers").Index(i)
		switch {
		case manager == "":
			errs = append(errs, field.Required(at, "the name of a field manager"))
		case len(manager) > MaxManager:
			errs = append(errs, field.TooLong(at, "", MaxManager))
		case manager == v1alpha1.FieldManager:
			errs = append(errs, field.Invalid(at, manager, "is what convoy applies as: all would be left to others"))
		}
	}
	if rule.When != "" {
		if _, err := cel.Compile(rule.When, cel.Bool, "object"); err != nil {
			errs = append(errs, field.Invalid(p.Child("when"), "(not shown)", err.Error()))
		}
	}
	return errs
}

// jsonPointer checks one of RFC 6901 that points to a field.
func jsonPointer(pointer string, p *field.Path) field.ErrorList {
	switch {
	case pointer == "":
		return field.ErrorList{field.Required(p, "a rule without pointers is about whole objects")}
	case len(pointer) > MaxPointer:
		return field.ErrorList{field.TooLong(p, "", MaxPointer)}
	case !strings.HasPrefix(pointer, "/") || pointer == "/":
		return field.ErrorList{field.Invalid(p, pointer, "must be a JSON pointer, as in /spec/replicas")}
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return field.ErrorList{field.Invalid(p, pointer, "~ stands in it as ~0, and / of a key as ~1")}
		}
	}
	if why := pointsNowhere(pointer); why != "" {
		return field.ErrorList{field.Invalid(p, pointer, why)}
	}
	return nil
}

// kept are the fields that are never left to others, or that nothing is applied to.
var kept = []struct{ path, why string }{
	{"/apiVersion", "the version of an object is never left to others"},
	{"/kind", "the kind of an object is never left to others"},
	{"/metadata/name", "the name of an object is never left to others"},
	{"/metadata/namespace", "the namespace of an object is never left to others"},
	{"/metadata/labels/" + v1alpha1.LabelManaged, "the marks of convoy are never left to others"},
	{"/metadata/annotations/" + v1alpha1.AnnotationOwner, "the marks of convoy are never left to others"},
	{"/status", "the status of an object is not applied, so it is neither compared nor changed"},
}

// keyed are the fields of ConfigMaps and Secrets whose keys may look like numbers.
var keyed = []string{"data", "binaryData", "stringData"}

// pointsNowhere says why a pointer can never leave anything to others; empty: it may.
func pointsNowhere(pointer string) string {
	tokens := strings.Split(pointer[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		number, negative := strings.CutPrefix(token, "-")
		switch {
		case strings.ContainsFunc(token, unicode.IsControl):
			return "a control character is in no name of a field"
		case token == "**":
			return "** is no pattern: * is any item of one list, and each list on the way has one of its own"
		case i == 1 && slices.Contains(keyed, tokens[0]): // any name may be a key there
		case negative && number != "" && strings.Trim(number, "0123456789") == "":
			return "items of a list count from 0: none has a negative number"
		}
	}
	path := "/" + strings.Join(tokens, "/")
	for _, k := range kept {
		if path == k.path || strings.HasPrefix(path, k.path+"/") {
			return k.why
		}
	}
	return ""
}

// health checks the names of rule sets.
func health(h *v1alpha1.HealthPolicy, p *field.Path) field.ErrorList {
	sets := p.Child("ruleSets")
	if n := len(h.RuleSets); n > MaxRuleSets {
		return field.ErrorList{field.TooMany(sets, n, MaxRuleSets)}
	}
	var errs field.ErrorList
	for i, name := range h.RuleSets {
		errs = append(errs, requiredName(name, sets.Index(i), apivalidation.NameIsDNSSubdomain)...)
		if slices.Contains(h.RuleSets[:i], name) {
			errs = append(errs, field.Duplicate(sets.Index(i), name))
		}
	}
	return errs
}

// deletions checks what a sync may delete.
func deletions(s *v1alpha1.SyncPolicy, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, kind := range s.Prune.Allowed {
		at := p.Child("prune", "allowed").Index(i)
		if !slices.Contains(guardedKinds, kind) {
			errs = append(errs, field.NotSupported(at, kind, guardedKinds))
		}
		if slices.Contains(s.Prune.Allowed[:i], kind) {
			errs = append(errs, field.Duplicate(at, kind))
		}
	}
	if s.Prune.Propagation != "" {
		errs = append(errs, enum(s.Prune.Propagation, p.Child("prune", "propagation"),
			metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan)...)
	}
	budget := p.Child("deletionBudget")
	if b := s.DeletionBudget; b != nil {
		if b.Count != nil && (*b.Count < 0 || *b.Count > MaxInventoryEntries) {
			errs = append(errs, field.Invalid(budget.Child("count"), *b.Count, fmt.Sprintf("must be from 0 to %d", MaxInventoryEntries)))
		}
		if b.Percent != nil && (*b.Percent < 0 || *b.Percent > 100) {
			errs = append(errs, field.Invalid(budget.Child("percent"), *b.Percent, "must be from 0 to 100"))
		}
	}
	return errs
}

// retry checks how an operation that failed is tried again.
func retry(r *v1alpha1.RetryPolicy, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Limit != nil && (*r.Limit < 0 || *r.Limit > MaxRetries) {
		errs = append(errs, field.Invalid(p.Child("limit"), *r.Limit, fmt.Sprintf("must be from 0 to %d, or not set: no limit", MaxRetries)))
	}
	low := defaultRetryMin
	if r.Minimum != nil {
		errs = append(errs, duration(r.Minimum, p.Child("minimum"), MinRetry, MaxRetry)...)
		low = r.Minimum.Duration
	}
	if r.Maximum != nil {
		errs = append(errs, duration(r.Maximum, p.Child("maximum"), MinRetry, MaxRetry)...)
		if r.Maximum.Duration < low {
			errs = append(errs, field.Invalid(p.Child("maximum"), r.Maximum.Duration.String(), "must not be less than minimum, which is "+low.String()))
		}
	}
	return errs
}
