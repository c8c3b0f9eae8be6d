// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

// car is a definition with its versions, and an object of one of them.
func car(ns, versions, version, spec string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cars.ss14.example.test}
spec:
  group: ss14.example.test
  names: {kind: Car, plural: cars}
  scope: Namespaced
  versions: [` + versions + `]
---
apiVersion: ss14.example.test/` + version + `
kind: Car
metadata: {name: c, namespace: ` + ns + `}
spec: ` + spec + `
---
`
}

func carVersion(name, stored, fields string) string {
	return `{name: ` + name + `, served: true, storage: ` + stored + `, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: ` + fields + `}}}}}`
}

func TestSS14AnObjectFollowsItsDefinitionToAnotherVersionInOneSync(t *testing.T) {
	inModes(t, testSS14AnObjectFollowsItsDefinitionToAnotherVersionInOneSync)
}

func testSS14AnObjectFollowsItsDefinitionToAnotherVersionInOneSync(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-14")
	cars := schema.GroupVersionResource{Group: "ss14.example.test", Version: "v1", Resource: "cars"}
	old := carVersion("v1alpha1", "true", "{a: {type: string}, gone: {type: string}}")
	b.apply("ss14", ns, car(ns, old, "v1alpha1", `{a: x, gone: "yes"}`))
	old = strings.Replace(old, "storage: true", "storage: false", 1)
	next := carVersion("v1", "true", "{a: {type: string}, b: {type: integer}, gone: {type: string}}")
	b.apply("ss14", ns, car(ns, old+", "+next, "v1", "{a: x, b: 1}"))
	got := b.get(cars, ns, "c")
	only(t, "the spec", at(got, "spec").(map[string]any), "a", "b")
	uid := got.GetUID()

	// A version that objects are stored in cannot go; what runs stays.
	only14 := carVersion("v1", "true", "{a: {type: string}, b: {type: integer}, c: {type: string}}")
	r := b.settled(b.accept(b.order("ss14", ns, car(ns, only14, "v1", "{a: x, b: 1, c: new}"))))
	if r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "CustomResourceDefinition cars.ss14.example.test") || !strings.Contains(r.Applied.Message, "storedVersions") {
		t.Errorf("applied %+v", r.Applied)
	}
	if r.Counts.Healthy > r.Counts.Total || r.Counts.Failed > r.Counts.Total {
		t.Errorf("counts %+v", r.Counts)
	}

	// A field that the definition of the same render brings.
	next = carVersion("v1", "true", "{a: {type: string}, b: {type: integer}, fresh: {type: string}}")
	b.apply("ss14", ns, car(ns, old+", "+next, "v1", `{a: x, b: 1, fresh: "yes"}`))
	got = b.get(cars, ns, "c")
	if got.GetUID() != uid || at(got, "spec", "fresh") != "yes" {
		t.Errorf("the object is %s", mustJSON(t, got))
	}
	b.quiet("after the upgrades")

	// What no version has is refused by name, and not waited for, with and without a
	// change of the definition beside it.
	for _, definition := range []string{next, strings.Replace(next, "fresh:", "later: {type: string}, fresh:", 1)} {
		o := b.accept(b.order("ss14", ns, car(ns, old+", "+definition, "v1", `{a: x, b: 1, fresh: "yes", typo: 1}`), func(o *tunnel.Order) { o.Policy.TimeoutSeconds = 600 }))
		r = b.settled(o)
		if r.Applied.Status != tunnel.False || !strings.Contains(r.Applied.Message, "Car "+ns+"/c") || !strings.Contains(r.Applied.Message, "spec.typo") {
			t.Errorf("applied %+v", r.Applied)
		}
		if got := b.get(cars, ns, "c"); got.GetUID() != uid || at(got, "spec", "typo") != nil {
			t.Errorf("the object is %s", mustJSON(t, got))
		}
	}
}
