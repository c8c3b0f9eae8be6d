{{- define "tenants.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
tenant: {{ .name | quote }}
{{- end -}}
