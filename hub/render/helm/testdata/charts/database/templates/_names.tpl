{{- define "database.name" -}}{{ .Release.Name }}-db{{- end -}}
{{- define "database.secret" -}}
{{- with .Values.auth.existingSecret }}{{ . }}{{ else }}{{ template "database.name" $ }}{{ end -}}
{{- end -}}
{{- define "database.role" -}}
{{- $root := index . 0 }}{{ $role := index . 1 }}
app: {{ include "database.name" $root }}
role: {{ $role }}
{{- end -}}
