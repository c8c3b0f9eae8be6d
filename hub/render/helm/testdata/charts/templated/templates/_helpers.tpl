{{- define "templated.name" -}}{{ .Release.Name }}-text{{- end -}}
{{- define "templated.inner" -}}the file's{{- end -}}
{{- define "templated.render" -}}
{{- $value := typeIs "string" .value | ternary .value (.value | toYaml) -}}
{{- if contains "{{" (toString $value) }}{{ tpl $value .context }}{{ else }}{{ $value }}{{ end -}}
{{- end -}}
