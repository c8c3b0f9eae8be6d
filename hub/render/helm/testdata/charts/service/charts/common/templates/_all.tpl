{{- define "common.name" -}}{{ .Release.Name }}-{{ .Chart.Name }}{{- end -}}
{{- define "common.labels" -}}
app: {{ include "common.name" . }}
library: {{ (index .Subcharts "common").Chart.Version | default "none" }}
{{- end -}}
{{- define "common.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "common.name" . }}
  labels:
    {{- include "common.labels" . | nindent 4 }}
spec:
  selector:
    matchLabels: {app: {{ include "common.name" . }}}
  template:
    metadata:
      labels: {app: {{ include "common.name" . }}}
    spec:
      containers:
      - name: main
        image: {{ .Values.image }}
      {{- if (.Values.extra).sidecar }}
      - name: sidecar
        image: registry.example.test/sidecar:1
      {{- end }}
{{- end -}}
{{- define "common.service" -}}
apiVersion: v1
kind: Service
metadata: {name: {{ include "common.name" .root }}}
spec:
  selector: {app: {{ include "common.name" .root }}}
  ports: [{port: {{ .port }}}]
{{- end -}}
{{- define "common.merged" -}}
{{- $root := index . 0 -}}
{{- $base := fromYaml (include "common.base" $root) -}}
{{- $over := fromYaml (include (index . 1) $root) -}}
{{ toYaml (mergeOverwrite $base $over) }}
{{- end -}}
{{- define "common.base" -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ include "common.name" . }}, labels: {app: x}}
data: {a: "1", b: "2"}
{{- end -}}
{{- define "common.unused" -}}{{ randAlphaNum 10 }}{{- end -}}
