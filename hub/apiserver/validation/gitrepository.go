// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/source/v1alpha1"
)

// GitRepository checks one that is to be created or updated.
func GitRepository(g *v1alpha1.GitRepository) field.ErrorList {
	errs := objectName(g.Name, apivalidation.NameIsDNSSubdomain)
	spec := field.NewPath("spec")
	errs = append(errs, gitURL(g.Spec.URL, spec.Child("url"))...)
	errs = append(errs, gitRef(&g.Spec.Ref, spec.Child("ref"))...)
	errs = append(errs, duration(g.Spec.Interval, spec.Child("interval"), MinSourceInterval, MaxInterval)...)
	errs = append(errs, secretRef(g.Spec.SecretRef, spec.Child("secretRef"))...)
	errs = append(errs, secretRef(g.Spec.CASecretRef, spec.Child("caSecretRef"))...)
	return append(errs, webhook(g.Spec.Webhook, spec.Child("webhook"))...)
}

// GitRepositoryWarnings are told to the user who wrote the object.
func GitRepositoryWarnings(g *v1alpha1.GitRepository) []string {
	return openCredentials(g.Spec.URL, g.Spec.SecretRef)
}

// gitURL accepts https, ssh and http with a host and a path.
func gitURL(raw string, p *field.Path) field.ErrorList {
	u, shown, errs := sourceURL(raw, "https://host/path or ssh://user@host/path", p, "https", "ssh", "http")
	if len(errs) == 0 && strings.Trim(u.Path, "/") == "" {
		errs = field.ErrorList{field.Invalid(p, shown, "must have a path")}
	}
	return errs
}

func gitRef(r *v1alpha1.GitRef, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	var set []string
	if r.Branch != "" {
		set = append(set, "branch")
		errs = append(errs, refName(r.Branch, p.Child("branch"))...)
	}
	if r.Tag != "" {
		set = append(set, "tag")
		errs = append(errs, refName(r.Tag, p.Child("tag"))...)
	}
	if r.Semver != "" {
		set = append(set, "semver")
		errs = append(errs, versionRange(r.Semver, p.Child("semver"))...)
	}
	if r.Commit != "" {
		set = append(set, "commit")
		if !isCommit(r.Commit) {
			errs = append(errs, field.Invalid(p.Child("commit"), r.Commit, "must be 40 lower-case hexadecimal digits"))
		}
	}
	if r.Name != "" {
		set = append(set, "name")
		if !strings.HasPrefix(r.Name, "refs/") {
			errs = append(errs, field.Invalid(p.Child("name"), r.Name, "must be a ref in full, as in refs/heads/main"))
		}
		errs = append(errs, refName(r.Name, p.Child("name"))...)
	}
	if len(set) > 1 {
		errs = append(errs, field.Invalid(p, strings.Join(set, ", "), "at most one of branch, tag, semver, commit and name may be set"))
	}
	return errs
}

// versionRange checks a range of semantic versions; one version is a range too.
func versionRange(text string, p *field.Path) field.ErrorList {
	if len(text) > MaxRef {
		return field.ErrorList{field.TooLong(p, "", MaxRef)}
	}
	if _, err := semver.NewConstraint(text); err != nil {
		return field.ErrorList{field.Invalid(p, text, "must be a range of versions, as in >=1.2.0 <2.0.0: "+err.Error())}
	}
	return nil
}
