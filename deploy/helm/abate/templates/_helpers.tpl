{{- define "abate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "abate.gateway" -}}
{{ printf "%s-gateway" .Release.Name | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "abate.injector" -}}
{{ printf "%s-injector" .Release.Name | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "abate.secret" -}}
{{ .Values.injector.secretName | default (printf "%s-tls" (include "abate.injector" .)) }}
{{- end }}

{{- define "abate.labels" -}}
app.kubernetes.io/part-of: abate
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "abate.scraped" -}}
{{- if .Values.monitoring.annotations -}}
prometheus.io/scrape: "true"
prometheus.io/path: /metrics
{{- end }}
{{- end }}

{{/* The three probes of a proxy, by the name of its admin port. */}}
{{- define "abate.probes" -}}
startupProbe: # what comes after it starts when this has succeeded
  httpGet: {path: /readyz, port: admin}
  periodSeconds: 1
  failureThreshold: 30
readinessProbe:
  httpGet: {path: /readyz, port: admin}
  periodSeconds: 5
  timeoutSeconds: 2
livenessProbe:
  httpGet: {path: /healthz, port: admin}
  periodSeconds: 10
  timeoutSeconds: 3
{{- end }}

{{/* Collect garbage well before the kernel kills: at what is requested, below the limit. Without a CPU limit Go would
take all CPUs that the node has. */}}
{{- define "abate.env" -}}
- name: GOMEMLIMIT
  valueFrom: {resourceFieldRef: {resource: requests.memory}}
- {name: GOMAXPROCS, value: {{ .cpus | quote }}}
{{- end }}

{{/* The sidecar, as an init container. */}}
{{- define "abate.sidecar" -}}
name: abate
image: {{ include "abate.image" . }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
restartPolicy: Always
args:
  - proxy
  - -c
  - /etc/abate/policy.yaml
  - --listen
  - "127.0.0.1:{{ .Values.sidecar.port }}"
  - --admin
  - ":{{ .Values.sidecar.adminPort }}"
  - --drain-timeout
  - {{ .Values.sidecar.drainSeconds }}s
  - --strangers
  - {{ .Values.sidecar.strangers }}
  - --log-format
  - json
ports:
  - {name: admin, containerPort: {{ .Values.sidecar.adminPort }}}
env:
  {{- include "abate.env" .Values.sidecar | nindent 2 }}
resources: {{- toYaml .Values.sidecar.resources | nindent 2 }}
{{ include "abate.probes" . }}
lifecycle: # runs when the pod begins to end; SIGTERM comes after the service has ended, too late for callers of protect
  preStop: {exec: {command: [/abate, leave]}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  - {name: abate-policy, mountPath: /etc/abate, readOnly: true}
{{- end }}

{{/* What the webhook reads. */}}
{{- define "abate.template" -}}
{{- $env := list (dict "name" "http_proxy" "value" (printf "http://127.0.0.1:%v" .Values.sidecar.port)) }}
{{- $env = append $env (dict "name" "no_proxy" "value" .Values.sidecar.noProxy) }}
{{- range $name, $value := .Values.sidecar.env }}
{{- $env = append $env (dict "name" $name "value" (toString $value)) }}
{{- end }}
{{- $annotations := include "abate.scraped" . | fromYaml }}
{{- if .Values.monitoring.annotations }}
{{- $_ := set $annotations "prometheus.io/port" (toString .Values.sidecar.adminPort) }}
{{- end }}
{{- $container := include "abate.sidecar" . | fromYaml }}
{{- dict "policy" .Values.sidecar.policyConfigMap "container" $container "env" $env "annotations" $annotations | toPrettyJson }}
{{- end }}
