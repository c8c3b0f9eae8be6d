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
	validating = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
)

// rolled is a Deployment without Pods, with a line of its spec and one of its template.
func rolled(ns, name, spec, template string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: ` + ns + `}
spec:
  replicas: 0
  ` + spec + `
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec:
      ` + template + `
---
`
}

const (
	plainContainer = `containers: [{name: c, image: "example/app:1"}]`
	noStrategy     = "revisionHistoryLimit: 3"
)

// at reads a field; its text is empty where there is none.
func at(u *unstructured.Unstructured, fields ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, fields...)
	if err != nil {
		return err
	}
	return value
}

// volume reads a volume of the template of an object.
func volume(t *testing.T, u *unstructured.Unstructured, i int) map[string]any {
	t.Helper()
	list, ok := at(u, "spec", "template", "spec", "volumes").([]any)
	if !ok || len(list) <= i {
		t.Fatalf("%s has volumes %v", u.GetName(), list)
	}
	return list[i].(map[string]any)
}

// container reads the container of the template of an object.
func container(t *testing.T, u *unstructured.Unstructured) map[string]any {
	t.Helper()
	list, ok := at(u, "spec", "template", "spec", "containers").([]any)
	if !ok || len(list) != 1 {
		t.Fatalf("%s has containers %v", u.GetName(), list)
	}
	return list[0].(map[string]any)
}

// only fails the test if a map has other keys than these.
func only(t *testing.T, what string, m map[string]any, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, there := m[key]; !there {
			t.Errorf("%s has no %s: %v", what, key, m)
		}
	}
	if len(m) != len(keys) {
		t.Errorf("%s is %v, wanted only %v", what, m, keys)
	}
}

func TestSS18AnotherMemberOfAUnionReplacesTheOneThatTheServerFilledIn(t *testing.T) {
	inModes(t, testSS18AnotherMemberOfAUnionReplacesTheOneThatTheServerFilledIn)
}

func testSS18AnotherMemberOfAUnionReplacesTheOneThatTheServerFilledIn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-18")
	service := func(name, spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + ", namespace: " + ns + "}\nspec: " + spec + "\n---\n"
	}
	hook := func(client string) string {
		return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: ss18}
webhooks:
- name: a.ss18.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: ` + client + `
  rules: [{apiGroups: [ss18.example.test], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
`
	}
	probed := func(probe string) string {
		return `containers: [{name: c, image: "example/app:1", readinessProbe: ` + probe + `}]`
	}
	volumes := func(list string) string { return plainContainer + "\n      volumes: [" + list + "]" }
	conversion := func(how string) string {
		return strings.Replace(definition("ss18.example.test"), "spec:\n", "spec:\n  conversion: "+how+"\n", 1)
	}
	b.apply("ss18", ns, rolled(ns, "rolls", noStrategy, plainContainer)+
		rolled(ns, "vol", noStrategy, volumes("{name: d}, {name: stays}, {name: s, secret: {secretName: x, optional: true}}, {name: h, hostPath: {path: /srv}}"))+
		rolled(ns, "probe", noStrategy, probed("{httpGet: {port: 80, path: /}}"))+
		service("ext", "{selector: {app: a}, ports: [{port: 80}]}")+
		service("node", "{type: NodePort, selector: {app: a}, ports: [{port: 80}]}")+
		hook("{service: {name: guard, namespace: "+ns+"}}")+
		conversion("{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: x, namespace: x}}}}"))
	uids := map[string]any{}
	for _, name := range []string{"rolls", "vol", "probe"} {
		uids[name] = b.get(deployments, ns, name).GetUID()
	}
	b.apply("ss18", ns, rolled(ns, "rolls", "strategy: {type: Recreate}", plainContainer)+
		rolled(ns, "vol", noStrategy, volumes("{name: d, configMap: {name: x, optional: true}}, {name: stays}, {name: s, emptyDir: {}}, {name: h, configMap: {name: x, optional: true}}"))+
		rolled(ns, "probe", noStrategy, probed(`{exec: {command: ["true"]}}`))+
		service("ext", "{type: ExternalName, externalName: db.example.test}")+
		service("node", "{type: ClusterIP, selector: {app: a}, ports: [{port: 80}]}")+
		hook("{url: 'https://guard.example.test/'}")+
		conversion("{strategy: None}"))
	rolls := b.get(deployments, ns, "rolls")
	only(t, "the strategy", at(rolls, "spec", "strategy").(map[string]any), "type")
	vol := b.get(deployments, ns, "vol")
	only(t, "volume d", volume(t, vol, 0), "name", "configMap")
	only(t, "volume stays", volume(t, vol, 1), "name", "emptyDir")
	only(t, "volume s", volume(t, vol, 2), "name", "emptyDir")
	only(t, "volume h", volume(t, vol, 3), "name", "configMap")
	probe := container(t, b.get(deployments, ns, "probe"))["readinessProbe"].(map[string]any)
	if probe["httpGet"] != nil || probe["exec"] == nil {
		t.Errorf("the probe is %v", probe)
	}
	if got := b.get(services, ns, "ext"); at(got, "spec", "clusterIP") != nil {
		t.Errorf("ext is %v", got.Object["spec"])
	}
	if got := mustJSON(t, b.get(services, ns, "node")); strings.Contains(got, `"nodePort"`) {
		t.Errorf("node is %s", got)
	}
	if got := mustJSON(t, b.get(validating, "", "ss18")); strings.Contains(got, `"guard"`) || strings.Contains(got, `"port":443`) {
		t.Errorf("the webhook is %s", got)
	}
	for name, uid := range uids {
		if b.get(deployments, ns, name).GetUID() != uid {
			t.Errorf("%s was made anew", name)
		}
	}
	b.quiet("after the switch")

	// Somebody switches back: it is repaired, though the server fills the other member in.
	b.edit(deployments, ns, "rolls", "somebody", `{"spec":{"strategy":{"type":"RollingUpdate"}}}`)
	b.live(deployments, ns, "rolls", "repaired", func(u *unstructured.Unstructured) bool {
		return at(u, "spec", "strategy", "type") == "Recreate" && at(u, "spec", "strategy", "rollingUpdate") == nil
	})
}

