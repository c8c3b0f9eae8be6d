// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"regexp"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/source/v1alpha1"
)

const schemeOCI = "oci"

// The forms that the distribution specification gives to repositories, tags and
// digests.
var (
	ociRepository = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	ociTag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	sha256Digest  = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
)

// HelmRegistry checks one that is to be created or updated.
func HelmRegistry(h *v1alpha1.HelmRegistry) field.ErrorList {
	errs := objectName(h.Name, apivalidation.NameIsDNSSubdomain)
	spec := field.NewPath("spec")
	errs = append(errs, helmURL(h.Spec.URL, spec.Child("url"))...)
	errs = append(errs, duration(h.Spec.Interval, spec.Child("interval"), MinSourceInterval, MaxInterval)...)
	errs = append(errs, secretRef(h.Spec.SecretRef, spec.Child("secretRef"))...)
	errs = append(errs, secretRef(h.Spec.CASecretRef, spec.Child("caSecretRef"))...)
	errs = append(errs, webhook(h.Spec.Webhook, spec.Child("webhook"))...)
	errs = append(errs, verify(h.Spec.Verify, spec.Child("verify"))...)
	if h.Spec.Verify != nil && !strings.HasPrefix(h.Spec.URL, schemeOCI+":") {
		errs = append(errs, field.Forbidden(spec.Child("verify"), "only with an oci:// URL: an index of charts has no signatures that cosign made"))
	}
	if h.Spec.PassCredentials && strings.HasPrefix(h.Spec.URL, schemeOCI+":") {
		errs = append(errs, field.Forbidden(spec.Child("passCredentials"), "only with an https URL: an OCI registry names no other hosts"))
	}
	return errs
}

// HelmRegistryWarnings are told to the user who wrote the object.
func HelmRegistryWarnings(h *v1alpha1.HelmRegistry) []string {
	warnings := openCredentials(h.Spec.URL, h.Spec.SecretRef)
	if h.Spec.PassCredentials && h.Spec.SecretRef != nil {
		warnings = append(warnings, "spec.passCredentials: whoever writes the index decides which hosts get the credentials of spec.secretRef")
	}
	return warnings
}

func helmURL(raw string, p *field.Path) field.ErrorList {
	const example = "https://host/path or oci://host/path"
	u, shown, errs := sourceURL(raw, example, p, "https", schemeOCI, "http")
	if len(errs) > 0 || u.Scheme != schemeOCI {
		return errs
	}
	if path := strings.Trim(u.Path, "/"); path != "" && !ociRepository.MatchString(path) {
		return field.ErrorList{field.Invalid(p, shown, "the path must be that of an OCI repository, in lower case, without tag or digest")}
	}
	return nil
}

// OCIRegistry checks one that is to be created or updated.
func OCIRegistry(o *v1alpha1.OCIRegistry) field.ErrorList {
	errs := objectName(o.Name, apivalidation.NameIsDNSSubdomain)
	spec := field.NewPath("spec")
	errs = append(errs, ociURL(o.Spec.URL, spec.Child("url"))...)
	errs = append(errs, ociRef(&o.Spec.Ref, spec.Child("ref"))...)
	errs = append(errs, duration(o.Spec.Interval, spec.Child("interval"), MinSourceInterval, MaxInterval)...)
	errs = append(errs, secretRef(o.Spec.SecretRef, spec.Child("secretRef"))...)
	errs = append(errs, secretRef(o.Spec.CASecretRef, spec.Child("caSecretRef"))...)
	errs = append(errs, webhook(o.Spec.Webhook, spec.Child("webhook"))...)
	return append(errs, verify(o.Spec.Verify, spec.Child("verify"))...)
}

// OCIRegistryWarnings are told to the user who wrote the object: there are none.
func OCIRegistryWarnings(*v1alpha1.OCIRegistry) []string { return nil }

func ociURL(raw string, p *field.Path) field.ErrorList {
	u, shown, errs := sourceURL(raw, "oci://host/path", p, schemeOCI)
	if len(errs) > 0 {
		return errs
	}
	if !ociRepository.MatchString(strings.Trim(u.Path, "/")) {
		return field.ErrorList{field.Invalid(p, shown, "must have the path of a repository, in lower case, without tag or digest: those go into spec.ref")}
	}
	return nil
}

func ociRef(r *v1alpha1.OCIRef, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	var set []string
	if r.Tag != "" {
		set = append(set, "tag")
		if !ociTag.MatchString(r.Tag) {
			errs = append(errs, field.Invalid(p.Child("tag"), r.Tag, "must be a tag: at most 128 letters, digits, _, . and -"))
		}
	}
	if r.Semver != "" {
		set = append(set, "semver")
		errs = append(errs, versionRange(r.Semver, p.Child("semver"))...)
	}
	if r.Digest != "" {
		set = append(set, "digest")
		errs = append(errs, digest(r.Digest, p.Child("digest"))...)
	}
	if len(set) > 1 {
		errs = append(errs, field.Invalid(p, strings.Join(set, ", "), "at most one of tag, semver and digest may be set"))
	}
	return errs
}

func digest(text string, p *field.Path) field.ErrorList {
	if !sha256Digest.MatchString(text) {
		return field.ErrorList{field.Invalid(p, text, "must be sha256: and 64 lower-case hexadecimal digits")}
	}
	return nil
}
