// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"
	"unicode"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// publicKeySize of an Ed25519 key.
const publicKeySize = 32

func requiredName(name string, p *field.Path, check apivalidation.ValidateNameFunc) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	var errs field.ErrorList
	for _, msg := range check(name, false) {
		errs = append(errs, field.Invalid(p, name, msg))
	}
	return errs
}

func objectName(name string, check apivalidation.ValidateNameFunc) field.ErrorList {
	return requiredName(name, field.NewPath("metadata", "name"), check)
}

// requestName checks the name in a request against that of the object in its path.
func requestName(name, object, kind string) field.ErrorList {
	if name != "" && name != object {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, "must be the name of the "+kind+" in the path, or empty")}
	}
	return nil
}

// duration checks a required duration; the defaults have been filled in before.
func duration(d *metav1.Duration, p *field.Path, low, high time.Duration) field.ErrorList {
	if d == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	if d.Duration < low || d.Duration > high {
		return field.ErrorList{field.Invalid(p, d.Duration.String(), fmt.Sprintf("must be at least %s and at most %s", low, high))}
	}
	return nil
}

func publicKey(key string, p *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(p, "the public half of the token, made by the caller: `kubectl convoy join` does it")}
	}
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return field.ErrorList{field.Invalid(p, key, "must be standard base64")}
	}
	if len(raw) != publicKeySize {
		return field.ErrorList{field.Invalid(p, key, fmt.Sprintf("must be an Ed25519 public key of %d bytes", publicKeySize))}
	}
	return nil
}

// refName checks a branch or tag by the rules that Git has for ref names.
func refName(ref string, p *field.Path) field.ErrorList {
	invalid := func(why string) field.ErrorList { return field.ErrorList{field.Invalid(p, ref, why)} }
	switch {
	case len(ref) > MaxRef:
		return field.ErrorList{field.TooLong(p, "", MaxRef)}
	case strings.HasPrefix(ref, "-") || strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, "/"):
		return invalid("must not start with - or /, nor end with /")
	case strings.HasSuffix(ref, ".lock") || strings.HasSuffix(ref, "."):
		return invalid("must not end with . or .lock")
	case strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.Contains(ref, "@{") || ref == "@":
		return invalid("must not contain .., // or @{")
	}
	for _, r := range ref {
		if unicode.IsControl(r) || strings.ContainsRune(" ~^:?*[\\", r) {
			return invalid("must not contain spaces, control characters or any of ~^:?*[\\")
		}
	}
	return nil
}

// isCommit says whether the ref is a full commit id.
func isCommit(ref string) bool {
	if len(ref) != 40 {
		return false
	}
	for _, r := range ref {
		if !strings.ContainsRune("0123456789abcdef", r) {
			return false
		}
	}
	return true
}

// relativePath checks the path of a file or folder inside a source.
func relativePath(path string, p *field.Path) field.ErrorList {
	if errs := pathText(path, p); len(errs) > 0 {
		return errs
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(p, path, "must not leave the source: no .. in it")}
		}
	}
	return nil
}

// pathText checks what every path has to be.
func pathText(path string, p *field.Path) field.ErrorList {
	invalid := func(why string) field.ErrorList { return field.ErrorList{field.Invalid(p, path, why)} }
	switch {
	case path == "":
		return field.ErrorList{field.Required(p, "")}
	case len(path) > MaxPath:
		return field.ErrorList{field.TooLong(p, "", MaxPath)}
	case strings.HasPrefix(path, "/"):
		return invalid("must be relative")
	case strings.Contains(path, "\\"):
		return invalid("must have / between its parts")
	}
	for _, r := range path {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return invalid("must be plain text")
		}
	}
	return nil
}

func enum[T ~string](value T, p *field.Path, known ...T) field.ErrorList {
	for _, k := range known {
		if value == k {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(p, value, known)}
}
