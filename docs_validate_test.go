// SPDX-License-Identifier: Apache-2.0

package convoy_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/validation"
	"kumodo.io/convoy/pkg/health"
)

// TestExamplesInThePagesAreAccepted gives the whole objects of the pages to what the
// API server asks.
func TestExamplesInThePagesAreAccepted(t *testing.T) {
	t.Parallel()
	known := runtime.NewScheme()
	utilruntime.Must(corev1alpha1.AddToScheme(known))
	utilruntime.Must(sourcev1alpha1.AddToScheme(known))
	utilruntime.Must(extensionsv1alpha1.AddToScheme(known))
	decoder := serializer.NewCodecFactory(known).UniversalDeserializer()
	kinds := map[string]int{}
	for _, one := range blocks(t) {
		if one.language != "yaml" {
			continue
		}
		for part := range strings.SplitSeq(one.text, "\n---\n") {
			object, kind, err := decoder.Decode([]byte(part), nil, nil)
			if err != nil {
				continue // another test says whether it has to be one of ours
			}
			kinds[kind.Kind]++
			if errs := accepted(object); len(errs) > 0 {
				t.Errorf("%s:%d: %s would be refused: %v", one.file, one.line, kind.Kind, errs.ToAggregate())
			}
		}
	}
	for _, kind := range append(sourcev1alpha1.Kinds(), "Cluster", "Release", "HealthRuleSet", "GlobalHealthRuleSet") {
		if kinds[kind] == 0 {
			t.Errorf("there is no example of a %s", kind)
		}
	}
}

func accepted(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *corev1alpha1.Cluster:
		corev1alpha1.SetClusterDefaults(o)
		return validation.Cluster(o)
	case *corev1alpha1.Release:
		corev1alpha1.SetReleaseDefaults(o)
		return validation.Release(o)
	case *sourcev1alpha1.GitRepository:
		sourcev1alpha1.SetGitRepositoryDefaults(o)
		return validation.GitRepository(o)
	case *sourcev1alpha1.HelmRegistry:
		sourcev1alpha1.SetHelmRegistryDefaults(o)
		return validation.HelmRegistry(o)
	case *sourcev1alpha1.OCIRegistry:
		sourcev1alpha1.SetOCIRegistryDefaults(o)
		return validation.OCIRegistry(o)
	case *extensionsv1alpha1.HealthRuleSet:
		return append(validation.RuleSet(o), compiled(&o.Spec)...)
	case *extensionsv1alpha1.GlobalHealthRuleSet:
		return append(validation.RuleSet(o), compiled(&o.Spec)...)
	}
	return nil
}

// compiled says what the status of a set of health rules would.
func compiled(spec *extensionsv1alpha1.HealthRuleSetSpec) field.ErrorList {
	var errs field.ErrorList
	for i, rule := range spec.Rules {
		faults, _ := health.Check(health.Rule{
			Group: rule.Group, Kind: rule.Kind, Healthy: rule.Healthy, Progressing: rule.Progressing,
			Degraded: rule.Degraded, Suspended: rule.Suspended, Message: rule.Message,
		})
		for _, fault := range faults {
			errs = append(errs, field.Invalid(field.NewPath("spec", "rules").Index(i).Child(fault.Field), "", fault.Err.Error()))
		}
	}
	return errs
}
