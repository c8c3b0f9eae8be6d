// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// Identity says which object is meant. The version is no part of it.
type Identity struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String gives "apps/Deployment ns/name", without the parts that are empty.
func (i Identity) String() string {
	var b strings.Builder
	if i.Group != "" {
		b.WriteString(i.Group)
		b.WriteByte('/')
	}
	b.WriteString(i.Kind)
	b.WriteByte(' ')
	if i.Namespace != "" {
		b.WriteString(i.Namespace)
		b.WriteByte('/')
	}
	b.WriteString(i.Name)
	return b.String()
}

// GroupVersion splits an apiVersion: "apps/v1" is ("apps", "v1"), "v1" is ("", "v1").
func GroupVersion(apiVersion string) (group, version string) {
	if group, version, ok := strings.Cut(apiVersion, "/"); ok {
		return group, version
	}
	return "", apiVersion
}
