// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"kumodo.io/convoy/pkg/manifest"
)

func jsonOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func written(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// entryOf is one manager of a live object.
func entryOf(manager, operation, fields string) string {
	return `{"manager":"` + manager + `","operation":"` + operation + `","fieldsV1":` + fields + `}`
}

func TestWhatIsStaleBesideAFieldThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	const (
		ours   = `{"f:spec":{"f:strategy":{"f:type":{}}}}`
		filled = `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},"paused":true},`
	)
	nobody := func(managerEntry) bool { return false }
	for name, c := range map[string]struct {
		content, live, entries string
		named                  string
		forced                 bool
		fields, held, patch    string
	}{
		"what the server filled in goes": {
			content: `{"spec":{"strategy":{"type":"Recreate"}}}`, live: filled, entries: entryOf("convoy", "Apply", ours), named: "spec.strategy.rollingUpdate",
			fields: `{"f:spec":{"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{}}}}}`, patch: `{"spec":{"strategy":{"rollingUpdate":null,"type":"Recreate"}}}`,
		},
		"what somebody owns stays": {
			content: `{"spec":{"strategy":{"type":"Recreate"}}}`, live: filled, named: "spec.strategy.rollingUpdate",
			entries: entryOf("convoy", "Apply", ours) + "," + entryOf("somebody", "Update", `{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}}}}}`),
			fields:  `{}`, held: "spec.strategy.rollingUpdate", patch: `{"spec":{"strategy":{"type":"Recreate"}}}`,
		},
		"what somebody owns goes where conflicts are forced": {
			content: `{"spec":{"strategy":{"type":"Recreate"}}}`, live: filled, named: "spec.strategy.rollingUpdate", forced: true,
			entries: entryOf("convoy", "Apply", ours) + "," + entryOf("somebody", "Update", `{"f:spec":{"f:strategy":{"f:rollingUpdate":{"f:maxSurge":{}}}}}`),
			fields:  `{"f:spec":{"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{}}}}}`, patch: `{"spec":{"strategy":{"rollingUpdate":null,"type":"Recreate"}}}`,
		},
		"what somebody owns all around stays even then": {
			content: `{"spec":{"strategy":{"type":"Recreate"}}}`, live: filled, named: "spec.strategy.rollingUpdate", forced: true,
			entries: entryOf("somebody", "Update", `{"f:spec":{}}`), fields: `{}`,
		},
		"plain values and what the render has stay": {
			content: `{"spec":{"probe":{"exec":{"command":["x"]},"period":2}}}`,
			live:    `{"spec":{"probe":{"exec":{"command":["x"]},"httpGet":{"port":80},"period":1,"other":{"a":1}}},`,
			entries: entryOf("convoy", "Apply", `{"f:spec":{"f:probe":{"f:exec":{"f:command":{}},"f:period":{}}}}`) + "," + entryOf("x", "Apply", `{"f:spec":{"f:probe":{"f:other":{"f:a":{}}}}}`),
			named:   "spec.probe.exec",
			fields:  `{"f:spec":{"f:probe":{"f:httpGet":{".":{},"f:port":{}}}}}`, held: "spec.probe.other", patch: `{"spec":{"probe":{"httpGet":null,"period":2}}}`,
		},
		"only items that the render has are looked at": {
			content: `{"volumes":[{"name":"a","configMap":{"name":"x"}}]}`,
			live:    `{"volumes":[{"name":"b","emptyDir":{}},{"name":"a","emptyDir":{}}],`,
			entries: entryOf("convoy", "Apply", `{"f:volumes":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}`) + "," + entryOf("x", "Apply", `{"f:volumes":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}`),
			named:   "volumes[0].configMap",
			fields:  `{"f:volumes":{"k:{\"name\":\"a\"}":{"f:emptyDir":{}}}}`, patch: `{"volumes":[{"name":"b","emptyDir":{}},{"configMap":{"name":"x"},"name":"a"}]}`,
		},
		"a field of metadata or status is no member": {
			content: `{"spec":{}}`, live: `{"status":{"a":{"b":1}},"spec":{},`, named: "status.a", entries: entryOf("convoy", "Apply", `{"f:spec":{}}`), fields: `{}`,
		},
		"keys of maps are no members": {
			content: `{"data":{"a":"1"}}`, live: `{"data":{"a":"1","b":"2"},`, named: "data[a]", entries: entryOf("convoy", "Apply", `{"f:data":{"f:a":{}}}`), fields: `{}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := jsonOf(t, c.live+`"metadata":{"name":"it","managedFields":[`+c.entries+`]}}`)
			content := jsonOf(t, c.content)
			s := staleOf(content, live, []string{c.named}, nobody, c.forced)
			if diff := cmp.Diff(c.fields, written(t, s.fields)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			held := ""
			if len(s.held) > 0 {
				held = s.held[0].path
			}
			if held != c.held {
				t.Errorf("held is %q, wanted %q", held, c.held)
			}
			if c.patch == "" {
				return
			}
			merged, ok := s.merged(content, live)
			if !ok {
				t.Fatal("it cannot be merged")
			}
			patch, _ := patchOf(live, merged)
			if diff := cmp.Diff(jsonOf(t, c.patch), jsonOf(t, written(t, patch))); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMergeForTheServerToJudgeGivesUpWhatTheRenderLacksAndKeepsWhatOthersSet(t *testing.T) {
	t.Parallel()
	live := jsonOf(t, `{"spec":{"replicas":5,"env":[{"name":"OLD","value":"o"},{"name":"A","value":"a"},{"name":"X","value":"x"}],"args":["a","b"],"labels":{"old":"1","theirs":"2"}},
		"metadata":{"name":"it","managedFields":[`+
		entryOf("convoy", "Apply", `{"f:spec":{"f:env":{"k:{\"name\":\"OLD\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}},"f:args":{},"f:labels":{"f:old":{}}}}`)+","+
		entryOf("x", "Apply", `{"f:spec":{"f:replicas":{},"f:env":{"k:{\"name\":\"X\"}":{".":{},"f:name":{},"f:value":{}}},"f:labels":{"f:theirs":{}}}}`)+`]}}`)
	content := jsonOf(t, `{"spec":{"env":[{"name":"A","value":"z"},{"name":"NEW","value":"n"}],"args":["c"],"labels":{"new":"3"}}}`)
	s := staleOf(content, live, nil, func(managerEntry) bool { return false }, false)
	merged, ok := s.merged(content, live)
	if !ok {
		t.Fatal("it cannot be merged")
	}
	patch, _ := patchOf(live, merged)
	want := jsonOf(t, `{"spec":{"env":[{"name":"A","value":"z"},{"name":"X","value":"x"},{"name":"NEW","value":"n"}],"args":["c"],"labels":{"old":null,"new":"3"}}}`)
	if diff := cmp.Diff(want, jsonOf(t, written(t, patch))); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestDR06WhatStandsForNothingIsOnlyWhatACertificateOrAnAccountIsPutInto(t *testing.T) {
	t.Parallel()
	hook := manifest.Identity{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "w"}
	live := jsonOf(t, `{"webhooks":[{"name":"z"},{"name":"a","clientConfig":{"caBundle":"Zm9v"}},{"name":"b","clientConfig":{"caBundle":"Zm9v"}},{"name":"c","clientConfig":{"caBundle":"IAo="}}]}`)
	for name, c := range map[string]struct {
		id      manifest.Identity
		content string
		want    string
	}{
		"an empty bundle, found by name":   {hook, `{"webhooks":[{"name":"b","clientConfig":{"caBundle":""}},{"name":"a","clientConfig":{"caBundle":"Cg=="}}]}`, `[["webhooks","2","clientConfig","caBundle"],["webhooks","1","clientConfig","caBundle"]]`},
		"a bundle of the render":           {hook, `{"webhooks":[{"name":"a","clientConfig":{"caBundle":"YmFy"}}]}`, `null`},
		"none in the render":               {hook, `{"webhooks":[{"name":"a","clientConfig":{}}]}`, `null`},
		"nothing is there yet":             {hook, `{"webhooks":[{"name":"c","clientConfig":{"caBundle":""}},{"name":"new","clientConfig":{"caBundle":""}}]}`, `null`},
		"an empty value of another object": {manifest.Identity{Kind: "ConfigMap", Name: "w"}, `{"webhooks":[]}`, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := written(t, placesOf(c.id, jsonOf(t, c.content), live)); got != c.want {
				t.Errorf("got %s, wanted %s", got, c.want)
			}
		})
	}
	secret := manifest.Identity{Kind: "Secret", Name: "s"}
	filled := jsonOf(t, `{"data":{"tls.crt":"Zm9v","k":"Zm9v"}}`)
	for content, want := range map[string]string{
		`{"type":"kubernetes.io/tls","data":{"tls.crt":"","k":""}}`:     `[["data","tls.crt"]]`,
		`{"type":"kubernetes.io/tls","data":{"tls.crt":"YmFy","k":""}}`: `null`,
		`{"type":"Opaque","data":{"tls.crt":"","k":""}}`:                `null`,
	} {
		if got := written(t, placesOf(secret, jsonOf(t, content), filled)); got != want {
			t.Errorf("of %s: got %s, wanted %s", content, got, want)
		}
	}
}

func TestFieldsOfClientsThatApplyByThemselvesAreTakenOver(t *testing.T) {
	t.Parallel()
	const last = `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
	for name, c := range map[string]struct {
		entry           string
		adopted, forced bool
		want            bool
	}{
		"kubectl's, when it is adopted":                    {entry: entryOf("kubectl-client-side-apply", "Update", `{"f:data":{}}`), adopted: true, want: true},
		"kubectl's, when it is ours":                       {entry: entryOf("kubectl-client-side-apply", "Update", `{"f:data":{}}`)},
		"an edit, when it is adopted":                      {entry: entryOf("kubectl-edit", "Update", `{"f:data":{}}`), adopted: true, forced: true},
		"a server-side apply of that name":                 {entry: entryOf("kubectl-client-side-apply", "Apply", `{"f:data":{}}`), adopted: true, forced: true},
		"Helm's, when it is adopted":                       {entry: entryOf("helm", "Update", `{"f:data":{}}`), adopted: true},
		"Helm's, when it is adopted by force":              {entry: entryOf("helm", "Update", `{"f:data":{}}`), adopted: true, forced: true, want: true},
		"another client's, when it is adopted":             {entry: entryOf("other", "Update", last), adopted: true},
		"another client's, when it is adopted by force":    {entry: entryOf("other", "Update", last), adopted: true, forced: true, want: true},
		"that of nobody known, which kubectl had":          {entry: entryOf("before-first-apply", "Update", last), want: true},
		"that of nobody known, of which nothing was found": {entry: entryOf("before-first-apply", "Update", `{"f:data":{}}`), adopted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := takesOver(jsonOf(t, `{"metadata":{"managedFields":[`+c.entry+`]}}`), c.adopted, c.forced); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
