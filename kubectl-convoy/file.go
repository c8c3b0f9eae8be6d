// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	corev1alpha1 "kumodo.io/convoy/api/core/v1alpha1"
	"kumodo.io/convoy/pkg/manifest"
)

// maxReleaseFile is more than an API server takes.
const maxReleaseFile = 4 << 20

// Errors of a file with a Release.
var (
	errNoReleaseThere  = errors.New("there is no Release in it")
	errWhichRelease    = errors.New("there are several Releases in it: name one")
	errOtherNamespace  = errors.New("the Release is of another namespace than -n says")
	errReleaseTooLarge = errors.New("too large for a file with a Release")
)

// readRelease reads the Release of a file, or the one of that name; - is standard input.
// Other kinds beside it, as its source, are left alone. A Release that names no
// namespace is of the given one; forced says that a person gave it.
func readRelease(in io.Reader, file, name, namespace string, forced bool) (*corev1alpha1.Release, error) {
	data, err := readAll(in, file)
	if err != nil {
		return nil, err
	}
	return parseRelease(data, file, name, namespace, forced)
}

// parseRelease is readRelease of a file that was read.
func parseRelease(data []byte, file, name, namespace string, forced bool) (*corev1alpha1.Release, error) {
	documents, err := manifest.Documents(file, data)
	if err != nil {
		return nil, err
	}
	var found *corev1alpha1.Release
	for _, document := range documents {
		release, err := asRelease(document.Text)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, document.Line, err)
		}
		if release == nil || name != "" && release.Name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s: %w", file, errWhichRelease)
		}
		found = release
	}
	switch {
	case found == nil && name != "":
		return nil, fmt.Errorf("%s: %w of the name %q", file, errNoReleaseThere, name)
	case found == nil:
		return nil, fmt.Errorf("%s: %w", file, errNoReleaseThere)
	case found.Namespace == "":
		found.Namespace = namespace
	case forced && found.Namespace != namespace:
		return nil, fmt.Errorf("%s: %w: %s", file, errOtherNamespace, found.Namespace)
	}
	return found, nil
}

// asRelease decodes a document strictly; nil when it is of another kind.
func asRelease(text []byte) (*corev1alpha1.Release, error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(raw, &head); err != nil || head.Kind != "Release" || head.APIVersion != corev1alpha1.SchemeGroupVersion.String() {
		return nil, err
	}
	release := &corev1alpha1.Release{}
	strict, err := kjson.UnmarshalStrict(raw, release)
	if err := errors.Join(append([]error{err}, strict...)...); err != nil {
		return nil, err
	}
	return release, nil
}

func readAll(in io.Reader, file string) (data []byte, err error) {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, opened.Close()) }()
		in = opened
	}
	if data, err = io.ReadAll(io.LimitReader(in, maxReleaseFile+1)); err != nil {
		return nil, err
	}
	if len(data) > maxReleaseFile {
		return nil, fmt.Errorf("%s: %w: more than %d MiB", file, errReleaseTooLarge, maxReleaseFile>>20)
	}
	return data, nil
}
