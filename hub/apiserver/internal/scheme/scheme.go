// SPDX-License-Identifier: Apache-2.0

// Package scheme holds the API server's own runtime scheme, in which each Go
// type stands for both the internal and the v1alpha1 version of its kind, so
// that there is no conversion code. Clients use the schemes of the api packages
// instead: they refuse a type with two kinds. It stands before the flow, where
// users' objects come in.
package scheme

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	extensionsv1alpha1 "kumodo.io/convoy/api/extensions/v1alpha1"
	sourcev1alpha1 "kumodo.io/convoy/api/source/v1alpha1"
)

// FieldClusterRefName is the indexed field selector of Releases.
const FieldClusterRefName = "spec.clusterRef.name"

// Scheme bundles what encodes and decodes the served kinds.
type Scheme struct {
	*runtime.Scheme
	// Codecs can speak protobuf, which our kinds cannot: what is served goes
	// through JSONOnly.
	Codecs serializer.CodecFactory
	// Public has the served versions only: what openapi may name.
	Public *runtime.Scheme
	// Parameters decodes query parameters.
	Parameters runtime.ParameterCodec
}

// GroupVersions lists what is served, and nothing else: one APIService each.
func GroupVersions() []schema.GroupVersion {
	return []schema.GroupVersion{corev1alpha1.SchemeGroupVersion, sourcev1alpha1.SchemeGroupVersion, extensionsv1alpha1.SchemeGroupVersion}
}

// New builds the scheme.
func New() (*Scheme, error) {
	s, public := runtime.NewScheme(), runtime.NewScheme()
	for gv, types := range map[schema.GroupVersion][]runtime.Object{
		corev1alpha1.SchemeGroupVersion:       corev1alpha1.KnownTypes(),
		sourcev1alpha1.SchemeGroupVersion:     sourcev1alpha1.KnownTypes(),
		extensionsv1alpha1.SchemeGroupVersion: extensionsv1alpha1.KnownTypes(),
	} {
		s.AddKnownTypes(gv, types...)
		s.AddKnownTypes(schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}, types...)
		metav1.AddToGroupVersion(s, gv)
		public.AddKnownTypes(gv, types...)
		metav1.AddToGroupVersion(public, gv)
		if err := s.SetVersionPriority(gv); err != nil {
			return nil, fmt.Errorf("set version priority of %s: %w", gv, err)
		}
	}

	// The library answers errors and reads query options in these.
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(s, unversioned)
	s.AddUnversionedTypes(unversioned,
		&metav1.Status{},
		&metav1.APIVersions{},
		&metav1.APIGroupList{},
		&metav1.APIGroup{},
		&metav1.APIResourceList{},
	)

	addDefaults(s)
	if err := addQueries(s); err != nil {
		return nil, err
	}
	if err := addFieldLabels(s); err != nil {
		return nil, err
	}
	return &Scheme{
		Scheme:     s,
		Public:     public,
		Codecs:     serializer.NewCodecFactory(s),
		Parameters: runtime.NewParameterCodec(s),
	}, nil
}

func addDefaults(s *runtime.Scheme) {
	s.AddTypeDefaultingFunc(&corev1alpha1.Cluster{}, func(o any) {
		if c, ok := o.(*corev1alpha1.Cluster); ok {
			corev1alpha1.SetClusterDefaults(c)
		}
	})
	s.AddTypeDefaultingFunc(&corev1alpha1.Release{}, func(o any) {
		if r, ok := o.(*corev1alpha1.Release); ok {
			corev1alpha1.SetReleaseDefaults(r)
		}
	})
	s.AddTypeDefaultingFunc(&corev1alpha1.JoinRequest{}, func(o any) {
		if j, ok := o.(*corev1alpha1.JoinRequest); ok {
			corev1alpha1.SetJoinRequestDefaults(j)
		}
	})
	s.AddTypeDefaultingFunc(&sourcev1alpha1.GitRepository{}, func(o any) {
		if g, ok := o.(*sourcev1alpha1.GitRepository); ok {
			sourcev1alpha1.SetGitRepositoryDefaults(g)
		}
	})
	s.AddTypeDefaultingFunc(&sourcev1alpha1.HelmRegistry{}, func(o any) {
		if h, ok := o.(*sourcev1alpha1.HelmRegistry); ok {
			sourcev1alpha1.SetHelmRegistryDefaults(h)
		}
	})
	s.AddTypeDefaultingFunc(&sourcev1alpha1.OCIRegistry{}, func(o any) {
		if r, ok := o.(*sourcev1alpha1.OCIRegistry); ok {
			sourcev1alpha1.SetOCIRegistryDefaults(r)
		}
	})
}

// addFieldLabels says which field selectors each kind has.
func addFieldLabels(s *runtime.Scheme) error {
	fields := map[schema.GroupVersionKind][]string{
		corev1alpha1.SchemeGroupVersion.WithKind("Cluster"):                   nil,
		corev1alpha1.SchemeGroupVersion.WithKind("Release"):                   {FieldClusterRefName},
		corev1alpha1.SchemeGroupVersion.WithKind("ReleaseInventory"):          nil,
		sourcev1alpha1.SchemeGroupVersion.WithKind("GitRepository"):           nil,
		sourcev1alpha1.SchemeGroupVersion.WithKind("HelmRegistry"):            nil,
		sourcev1alpha1.SchemeGroupVersion.WithKind("OCIRegistry"):             nil,
		extensionsv1alpha1.SchemeGroupVersion.WithKind("HealthRuleSet"):       nil,
		extensionsv1alpha1.SchemeGroupVersion.WithKind("GlobalHealthRuleSet"): nil,
	}
	for gvk, extra := range fields {
		known := map[string]bool{"metadata.name": true, "metadata.namespace": true}
		for _, f := range extra {
			known[f] = true
		}
		kind := gvk.Kind
		err := s.AddFieldLabelConversionFunc(gvk, func(label, value string) (string, string, error) {
			if !known[label] {
				return "", "", fmt.Errorf("%w: %q of %s", ErrUnknownFieldSelector, label, kind)
			}
			return label, value, nil
		})
		if err != nil {
			return fmt.Errorf("add field selectors of %s: %w", kind, err)
		}
	}
	return nil
}
