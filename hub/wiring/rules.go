// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"bytes"
	"context"
	"fmt"

	"kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/apiserver"
	"kumodo.io/convoy/hub/controller/healthrule"
	"kumodo.io/convoy/hub/report"
	"kumodo.io/convoy/hub/store"
)

// makeRules makes what knows the health rules.
func (h *hub) makeRules(context.Context) error {
	h.rules = healthrule.New(healthrule.Options{
		Cache: h.cache, Reporter: h.reporter, Store: documents{h.objects}, Orders: h.orders, Registerer: h.registry,
	})
	h.reporter.JudgedBy(h.rules.Missing)
	return nil
}

// documents of health rules lie among the plain layers of renders.
type documents struct{ objects store.Store }

func (d documents) Put(ctx context.Context, document []byte) error {
	_, err := d.objects.Put(ctx, bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("put a document of health rules: %w", err)
	}
	return nil
}

// ruleSetStores are where the reporter writes the status of rule sets.
func ruleSetStores(storage apiserver.Storage) map[string]report.RuleSetStore {
	return map[string]report.RuleSetStore{
		v1alpha1.KindHealthRuleSet:       report.RuleSetStatus(storage.HealthRuleSets),
		v1alpha1.KindGlobalHealthRuleSet: report.RuleSetStatus(storage.GlobalHealthRuleSets),
	}
}
