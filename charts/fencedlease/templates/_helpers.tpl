{{/*
Everything has the same name in every release: there can be one installation only.
*/}}

{{/*
The labels and annotations of an object. Takes a dict:
  context      the root context
  labels       further labels, optional
  annotations  further annotations, optional
  name         app.kubernetes.io/name, fencedlease by default
*/}}
{{- define "fencedlease.metadata" -}}
{{- $ := .context -}}
{{- $own := dict
  "app.kubernetes.io/name" (.name | default "fencedlease")
  "app.kubernetes.io/instance" $.Release.Name
  "app.kubernetes.io/version" $.Chart.AppVersion
  "app.kubernetes.io/managed-by" $.Release.Service
  "helm.sh/chart" (printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_") -}}
{{- $labels := merge $own (.labels | default dict) $.Values.commonLabels -}}
{{- $annotations := merge (dict) (.annotations | default dict) $.Values.commonAnnotations -}}
labels:
  {{- toYaml $labels | nindent 2 }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
The image, for the manager and for the check.
*/}}
{{- define "fencedlease.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
What a Pod may do to its node: nothing that the restricted Pod Security Standard
denies. The image has to name a numeric user other than 0. The Pods stay out of the
network of their node, as that standard demands.
*/}}
{{- define "fencedlease.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fencedlease.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{/*
How cert-manager finds the authority for the webhook configurations, which have
none as they are rendered.
*/}}
{{- define "fencedlease.injectCA" -}}
{{- if eq .Values.certificates.mode "certManager" -}}
cert-manager.io/inject-ca-from: {{ printf "%s/fencedlease-webhook" .Release.Namespace }}
{{- end -}}
{{- end }}

{{/*
How the CRD survives an uninstall.
*/}}
{{- define "fencedlease.keepCRD" -}}
{{- if .Values.crds.keep -}}
helm.sh/resource-policy: keep
{{- end -}}
{{- end }}

{{/*
The annotations of what the check needs. They are hooks: made for a check, and gone
after it, whichever way it ends. Takes a list: the root context, and the weight.
*/}}
{{- define "fencedlease.checkHook" -}}
{{- $ := index . 0 -}}
helm.sh/hook: {{ if $.Values.check.enabled }}post-install,post-upgrade,{{ end }}test
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/*
The Pod of the check. Takes the root context.
*/}}
{{- define "fencedlease.checkPod" -}}
serviceAccountName: fencedlease-check
automountServiceAccountToken: true
restartPolicy: Never
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- include "fencedlease.podSecurityContext" . | nindent 2 }}
containers:
- name: check
  image: {{ include "fencedlease.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [/kubectl-fence]
  args:
  - check
  - --installation-only
  - --wait={{ int .Values.check.timeoutSeconds }}s
  - --namespace={{ .Values.check.namespace }}
  resources:
    {{- toYaml .Values.check.resources | nindent 4 }}
  securityContext:
    {{- include "fencedlease.securityContext" . | nindent 4 }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "fencedlease.checkPodMetadata" -}}
labels:
  {{- toYaml (merge (dict "app.kubernetes.io/name" "fencedlease-check") .Values.commonLabels) | nindent 2 }}
{{- with .Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
