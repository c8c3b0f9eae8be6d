// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"kumodo.io/convoy/pkg/manifest"
)

// A render may have to hold a field that only the cluster can fill, and then holds
// nothing in it: the certificates of a webhook that another controller injects, as an
// empty text or a line break. Taken for a wish, it would be a fight. So where the live
// object has something there, the render's nothing is left out. What the render does
// fill is enforced as any field is.

// holes are the fields in which nothing stands for something that others fill. "*" is
// each item of a list, known by its name.
var holes = map[groupKind][][]string{
	{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration"}: {{"webhooks", "*", "clientConfig", "caBundle"}},
	{"admissionregistration.k8s.io", "MutatingWebhookConfiguration"}:   {{"webhooks", "*", "clientConfig", "caBundle"}},
	{"apiextensions.k8s.io", "CustomResourceDefinition"}:               {{"spec", "conversion", "webhook", "clientConfig", "caBundle"}},
	{"apiregistration.k8s.io", "APIService"}:                           {{"spec", "caBundle"}},
	{"", "PersistentVolumeClaim"}:                                      {{"spec", "volumeName"}},
	{"", "Pod"}:                                                        {{"spec", "nodeName"}},
	{"", "ServiceAccount"}:                                             {{"secrets"}, {"imagePullSecrets"}},
}

// filledSecrets are the types of Secrets whose values a controller may fill, and which
// are good for nothing while these are empty.
var filledSecrets = map[string][]string{
	"kubernetes.io/tls":                   {"tls.crt", "tls.key", "ca.crt"},
	"kubernetes.io/service-account-token": {"token", "ca.crt", "namespace"},
}

func holesOf(id manifest.Identity, content map[string]any) [][]string {
	if !isSecret(id) {
		return holes[groupKind{id.Group, id.Kind}]
	}
	var paths [][]string
	for _, key := range filledSecrets[text(content["type"])] {
		paths = append(paths, []string{"data", key})
	}
	return paths
}

// holdsPlaces says whether a render has such a field with nothing in it.
func holdsPlaces(id manifest.Identity, content map[string]any) bool {
	return slices.ContainsFunc(holesOf(id, content), func(path []string) bool {
		found := false
		pairs(content, nil, path, nil, func(want, _ any, _ []string) { found = found || blank(want) })
		return found
	})
}

// placesOf are pointers into a live object to what others have filled, and the render
// has nothing in.
func placesOf(id manifest.Identity, content, live map[string]any) (pointers [][]string) {
	for _, path := range holesOf(id, content) {
		pairs(content, live, path, nil, func(want, have any, pointer []string) {
			if blank(want) && have != nil && !blank(have) {
				pointers = append(pointers, pointer)
			}
		})
	}
	return pointers
}

// blank says whether a value is a list without items, or a text that is nothing but white
// space, or the base64 of such.
func blank(value any) bool {
	if list, ok := value.([]any); ok {
		return len(list) == 0
	}
	s, ok := value.(string)
	if !ok {
		return false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	return err == nil && strings.TrimSpace(string(plain)) == ""
}

// pairs calls f for each place of a path that the render has a value at, with the live
// value there and a pointer to it.
func pairs(content, live any, path, pointer []string, f func(want, have any, pointer []string)) {
	if len(path) == 0 {
		f(content, live, slices.Clone(pointer))
		return
	}
	if path[0] != "*" {
		wants, ok := content.(map[string]any)
		if !ok {
			return
		}
		value, there := wants[path[0]]
		if !there {
			return
		}
		var have any
		if has, ok := live.(map[string]any); ok {
			have = has[path[0]]
		}
		pairs(value, have, path[1:], append(pointer, path[0]), f)
		return
	}
	items, ok := content.([]any)
	if !ok {
		return
	}
	others, ok := live.([]any)
	if !ok {
		others = nil // there is none yet
	}
	for _, item := range items {
		i := slices.IndexFunc(others, func(other any) bool { return nameOf(item) != "" && nameOf(item) == nameOf(other) })
		if i < 0 {
			pairs(item, nil, path[1:], append(pointer, "-"), f)
			continue
		}
		pairs(item, others[i], path[1:], append(pointer, strconv.Itoa(i)), f)
	}
}

func nameOf(item any) string {
	m, ok := item.(map[string]any)
	if !ok {
		return ""
	}
	return text(m["name"])
}
