// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/url"
	"strings"
	"unicode"

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
	return append(errs, secretRef(g.Spec.CASecretRef, spec.Child("caSecretRef"))...)
}

func secretRef(ref *v1alpha1.SecretReference, p *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return requiredName(ref.Name, p.Child("name"), apivalidation.NameIsDNSSubdomain)
}

// GitRepositoryUpdate checks a change of the main resource.
func GitRepositoryUpdate(g, old *v1alpha1.GitRepository) field.ErrorList {
	return append(apivalidation.ValidateObjectMetaUpdate(&g.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata")), GitRepository(g)...)
}

// GitRepositoryStatusUpdate checks a change of the status.
func GitRepositoryStatusUpdate(g, old *v1alpha1.GitRepository) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(&g.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))
}

// GitRepositoryWarnings are told to the user who wrote the object.
func GitRepositoryWarnings(g *v1alpha1.GitRepository) []string {
	if g.Spec.SecretRef != nil && strings.HasPrefix(strings.ToLower(g.Spec.URL), "http:") {
		return []string{"spec.url: the credentials of spec.secretRef would travel unencrypted"}
	}
	return nil
}

// gitURL accepts https, ssh and http with a host and without credentials. An
// error never repeats the URL when there may be a password in it.
func gitURL(raw string, p *field.Path) field.ErrorList {
	invalid := func(value, why string) field.ErrorList { return field.ErrorList{field.Invalid(p, value, why)} }
	switch {
	case raw == "":
		return field.ErrorList{field.Required(p, "https://host/path or ssh://user@host/path")}
	case len(raw) > MaxURL:
		return field.ErrorList{field.TooLong(p, "", MaxURL)}
	}
	for _, r := range raw {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return invalid("(not shown)", "must not contain spaces or control characters")
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Scheme == "" {
		return invalid("(not shown)", "must be https://host/path or ssh://user@host/path")
	}
	// scheme and host only: the rest may hold what must not be shown.
	shown := u.Scheme + "://" + u.Host
	switch u.Scheme {
	case "https", "http":
		if u.User != nil {
			return invalid(shown, "must not hold credentials: put them into the Secret that spec.secretRef names")
		}
	case "ssh":
		if _, has := u.User.Password(); has {
			return invalid(shown, "must not hold a password: put it into the Secret that spec.secretRef names")
		}
	default:
		return field.ErrorList{field.NotSupported(p, u.Scheme, []string{"https", "ssh", "http"})}
	}
	switch {
	case u.Hostname() == "":
		return invalid(shown, "must name a host")
	case strings.Trim(u.Path, "/") == "":
		return invalid(shown, "must have a path")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return invalid(shown, "must not have a query or fragment")
	}
	return nil
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
		if len(r.Semver) > MaxRef {
			errs = append(errs, field.TooLong(p.Child("semver"), "", MaxRef))
		} else if _, err := semver.NewConstraint(r.Semver); err != nil {
			errs = append(errs, field.Invalid(p.Child("semver"), r.Semver, "must be a range of versions, as in >=1.2.0 <2.0.0: "+err.Error()))
		}
	}
	if r.Commit != "" {
		set = append(set, "commit")
		if !isCommit(r.Commit) {
			errs = append(errs, field.Invalid(p.Child("commit"), r.Commit, "must be 40 lower-case hexadecimal digits"))
		}
	}
	if len(set) > 1 {
		errs = append(errs, field.Invalid(p, strings.Join(set, ", "), "at most one of branch, tag, semver and commit may be set"))
	}
	return errs
}
