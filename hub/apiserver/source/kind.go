// SPDX-License-Identifier: Apache-2.0

package source

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"kumodo.io/convoy/api/source/v1alpha1"
	"kumodo.io/convoy/hub/apiserver/internal/secret"
	"kumodo.io/convoy/hub/apiserver/internal/strategy"
	"kumodo.io/convoy/hub/apiserver/validation"
)

// object is one of the kinds.
type object interface {
	v1alpha1.Source
	metav1.ObjectMetaAccessor
}

// kind is what is particular to one of them.
type kind[T object] struct {
	strategy *strategy.Kind[T]
	// fields of the spec that refer to Secrets, in order; a nil reference is none.
	fields func(T) []secretField
}

type secretField struct {
	name string
	ref  *v1alpha1.SecretReference
}

// names of a kind, and what makes and checks its objects.
type names[T object] struct {
	newObject        func() T
	newList          func() runtime.Object
	plural, singular string
	short            string
	validate         func(T) field.ErrorList
	warnings         func(T) []string
	// prepare an update before anything else is looked at; nil: nothing to do.
	prepare func(next, old T)
	// changed says whether the spec did. It decides about a new generation and about
	// a new check of the Secrets: whoever changes the URL must be allowed to read
	// them, or could send them to a host of his own.
	changed  func(next, old T) bool
	keepSpec func(next, old T)
	fields   func(T) []secretField
}

func newKind[T object](n names[T]) kind[T] {
	return kind[T]{fields: n.fields, strategy: &strategy.Kind[T]{
		New: n.newObject, NewList: n.newList,
		Version: v1alpha1.SchemeGroupVersion, Plural: n.plural, Singular: n.singular, ShortNames: []string{n.short},

		ShardBy: func(t T) string { return t.GetName() },
		Changed: n.changed,
		// The references to Secrets were checked before this is called (see storage.go).
		Created: func(t T) { t.SetSourceStatus(v1alpha1.SourceStatus{CheckedSecrets: t.SecretNames()}) },
		// When the spec changed, the references are recorded as checked: they were, for
		// the user who changes it, before this is called.
		Updated: func(t, old T) {
			if n.prepare != nil {
				n.prepare(t, old)
			}
			before := old.SourceStatus()
			status := *before.DeepCopy()
			if n.changed(t, old) {
				status.CheckedSecrets = t.SecretNames()
			}
			t.SetSourceStatus(status)
		},
		// Nobody adds a checked reference by writing the status.
		Reported: func(t, old T) {
			n.keepSpec(t, old)
			status := t.SourceStatus()
			status.CheckedSecrets = old.SourceStatus().CheckedSecrets
			t.SetSourceStatus(status)
		},
		KeptStatus:     []fieldpath.Path{fieldpath.MakePathOrDie("status", "checkedSecrets")},
		Validate:       n.validate,
		ValidateUpdate: func(t, old T) field.ErrorList { return validation.SourceUpdate(t, old, n.validate) },
		ValidateStatus: func(t, old T) field.ErrorList { return validation.SourceStatusUpdate(t, old) },
		Warnings:       n.warnings,
	}}
}

// references to Secrets, each Secret once, by the first field that names it.
func (k kind[T]) references(t T) []secret.Reference {
	var out []secret.Reference
	seen := map[string]bool{}
	for _, f := range k.fields(t) {
		if f.ref == nil || seen[f.ref.Name] {
			continue
		}
		seen[f.ref.Name] = true
		out = append(out, secret.Reference{Secret: f.ref.Name, Field: f.name + ".name"})
	}
	return out
}

func credentialFields(credentials, ca *v1alpha1.SecretReference, webhook *v1alpha1.SourceWebhook) []secretField {
	fields := []secretField{{"spec.secretRef", credentials}, {"spec.caSecretRef", ca}}
	if webhook != nil {
		fields = append(fields, secretField{"spec.webhook.secretRef", &webhook.SecretRef})
	}
	return fields
}

func verifyField(verify *v1alpha1.SourceVerify) []secretField {
	if verify == nil {
		return nil
	}
	return []secretField{{"spec.verify.secretRef", &verify.SecretRef}}
}
