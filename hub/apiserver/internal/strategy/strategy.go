// SPDX-License-Identifier: Apache-2.0

// Package strategy holds what the strategies of all our kinds have in common:
// nothing is created by a PUT, the shard label is the server's. It stands before the flow, where users' objects come in.
package strategy

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
)

// Base is embedded by the strategy of each kind.
type Base struct {
	runtime.ObjectTyper
	names.NameGenerator
}

// NewBase makes one over the server's scheme.
func NewBase(typer runtime.ObjectTyper) Base {
	return Base{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

// NamespaceScoped is true for our kinds, unless one says otherwise.
func (Base) NamespaceScoped() bool { return true }

// AllowCreateOnUpdate is false: a PUT does not create.
func (Base) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is true: a PUT without a resourceVersion replaces
// whatever is there, as with the kinds of Kubernetes itself.
func (Base) AllowUnconditionalUpdate(context.Context) bool { return true }

// Canonicalize has nothing to do.
func (Base) Canonicalize(runtime.Object) {}

// WarningsOnCreate has none.
func (Base) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate has none.
func (Base) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string { return nil }

// SetShard replaces the shard label, whatever a user wrote there.
func SetShard(m metav1.Object, value string) {
	l := m.GetLabels()
	if l[corev1alpha1.LabelShard] == value {
		return
	}
	// The map may be shared with the old object: never write into it.
	fresh := make(map[string]string, len(l)+1)
	for k, v := range l {
		fresh[k] = v
	}
	fresh[corev1alpha1.LabelShard] = value
	m.SetLabels(fresh)
}

// EnsureFinalizer adds a finalizer unless the object is being deleted: a
// manifest without it, written with PUT, must not take the last order away.
func EnsureFinalizer(m metav1.Object, name string) {
	if m.GetDeletionTimestamp() != nil {
		return
	}
	for _, f := range m.GetFinalizers() {
		if f == name {
			return
		}
	}
	// The list may be shared with the old object.
	m.SetFinalizers(append(append([]string(nil), m.GetFinalizers()...), name))
}

// KeepMetadata makes a status update leave the metadata as it was, but for the
// managed fields, which say who wrote the status.
func KeepMetadata(m, old *metav1.ObjectMeta) {
	managed := m.ManagedFields
	version := m.ResourceVersion
	old.DeepCopyInto(m)
	m.ManagedFields = managed
	m.ResourceVersion = version
}

// Reset is the set of fields that a resource throws away, always the shard
// label among them, so that nobody who applies an object comes to own them.
func Reset(apiVersion string, paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	paths = append(paths, fieldpath.MakePathOrDie("metadata", "labels", corev1alpha1.LabelShard))
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(apiVersion): fieldpath.NewSet(paths...)}
}

// Attributes gives what labels and fields an object is selected by.
type Attributes func(runtime.Object) (labels.Set, fields.Set, error)

// Matcher makes a predicate function; index lists the field selectors that are
// indexed in the watch cache.
func Matcher(attributes Attributes, index ...string) func(labels.Selector, fields.Selector) storage.SelectionPredicate {
	return func(l labels.Selector, f fields.Selector) storage.SelectionPredicate {
		return storage.SelectionPredicate{Label: l, Field: f, GetAttrs: storage.AttrFunc(attributes), IndexFields: index}
	}
}

// ObjectFields are the field selectors that every kind has.
func ObjectFields(m *metav1.ObjectMeta) fields.Set {
	return generic.ObjectMetaFieldsSet(m, true)
}
