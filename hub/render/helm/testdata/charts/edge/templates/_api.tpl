{{- define "edge.ingress" -}}
{{- if .Capabilities.APIVersions.Has "networking.k8s.io/v1/Ingress" -}}networking.k8s.io/v1
{{- else if .Capabilities.APIVersions.Has "networking.k8s.io/v1beta1" -}}networking.k8s.io/v1beta1
{{- else -}}extensions/v1beta1{{- end -}}
{{- end -}}
{{- define "edge.stable" -}}{{ eq (include "edge.ingress" .) "networking.k8s.io/v1" }}{{- end -}}
