// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"kumodo.io/convoy/hub/store"
)

// Sentinels.
var (
	// ErrURL: what should say where the registry is does not.
	ErrURL = errors.New("the render store's URL is written oci://HOST/PATH, in small letters, without tag or digest")
	// ErrCA: the file with certificates has none.
	ErrCA = errors.New("no certificate in PEM")
	// ErrForeign: a tag of the store leads to something that the store did not make.
	ErrForeign = errors.New("an artifact that is not one of the render store")
)

// notFound reports that the registry does not have what was asked for.
func notFound(err error) bool {
	var answer *errcode.ErrorResponse
	return errors.Is(err, errdef.ErrNotFound) || errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}

// unknown reports that the registry does not know what a manifest names.
func unknown(err error) bool {
	var answer *errcode.ErrorResponse
	if !errors.As(err, &answer) {
		return false
	}
	return slices.ContainsFunc(answer.Errors, func(one errcode.Error) bool { return one.Code == errcode.ErrorCodeManifestBlobUnknown })
}

// refused reports that the registry does not let anybody delete, or us.
func refused(err error) bool {
	var answer *errcode.ErrorResponse
	if !errors.As(err, &answer) {
		return false
	}
	for _, one := range answer.Errors {
		if one.Code == errcode.ErrorCodeUnsupported {
			return true
		}
	}
	return answer.StatusCode == http.StatusMethodNotAllowed || answer.StatusCode == http.StatusForbidden
}

// explain puts the sentinel of the room in place of that of the library.
func explain(what string, err error) error {
	if notFound(err) {
		return fmt.Errorf("%s: %w", what, store.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", what, err)
}
