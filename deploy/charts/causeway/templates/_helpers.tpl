{{- define "causeway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "causeway.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "causeway.labels" -}}
{{ include "causeway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "causeway.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "causeway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* The native file: what the user says, and over it what the chart knows better. */ -}}
{{- define "causeway.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $worker := dict "id" "${POD_NAME}" "shutdown_timeout" (printf "%ds" (int .Values.shutdownTimeoutSeconds)) -}}
{{- $server := dict "listen" ":8080" -}}
{{- if .Values.tls.secret -}}
{{- $_ := set $server "tls" (dict "cert_file" "/etc/causeway/tls/tls.crt" "key_file" "/etc/causeway/tls/tls.key" "ca_file" "/etc/causeway/tls/ca.crt") -}}
{{- end -}}
{{- if .Values.auth.secret -}}
{{- $_ := set $server "auth" (dict "token_file" "/etc/causeway/auth/token") -}}
{{- end -}}
{{- $own := dict "worker" $worker "server" $server -}}
{{- if eq .Values.mode "standalone" -}}
{{- $_ := unset $config "coordination" -}}
{{- $_ := set $own "offsets" (dict "store" "file" "dir" "/var/lib/causeway/state") -}}
{{- else -}}
{{- $_ := set $own "controller" (dict "id" "${POD_NAME}") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $config $own) -}}
{{- end -}}

{{- define "causeway.scheme" -}}{{ ternary "HTTPS" "HTTP" (ne .Values.tls.secret "") }}{{- end -}}

{{- /* What all pods have in common. */ -}}
{{- define "causeway.podSettings" -}}
serviceAccountName: {{ include "causeway.serviceAccount" . }}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: config
    configMap: {name: {{ include "causeway.fullname" . }}}
  {{- with .Values.tls.secret }}
  - name: tls
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
  {{- with .Values.auth.secret }}
  - name: auth
    secret: {secretName: {{ . }}, defaultMode: 0440, items: [{key: {{ $.Values.auth.key }}, path: token}]}
  {{- end }}
  {{- range $i, $mount := .Values.secretMounts }}
  - name: secret-{{ $i }}
    secret: {secretName: {{ $mount.secret }}, defaultMode: 0440}
  {{- end }}
{{- end -}}

{{- define "causeway.containerSettings" -}}
image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "causeway.mounts" -}}
- {name: config, mountPath: /etc/causeway/causeway.yaml, subPath: causeway.yaml, readOnly: true}
{{- if .Values.tls.secret }}
- {name: tls, mountPath: /etc/causeway/tls, readOnly: true}
{{- end }}
{{- if .Values.auth.secret }}
- {name: auth, mountPath: /etc/causeway/auth, readOnly: true}
{{- end }}
{{- range $i, $mount := .Values.secretMounts }}
- {name: secret-{{ $i }}, mountPath: {{ $mount.mountPath }}, readOnly: true}
{{- end }}
{{- end -}}

{{- /* A container that serves. Call it with root, component, command and resources. */ -}}
{{- define "causeway.server" -}}
- name: {{ .component }}
  {{- include "causeway.containerSettings" .root | nindent 2 }}
  command: {{ toJson .command }}
  ports:
    - {name: http, containerPort: 8080}
  # Alive is who answers. A mirror that waits for Kafka is alive and not ready: started again it would only wait anew.
  livenessProbe:
    httpGet: {path: /healthz, port: http, scheme: {{ include "causeway.scheme" .root }}}
    initialDelaySeconds: 10
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 6
  readinessProbe:
    httpGet: {path: /readyz, port: http, scheme: {{ include "causeway.scheme" .root }}}
    periodSeconds: 5
    timeoutSeconds: 5
  {{- with .resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts:
    {{- include "causeway.mounts" .root | nindent 4 }}
    {{- if eq .component "standalone" }}
    - {name: state, mountPath: /var/lib/causeway}
    {{- end }}
{{- end -}}

{{- /* A stateful set: pods whose names stay, since workers and controllers are known by them. */ -}}
{{- define "causeway.statefulSet" -}}
{{- $root := .root -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ include "causeway.fullname" $root }}-{{ .component }}
  labels:
    {{- include "causeway.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not .scaled }}
  replicas: {{ .replicas }}
  {{- end }}
  serviceName: {{ include "causeway.fullname" $root }}-peers
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      {{- include "causeway.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "causeway.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        {{- with $root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/config: {{ include "causeway.config" $root | sha256sum }}
        {{- with $root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "causeway.podSettings" $root | nindent 6 }}
      terminationGracePeriodSeconds: {{ add $root.Values.shutdownTimeoutSeconds 15 }}
      # Controllers and workers call each other by the names of their pods.
      dnsConfig:
        searches: ["{{ include "causeway.fullname" $root }}-peers.{{ $root.Release.Namespace }}.svc.{{ $root.Values.clusterDomain }}"]
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "causeway.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ .component }}
      containers:
        {{- include "causeway.server" . | nindent 8 }}
{{- end -}}
