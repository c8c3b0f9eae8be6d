// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/extensions"
	"kumodo.io/convoy/hub/apiserver/internal/scheme"
	"kumodo.io/convoy/hub/apiserver/resource"
)

// newExtensions builds what is served of the group extensions, and adds the typed
// access to in.
func newExtensions(sch *scheme.Scheme, getter generic.RESTOptionsGetter, clk clock.PassiveClock, in *Storage) (storageMap, error) {
	options := extensions.Options{Typer: sch, REST: getter, Clock: clk}
	sets, err := extensions.HealthRuleSets(options)
	if err != nil {
		return nil, err
	}
	global, err := extensions.GlobalHealthRuleSets(options)
	if err != nil {
		return nil, err
	}
	in.HealthRuleSets = resource.New[*extensionsv1alpha1.HealthRuleSet, *extensionsv1alpha1.HealthRuleSetList](sets.Main.Store, sets.Status.Store, sch)
	in.GlobalHealthRuleSets = resource.New[*extensionsv1alpha1.GlobalHealthRuleSet, *extensionsv1alpha1.GlobalHealthRuleSetList](global.Main.Store, global.Status.Store, sch)
	return storageMap{
		"healthrulesets":              sets.Main,
		"healthrulesets/status":       sets.Status,
		"globalhealthrulesets":        global.Main,
		"globalhealthrulesets/status": global.Status,
	}, nil
}
