{{- define "stanchion.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "stanchion.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- $name := include "stanchion.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "stanchion.selectorLabels" -}}
app.kubernetes.io/name: {{ include "stanchion.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of an object. (dict "root" $ "labels" {}): these labels override the common ones, and no key is there twice. */}}
{{- define "stanchion.labels" -}}
{{ include "stanchion.selectorLabels" .root }}
{{- /* By this label, doctor finds the operator under any name. It is no part of the selector, which cannot change. */}}
app.kubernetes.io/part-of: stanchion
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with merge (dict) (default dict .labels) (default dict .root.Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Metadata of an object. (dict "root" $ "name" NAME "namespace" NS "labels" {} "annotations" {}); no namespace: none. */}}
{{- define "stanchion.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "stanchion.labels" . | nindent 2 }}
{{- with merge (dict) (default dict .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "stanchion.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "stanchion.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "stanchion.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* The names of the chosen controllers, separated by commas. */}}
{{- define "stanchion.controllers" -}}
{{- $chosen := list }}
{{- range $name, $enabled := .Values.controllers }}
{{- if $enabled }}{{ $chosen = append $chosen $name }}{{ end }}
{{- end }}
{{- if not $chosen }}{{ fail "controllers: enable at least one" }}{{ end }}
{{- join "," $chosen }}
{{- end }}

{{- define "stanchion.certificateSecret" -}}
{{- if eq .Values.webhooks.certificates.provider "self" -}}
stanchion-webhook-certificate
{{- else -}}
{{ include "stanchion.fullname" . }}-webhook
{{- end }}
{{- end }}
