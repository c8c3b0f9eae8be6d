// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"strings"
	"testing"

	"kumodo.io/convoy/hub/render/content"
)

func TestWhatAKustomizationCopiesOutOfASecretIsSealed(t *testing.T) {
	const value, encoded, piece = "PlainGitSecret99:second-part-7", "UGxhaW5HaXRTZWNyZXQ5OTpzZWNvbmQtcGFydC03", "second-part-7"
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: '" + value + "'}\n"
	const target = ", targets: [{select: {kind: ConfigMap, name: c}, fieldPaths: [data.copy]}]"
	cm := configMap("c", "data: {copy: here, ref: $(PW)}")
	for name, files := range map[string]tree{
		"by a replacement":                 {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements: [{source: {kind: Secret, name: s, fieldPath: stringData.password}" + target + "}]\n"},
		"by one that names no kind":        {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements: [{source: {name: s, fieldPath: stringData.password}" + target + "}]\n"},
		"a part of it":                     {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements: [{source: {kind: Secret, name: s, fieldPath: stringData.password, options: {delimiter: ':', index: 1}}" + target + "}]\n"},
		"by a file of replacements":        {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements: [{path: r.yaml}]\n", "app/r.yaml": "{source: {kind: Secret, name: s, fieldPath: stringData.password, options: {delimiter: ':', index: 1}}" + target + "}\n"},
		"by a transformer":                 {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\ntransformers: [t.yaml]\n", "app/t.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: t}\nreplacements: [{source: {kind: Secret, name: s, fieldPath: stringData.password, options: {delimiter: ':', index: 1}}" + target + "}]\n"},
		"by a var":                         {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\nvars: [{name: PW, objref: {apiVersion: v1, kind: Secret, name: s}, fieldref: {fieldpath: stringData.password}}]\nconfigurations: [v.yaml]\n", "app/v.yaml": "varReference: [{path: data/ref, kind: ConfigMap}]\n"},
		"out of a generated one":           {"app/kustomization.yaml": "resources: [c.yaml]\nsecretGenerator: [{name: s, literals: ['password=" + value + "']}]\nreplacements: [{source: {kind: Secret, name: s, fieldPath: data.password}" + target + "}]\n"},
		"in a base, before it is replaced": {"app/kustomization.yaml": "resources: [base]\npatches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: something-else}}'}]\n", "app/base/kustomization.yaml": "resources: [s.yaml, c.yaml]\nreplacements: [{source: {kind: Secret, name: s, fieldPath: stringData.password}" + target + "}]\n", "app/base/s.yaml": secret, "app/base/c.yaml": cm},
		"after a patch has made it":        {"app/kustomization.yaml": "resources: [s.yaml, c.yaml]\npatches: [{patch: '[{\"op\": \"replace\", \"path\": \"/stringData/password\", \"value\": \"" + value + "\"}]', target: {kind: Secret}}]\nreplacements: [{source: {kind: Secret, name: s, fieldPath: stringData.password, options: {delimiter: ':', index: 1}}" + target + "}]\n", "app/s.yaml": strings.ReplaceAll(secret, value, "first")},
	} {
		t.Run(name, func(t *testing.T) {
			for file, data := range map[string]string{"app/s.yaml": secret, "app/c.yaml": cm} {
				if files[file] == "" {
					files[file] = data
				}
			}
			result, err := content.Render(job(), files.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			sealed := 0
			for i := range result.Set.Objects {
				if result.Set.Objects[i].Kind == "ConfigMap" {
					sealed += len(result.Set.Objects[i].Sealed)
				}
			}
			if sealed != 1 {
				t.Errorf("%d fields of the ConfigMap are sealed", sealed)
			}
			text := written(t, result)
			for _, value := range []string{value, encoded, piece} {
				if strings.Contains(text, value) {
					t.Errorf("%s shows in %s", value, text)
				}
			}
		})
	}
}

func TestWhatAnAuthorWroteInClearStaysWhereAKustomizationCopiesOutOfNoSecret(t *testing.T) {
	const value = "PlainGitSecret99"
	base := tree{
		"app/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: " + value + "}\n",
		"app/c.yaml": configMap("c", "data: {copy: "+value+", other: x}"),
	}
	for name, text := range map[string]string{
		"without any":                     "",
		"with one between ConfigMaps":     "replacements: [{source: {kind: ConfigMap, name: c, fieldPath: metadata.name}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.other]}]}]\n",
		"with such a one in another file": "replacements: [{path: r.yaml}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			base["app/kustomization.yaml"] = "resources: [s.yaml, c.yaml]\n" + text
			base["app/r.yaml"] = "- {source: {kind: ConfigMap, name: c, fieldPath: metadata.name}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.other]}]}\n"
			result, err := content.Render(job(), base.files(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := written(t, result); strings.Count(text, value) != 1 {
				t.Errorf("got %s", text)
			}
		})
	}
}
