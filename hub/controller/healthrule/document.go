// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/pkg/health"
	"kumodo.io/convoy/pkg/tunnel"
)

// Document is what some sets come to, in the order of precedence.
type Document struct {
	// Layer names the bytes; nil: there is no rule, and no layer.
	Layer *tunnel.Layer
	// Bytes are JSON, the same for the same rules in the same order.
	Bytes []byte
	// Reads are the facts that the rules read, sorted.
	Reads []string
	// Missing are the sets that were named and are not there, or did not fit any more,
	// each with why.
	Missing []string
}

// selected are the sets that a Release uses, in the order of precedence.
type selected struct {
	sets    []v1alpha1.RuleSet
	missing []string
}

// choose finds the sets of a Release: those that it names, in that order, a
// HealthRuleSet of its namespace before a global one of the same name; when it names
// none, all of its namespace by their names and then all global ones by theirs.
func choose(cache Cache, namespace string, names []string) selected {
	var out selected
	if len(names) == 0 {
		for _, place := range []string{namespace, ""} {
			sets := cache.RuleSets(place)
			slices.SortFunc(sets, func(a, b v1alpha1.RuleSet) int { return cmp.Compare(a.GetName(), b.GetName()) })
			out.sets = append(out.sets, sets...)
		}
		return out
	}
	for _, name := range names {
		set, ok := cache.RuleSet(types.NamespacedName{Namespace: namespace, Name: name})
		if !ok {
			set, ok = cache.RuleSet(types.NamespacedName{Name: name})
		}
		if !ok {
			out.missing = append(out.missing, name)
			continue
		}
		out.sets = append(out.sets, set)
	}
	return out
}

// document gives the document of some sets. It is made once for all that use the same.
func (r *Reconciler) document(chosen selected) Document {
	entries := make([]*compiled, len(chosen.sets))
	ids := make([]string, len(chosen.sets))
	for i, set := range chosen.sets {
		entries[i] = r.books.of(set)
		ids[i] = entries[i].id
	}
	key := strings.Join(ids, " ")
	r.mu.Lock()
	made, ok := r.documents[key]
	r.mu.Unlock()
	if !ok {
		made = assemble(entries)
		r.metrics.documents.WithLabelValues("made").Inc()
		r.mu.Lock()
		if len(r.documents) >= maxDocuments {
			clear(r.documents)
		}
		r.documents[key] = made
		r.mu.Unlock()
	}
	made.Missing = append(slices.Clone(chosen.missing), made.Missing...)
	return made
}

// assemble puts the rules that compile one after another. A set that does not fit is
// left out as a whole.
func assemble(entries []*compiled) Document {
	var out Document
	facts := map[string]bool{}
	document := health.Document{Rules: []health.Rule{}}
	size := 0
	for _, entry := range entries {
		rules, reads, bytes := entry.all()
		if size+bytes > maxDocumentBytes || !fits(facts, reads, maxDocumentFacts) {
			out.Missing = append(out.Missing, fmt.Sprintf("%s (too large beside those before it)", entry.name))
			continue
		}
		document.Rules = append(document.Rules, rules...)
		size += bytes
	}
	if len(document.Rules) == 0 {
		return out
	}
	// Strings alone, which can always be encoded; without a layer the built-in rules
	// judge.
	if raw, err := json.Marshal(document); err == nil {
		sum := sha256.Sum256(raw)
		out.Bytes, out.Reads = raw, slices.Sorted(maps.Keys(facts))
		out.Layer = &tunnel.Layer{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(raw))}
	}
	return out
}

// all gives the rules of a set with what they read and about how large they are.
func (c *compiled) all() (rules []health.Rule, reads []string, bytes int) {
	for i := range c.rules {
		rule := &c.rules[i].rule
		rules, reads = append(rules, *rule), append(reads, c.rules[i].reads...)
		bytes += ruleOverhead + len(rule.Set) + len(rule.Group) + len(rule.Kind) +
			len(rule.Healthy) + len(rule.Progressing) + len(rule.Degraded) + len(rule.Suspended) + len(rule.Message)
	}
	return rules, slices.Compact(slices.Sorted(slices.Values(reads))), bytes
}

// ruleOverhead is about what the names of a rule's fields take in JSON.
const ruleOverhead = 100