func TestSS19ANullBesideAnotherMemberOfAUnionIsNoObstacle(t *testing.T) {
	inModes(t, testSS19ANullBesideAnotherMemberOfAUnionIsNoObstacle)
}

func testSS19ANullBesideAnotherMemberOfAUnionIsNoObstacle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-19")
	b.apply("ss19", ns, rolled(ns, "rolls", noStrategy, plainContainer+"\n      volumes: [{name: d}]"))
	b.apply("ss19", ns, rolled(ns, "rolls", "strategy: {type: Recreate, rollingUpdate: null}",
		plainContainer+"\n      volumes: [{name: d, emptyDir: null, configMap: {name: x, optional: true}}]"))
	got := b.get(deployments, ns, "rolls")
	only(t, "the strategy", at(got, "spec", "strategy").(map[string]any), "type")
	only(t, "the volume", volume(t, got, 0), "name", "configMap")
	b.quiet("after the switch")
}

func TestSS05AdoptionFromKubectlTakesAwayTheOtherMemberOfAUnionToo(t *testing.T) {
	inModes(t, testSS05AdoptionFromKubectlTakesAwayTheOtherMemberOfAUnionToo)
}

func testSS05AdoptionFromKubectlTakesAwayTheOtherMemberOfAUnionToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("t-ss-05")
	b.clientSide(deployments, ns, strings.TrimSuffix(rolled(ns, "web", "strategy: {rollingUpdate: {maxSurge: 2}}",
		`containers: [{name: c, image: "example/app:1", command: [/bin/old], env: [{name: A, value: a}, {name: OLD, value: o}], `+
			`readinessProbe: {httpGet: {port: 80, path: /}}}, {name: gone, image: "example/side:1"}]`), "---\n"))
	b.clientSide(configmaps, ns, strings.TrimSuffix(configMap(ns, "conf", "a", "1", "b", "2"), "---\n"))
	b.edit(configmaps, ns, "conf", "kubectl-edit", `{"data":{"c":"3"}}`)
	before := b.get(deployments, ns, "web")
	b.apply("ss05", ns, configMap(ns, "conf", "a", "1")+rolled(ns, "web", "strategy: {type: Recreate}",
		`containers: [{name: c, image: "example/app:2", env: [{name: A, value: a}], readinessProbe: {exec: {command: ["true"]}}}]`))
	web := b.get(deployments, ns, "web")
	c := container(t, web)
	probe := c["readinessProbe"].(map[string]any)
	if web.GetUID() != before.GetUID() || c["command"] != nil || len(c["env"].([]any)) != 1 || probe["httpGet"] != nil || probe["exec"] == nil {
		t.Errorf("the Deployment is %s", mustJSON(t, web))
	}
	only(t, "the strategy", at(web, "spec", "strategy").(map[string]any), "type")
	conf := b.get(configmaps, ns, "conf")
	if data(conf, "b") != "" || data(conf, "c") != "3" {
		t.Errorf("the ConfigMap is %v", conf.Object["data"])
	}
	for _, u := range []*unstructured.Unstructured{web, conf} {
		if len(u.GetAnnotations()) != 1 && u.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
			t.Errorf("%s has annotations %v", u.GetName(), u.GetAnnotations())
		}
	}
	b.quiet("after the adoption")
}

