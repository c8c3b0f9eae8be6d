// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func sortedNames(sources map[string]string) []string { return slices.Sorted(maps.Keys(sources)) }

// benchManifests are ConfigMaps of about 1 KiB, each in its own file.
func benchManifests(count int) map[string]string {
	sources := map[string]string{}
	for i := range count {
		sources[fmt.Sprintf("app/%04d.yaml", i)] = benchConfigMap(fmt.Sprintf("cm-%04d", i))
	}
	return sources
}

func benchConfigMap(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels:\n    app: bench\ndata:\n", name)
	for k := range 16 {
		fmt.Fprintf(&b, "  key-%02d: %q\n", k, strings.Repeat("v", 44))
	}
	return b.String()
}

// benchChart has Deployments as charts write them: helpers, labels, values with
// defaults.
func benchChart(objects int) map[string]string {
	return map[string]string{
		"app/Chart.yaml":  "apiVersion: v2\nname: app\nversion: 1.2.3\nappVersion: \"4.5\"\n",
		"app/values.yaml": fmt.Sprintf("count: %d\nreplicas: 2\nimage: {repository: example/app, tag: \"\"}\nresources:\n  limits: {cpu: 100m, memory: 64Mi}\n", objects),
		"app/templates/_helpers.tpl": `{{- define "app.name" -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- define "app.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}
`,
		"app/templates/deployments.yaml": `{{- range $i, $e := until (int .Values.count) }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "app.name" $ }}-{{ $i }}
  labels: {{- include "app.labels" $ | nindent 4 }}
spec:
  replicas: {{ $.Values.replicas }}
  selector:
    matchLabels: {app: {{ include "app.name" $ }}-{{ $i }}}
  template:
    metadata:
      labels: {app: {{ include "app.name" $ }}-{{ $i }}}
    spec:
      containers:
        - name: app
          image: "{{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}"
          resources: {{- toYaml $.Values.resources | nindent 12 }}
{{- end }}
`,
	}
}

// benchKustomization is an overlay over a base, with a patch and a generator.
func benchKustomization(objects int) map[string]string {
	sources := map[string]string{
		"app/kustomization.yaml": "resources: [base]\nnamePrefix: prod-\ncommonAnnotations: {team: bench}\n" +
			"configMapGenerator: [{name: settings, literals: [mode=prod]}]\n" +
			"patches:\n- target: {kind: ConfigMap, name: cm-0000}\n  patch: |\n    - op: add\n      path: /data/patched\n      value: \"yes\"\n",
	}
	var names []string
	for i := range objects {
		name := fmt.Sprintf("%04d.yaml", i)
		names = append(names, name)
		sources["app/base/"+name] = benchConfigMap(fmt.Sprintf("cm-%04d", i))
	}
	sources["app/base/kustomization.yaml"] = "resources: [" + strings.Join(names, ", ") + "]\n"
	return sources
}
