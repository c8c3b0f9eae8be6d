// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/url"
	"strings"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"kumodo.io/convoy/api/source/v1alpha1"
)

// SourceUpdate checks a change of the main resource of a source; check is what a
// new one is checked with.
func SourceUpdate[T metav1.ObjectMetaAccessor](next, old T, check func(T) field.ErrorList) field.ErrorList {
	return append(sourceMeta(next, old), check(next)...)
}

// SourceStatusUpdate checks a change of the status.
func SourceStatusUpdate[T metav1.ObjectMetaAccessor](next, old T) field.ErrorList {
	return sourceMeta(next, old)
}

func sourceMeta[T metav1.ObjectMetaAccessor](next, old T) field.ErrorList {
	return apivalidation.ValidateObjectMetaAccessorUpdate(next.GetObjectMeta(), old.GetObjectMeta(), field.NewPath("metadata"))
}

func secretRef(ref *v1alpha1.SecretReference, p *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return requiredName(ref.Name, p.Child("name"), apivalidation.NameIsDNSSubdomain)
}

func webhook(w *v1alpha1.SourceWebhook, p *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	errs := enum(w.Type, p.Child("type"), v1alpha1.WebhookGitHub, v1alpha1.WebhookGeneric)
	return append(errs, secretRef(&w.SecretRef, p.Child("secretRef"))...)
}

func verify(v *v1alpha1.SourceVerify, p *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	errs := enum(v.Provider, p.Child("provider"), v1alpha1.SignatureCosign)
	return append(errs, secretRef(&v.SecretRef, p.Child("secretRef"))...)
}

// sourceURL reads a URL with a host and without credentials. An error never
// repeats it when there may be a password in it. shown is what may be repeated.
func sourceURL(raw, example string, p *field.Path, schemes ...string) (u *url.URL, shown string, errs field.ErrorList) {
	fail := func(value, why string) (*url.URL, string, field.ErrorList) {
		return nil, "", field.ErrorList{field.Invalid(p, value, why)}
	}
	switch {
	case raw == "":
		return nil, "", field.ErrorList{field.Required(p, example)}
	case len(raw) > MaxURL:
		return nil, "", field.ErrorList{field.TooLong(p, "", MaxURL)}
	}
	for _, r := range raw {
		if unicode.IsControl(r) || unicode.IsSpace(r) {
			return fail("(not shown)", "must not contain spaces or control characters")
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Scheme == "" {
		return fail("(not shown)", "must be "+example)
	}
	// scheme and host only: the rest may hold what must not be shown.
	shown = u.Scheme + "://" + u.Host
	if errs := enum(u.Scheme, p, schemes...); len(errs) > 0 {
		return nil, "", errs
	}
	_, password := u.User.Password()
	switch {
	case u.User != nil && u.Scheme != "ssh":
		return fail(shown, "must not hold credentials: put them into the Secret that spec.secretRef names")
	case password:
		return fail(shown, "must not hold a password: put it into the Secret that spec.secretRef names")
	case u.Hostname() == "":
		return fail(shown, "must name a host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fail(shown, "must not have a query or fragment")
	}
	return u, shown, nil
}

// openCredentials warns of credentials that would travel as plain text.
func openCredentials(rawURL string, credentials *v1alpha1.SecretReference) []string {
	if credentials != nil && strings.HasPrefix(strings.ToLower(rawURL), "http:") {
		return []string{"spec.url: the credentials of spec.secretRef would travel unencrypted"}
	}
	return nil
}