func TestTheOtherMemberOfAUnionStaysWhereSomebodyOwnsItUnlessConflictsAreForced(t *testing.T) {
	inModes(t, testTheOtherMemberOfAUnionStaysWhereSomebodyOwnsItUnlessConflictsAreForced)
}

func testTheOtherMemberOfAUnionStaysWhereSomebodyOwnsItUnlessConflictsAreForced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("union-owned")
	b.apply("union", ns, rolled(ns, "web", noStrategy, plainContainer))
	b.edit(deployments, ns, "web", "somebody", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":7}}}}`)
	before, from := b.get(deployments, ns, "web"), b.calls.n.Load()
	next := rolled(ns, "web", "strategy: {type: Recreate}", plainContainer)
	r := b.settled(b.accept(b.order("union", ns, next)))
	for _, words := range []string{"Deployment " + ns + "/web", "spec.strategy.rollingUpdate", `"somebody"`, "conflicts: Force", "nothing applied"} {
		if !strings.Contains(r.Applied.Message, words) {
			t.Errorf("the message does not say %q: %s", words, r.Applied.Message)
		}
	}
	if got := b.get(deployments, ns, "web"); r.Applied.Reason != "DryRunFailed" || got.GetGeneration() != before.GetGeneration() {
		t.Errorf("applied %+v, the Deployment is %s", r.Applied, mustJSON(t, got))
	}
	b.unwritten(from)
	b.apply("union", ns, next, forced)
	only(t, "the strategy", at(b.get(deployments, ns, "web"), "spec", "strategy").(map[string]any), "type")
}

func TestNothingIsTakenFromAnObjectThatIsRefusedForMoreThanAUnion(t *testing.T) {
	inModes(t, testNothingIsTakenFromAnObjectThatIsRefusedForMoreThanAUnion)
}

func testNothingIsTakenFromAnObjectThatIsRefusedForMoreThanAUnion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ns := b.namespace("union-more")
	leaving := configMap(ns, "one", "k", "v") + configMap(ns, "two", "k", "v") + configMap(ns, "three", "k", "v")
	b.apply("more", ns, rolled(ns, "web", noStrategy, plainContainer)+rolled(ns, "other", noStrategy, plainContainer)+leaving)
	before, other := b.get(deployments, ns, "web"), b.get(deployments, ns, "other")
	from := b.calls.n.Load()
	r := b.settled(b.accept(b.order("more", ns, rolled(ns, "web", "strategy: {type: Recreate}", `containers: [{name: c, image: ""}]`)+
		rolled(ns, "other", "strategy: {type: Recreate}", plainContainer))))
	if r.Applied.Status != tunnel.False || r.Applied.Reason != "DryRunFailed" || !strings.Contains(r.Applied.Message, "1 of 2 objects refused, nothing applied") ||
		!strings.Contains(r.Applied.Message, "containers[0].image") {
		t.Errorf("applied %+v", r.Applied)
	}
	if c := r.Counts; c.Total != 2 || c.Failed != 1 || c.Healthy != 1 || c.Applied != 0 || c.Drifted != 0 {
		t.Errorf("counts %+v do not add up", c)
	}
	for _, u := range []*unstructured.Unstructured{before, other} {
		if got := b.get(deployments, ns, u.GetName()); got.GetGeneration() != u.GetGeneration() {
			t.Errorf("%s was changed: %s", u.GetName(), mustJSON(t, got))
		}
	}
	b.unwritten(from)
}

// unwritten fails the test if the engine wrote to a Deployment.
func (b *bench) unwritten(from int64) {
	b.t.Helper()
	for _, call := range b.calls.since(from) {
		if strings.Contains(call, "/deployments/") && !strings.HasPrefix(call, "GET") && !strings.Contains(call, "dryRun=All") {
			b.t.Errorf("written for a render that was refused: %s", call)
		}
	}
}
