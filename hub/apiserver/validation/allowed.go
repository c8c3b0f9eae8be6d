// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/core/v1alpha1"
)

// MaxAllowed of one list of what a Cluster permits.
const MaxAllowed = 256

// allowed checks what a Cluster permits. A pattern that matches nothing by mistake
// would refuse what was meant, so its form is checked.
func allowed(a *v1alpha1.AllowedPolicy, p *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := patterns(a.TargetNamespaces, p.Child("targetNamespaces"), namespacePattern)
	errs = append(errs, patterns(a.ClusterScopedKinds, p.Child("clusterScopedKinds"), kindPattern)...)
	return append(errs, patterns(a.ServiceAccounts, p.Child("serviceAccounts"), accountPattern)...)
}

func patterns(list []string, p *field.Path, check func(string, *field.Path) field.ErrorList) field.ErrorList {
	if n := len(list); n > MaxAllowed {
		return field.ErrorList{field.TooMany(p, n, MaxAllowed)}
	}
	var errs field.ErrorList
	for i, pattern := range list {
		if pattern == "" {
			errs = append(errs, field.Required(p.Index(i), ""))
			continue
		}
		errs = append(errs, check(pattern, p.Index(i))...)
	}
	return errs
}

// namespacePattern is a name, or a prefix of names that ends in "*".
func namespacePattern(pattern string, p *field.Path) field.ErrorList {
	prefix, is := strings.CutSuffix(pattern, "*")
	if !is {
		return requiredName(pattern, p, apivalidation.ValidateNamespaceName)
	}
	for _, message := range apivalidation.ValidateNamespaceName(prefix, true) {
		if prefix != "" {
			return field.ErrorList{field.Invalid(p, pattern, "before the *: "+message)}
		}
	}
	return nil
}

// kindPattern is Kind, Kind.group or "*".
func kindPattern(pattern string, p *field.Path) field.ErrorList {
	if pattern == "*" {
		return nil
	}
	kind, group, grouped := strings.Cut(pattern, ".")
	if !kindName.MatchString(kind) {
		return field.ErrorList{field.Invalid(p, pattern, "must be Kind, Kind.group, or *")}
	}
	if grouped {
		return requiredName(group, p, apivalidation.NameIsDNSSubdomain)
	}
	return nil
}

// accountPattern is <namespace>:<name> with "*" for either part.
func accountPattern(pattern string, p *field.Path) field.ErrorList {
	namespace, name, apart := strings.Cut(pattern, ":")
	if !apart || namespace == "" || name == "" {
		return field.ErrorList{field.Invalid(p, pattern, "must be <namespace>:<name>, with * for either")}
	}
	var errs field.ErrorList
	if namespace != "*" {
		errs = append(errs, requiredName(namespace, p, apivalidation.ValidateNamespaceName)...)
	}
	if name != "*" {
		errs = append(errs, requiredName(name, p, apivalidation.ValidateServiceAccountName)...)
	}
	return errs
}
