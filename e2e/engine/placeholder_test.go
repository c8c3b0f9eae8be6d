// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kumodo.io/convoy/pkg/tunnel"
)

var (
	mutating        = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

func TestDR06WhatAControllerFillsInForAPlaceholderStays(t *testing.T) {
	inModes(t, testDR06WhatAControllerFillsInForAPlaceholderStays)
}

func testDR06WhatAControllerFillsInForAPlaceholderStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-dr-06")
	hook := func(kind, name, bundle, policy string) string {
		return `
apiVersion: admissionregistration.k8s.io/v1
kind: ` + kind + `
metadata: {name: ` + name + `}
webhooks:
- name: a.dr06.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: ` + policy + `
  clientConfig: {service: {name: guard, namespace: ` + ns + `}` + bundle + `}
  rules: [{apiGroups: [dr06.example.test], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
`
	}
	secret := func(name, kind, data string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: " + ns + "}\ntype: " + kind + "\ndata: " + data + "\n---\n"
	}
	account := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa, namespace: " + ns + "}\nsecrets: []\nimagePullSecrets: []\n---\n"
	conf := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bundle, namespace: " + ns + "}\ndata: {}\n---\n"
	render := func(own, policy string) string {
		return hook("ValidatingWebhookConfiguration", "dr06-none", "", policy) + hook("ValidatingWebhookConfiguration", "dr06-empty", `, caBundle: ""`, policy) +
			hook("MutatingWebhookConfiguration", "dr06-break", ", caBundle: Cg==", policy) + hook("MutatingWebhookConfiguration", "dr06-own", ", caBundle: "+own, policy) +
			secret("tls", "kubernetes.io/tls", `{tls.crt: "", tls.key: ""}`) + secret("late", "Opaque", "{}") + account + conf
	}
	b.apply("dr06", ns, render("b3du", "Ignore"))
	b.quiet("after the apply")

	bundles := map[string]string{}
	check := func(when, own, policy string) {
		t.Helper()
		for name, gvr := range map[string]schema.GroupVersionResource{"dr06-none": validating, "dr06-empty": validating, "dr06-break": mutating, "dr06-own": mutating} {
			want := bundles[name]
			if name == "dr06-own" {
				want = own
			}
			b.live(gvr, "", name, when+": has caBundle "+want+" and policy "+policy, func(u *unstructured.Unstructured) bool {
				text := mustJSON(t, u)
				return strings.Contains(text, `"caBundle":"`+want+`"`) && strings.Contains(text, `"failurePolicy":"`+policy+`"`)
			})
		}
		if got := b.get(secrets, ns, "tls"); data(got, "tls.crt") != "Zm9v" || data(got, "tls.key") != "Zm9v" {
			t.Errorf("%s: the Secret is %v", when, got.Object["data"])
		}
		if got := b.get(secrets, ns, "late"); data(got, "k") != "Zm9v" {
			t.Errorf("%s: the Secret is %v", when, got.Object["data"])
		}
		if got := b.get(configmaps, ns, "bundle"); data(got, "ca.crt") != "x" {
			t.Errorf("%s: the ConfigMap is %v", when, got.Object["data"])
		}
		if got := b.get(serviceAccounts, ns, "sa"); len(at(got, "imagePullSecrets").([]any)) != 1 || len(at(got, "secrets").([]any)) != 1 {
			t.Errorf("%s: the account is %s", when, mustJSON(t, got))
		}
	}
	// The webhooks are written whole, as an injector does, and one of them with another policy.
	inject := func(gvr schema.GroupVersionResource, name, policy string) {
		t.Helper()
		b.edit(gvr, "", name, "cainjector", `{"webhooks":[{"name":"a.dr06.example.test","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"`+policy+`",`+
			`"clientConfig":{"caBundle":"Zm9v","service":{"name":"guard","namespace":"`+ns+`"}},`+
			`"rules":[{"apiGroups":["dr06.example.test"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["things"]}]}]}`)
		bundles[name] = "Zm9v"
	}
	inject(validating, "dr06-none", "Fail")
	inject(validating, "dr06-empty", "Fail")
	inject(mutating, "dr06-break", "Ignore")
	inject(mutating, "dr06-own", "Ignore")
	b.edit(secrets, ns, "tls", "issuer", `{"data":{"tls.crt":"Zm9v","tls.key":"Zm9v"}}`)
	b.edit(secrets, ns, "late", "issuer", `{"data":{"k":"Zm9v"}}`)
	b.edit(configmaps, ns, "bundle", "injector", `{"data":{"ca.crt":"x"}}`)
	b.edit(serviceAccounts, ns, "sa", "controller", `{"secrets":[{"name":"token"}],"imagePullSecrets":[{"name":"pull"}]}`)
	check("after the injection", "b3du", "Ignore")
	b.report("uid-dr06", "in sync", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True })
	b.quiet("after the injection")

	// A render that changes something else keeps it too, and one of its own is enforced.
	b.apply("dr06", ns, render("bmV3", "Fail"))
	check("after the next render", "bmV3", "Fail")
	b.quiet("after the next render")
	if modeOf(t) != direct {
		return
	}
	b.restart()
	b.report("uid-dr06", "in sync", func(r tunnel.Report) bool { return r.InSync.Status == tunnel.True })
	check("after a restart", "bmV3", "Fail")
}
