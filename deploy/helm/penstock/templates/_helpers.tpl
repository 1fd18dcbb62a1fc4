{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "penstock.labels" -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "penstock.metadata" -}}
namespace: {{ .Release.Namespace | quote }}
labels:
  {{- include "penstock.labels" . | nindent 2 }}
{{- end }}

{{- define "penstock.secret" -}}
{{ .Values.secret | default .Release.Name | quote }}
{{- end }}

{{- define "penstock.key" -}}
{{ regexReplaceAll "[^A-Za-z0-9._-]" . "_" | quote }}
{{- end }}

{{- define "penstock.portName" -}}
{{ .protocol | default "TCP" | lower }}-{{ .port }}
{{- end }}

{{- define "penstock.isOnePod" -}}
{{- if not (int .Values.executors.number) }}true{{ end }}
{{- end }}

{{- define "penstock.mebibytes" -}}
{{- if not (regexMatch "^[0-9]+[mg]$" .) }}
{{- fail (printf "executors: expected a size such as 2048m or 2g, found %s" .) }}
{{- end }}
{{- mul (ternary 1024 1 (hasSuffix "g" .)) (trimAll "mg" . | int) }}
{{- end }}

{{- define "penstock.cpu" -}}
{{ ternary .Values.executors.cores .Values.driver.cpu (eq (include "penstock.isOnePod" .) "true") }}
{{- end }}

{{- define "penstock.memory" -}}
{{- if include "penstock.isOnePod" . }}
{{- $heap := include "penstock.mebibytes" .Values.executors.memory | int }}
{{- $overhead := include "penstock.mebibytes" .Values.executors.memoryOverhead | int }}
{{- add $heap $overhead 512 }}Mi
{{- else }}
{{- .Values.driver.memory }}
{{- end }}
{{- end }}

{{- define "penstock.accessMode" -}}
{{- if and .Values.state.shared (not (include "penstock.isOnePod" .)) }}ReadWriteMany
{{- else }}ReadWriteOnce
{{- end }}
{{- end }}

{{- define "penstock.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "penstock.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{- define "penstock.writtenMounts" -}}
- name: tmp
  mountPath: /tmp
- name: home
  mountPath: /home/penstock
{{- end }}

{{- define "penstock.writtenVolumes" -}}
- name: tmp
  emptyDir: {}
- name: home
  emptyDir: {}
{{- end }}

{{- define "penstock.projectVolume" -}}
name: pipeline
projected:
  sources:
    - configMap:
        name: {{ .Release.Name }}-files
        items:
          {{- range $path, $text := .Values.files }}
          - key: {{ include "penstock.key" $path }}
            path: {{ $path | quote }}
          {{- end }}
    {{- if .Values.secretFiles }}
    - secret:
        name: {{ include "penstock.secret" . }}
        items:
          {{- range $path, $key := .Values.secretFiles }}
          - key: {{ $key | quote }}
            path: {{ $path | quote }}
          {{- end }}
    {{- end }}
{{- end }}

{{- define "penstock.run" -}}
runtime:
  java: system
  state: /state
  {{- if include "penstock.isOnePod" . }}
  master: local[{{ .Values.executors.cores }}]
  memory: {{ .Values.executors.memory | quote }}
  spark:
    spark.app.name: {{ .Release.Name | quote }}
  {{- else }}
  master: k8s://https://kubernetes.default.svc
  spark:
    spark.app.name: {{ .Release.Name | quote }}
    spark.driver.host: {{ .Release.Name }}-0.{{ .Release.Name }}.{{ .Release.Namespace }}.svc
    spark.driver.bindAddress: 0.0.0.0
    spark.driver.port: "7078"
    spark.driver.blockManager.port: "7079"
    spark.executor.instances: {{ .Values.executors.number | quote }}
    spark.executor.cores: {{ .Values.executors.cores | quote }}
    spark.executor.memory: {{ .Values.executors.memory | quote }}
    spark.executor.memoryOverhead: {{ .Values.executors.memoryOverhead | quote }}
    spark.kubernetes.namespace: {{ .Release.Namespace | quote }}
    spark.kubernetes.container.image: {{ .Values.image | quote }}
    spark.kubernetes.driver.pod.name: {{ .Release.Name }}-0
    spark.kubernetes.driver.ownPersistentVolumeClaim: "false"
    spark.kubernetes.driver.reusePersistentVolumeClaim: "false"
    spark.kubernetes.driver.service.deleteOnTermination: "false"
    spark.kubernetes.executor.disableConfigMap: "true"
    spark.kubernetes.executor.useDriverPodIP: "false"
    spark.kubernetes.executor.podTemplateFile: /etc/penstock/executor-pod.yaml
    {{- if .Values.state.shared }}
    spark.kubernetes.executor.volumes.persistentVolumeClaim.state.options.claimName: state-{{ .Release.Name }}-0
    spark.kubernetes.executor.volumes.persistentVolumeClaim.state.mount.path: /state
    {{- end }}
  {{- end }}
    {{- with .Values.spark }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "penstock.executorPod" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "penstock.labels" . | nindent 4 }}
    app.kubernetes.io/component: executor
spec:
  automountServiceAccountToken: false
  securityContext:
    {{- include "penstock.podSecurity" . | nindent 4 }}
  containers:
    - name: executor
      securityContext:
        {{- include "penstock.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: pipeline
          mountPath: /pipeline
          readOnly: true
        {{- include "penstock.writtenMounts" . | nindent 8 }}
  volumes:
    - {{- include "penstock.projectVolume" . | nindent 6 }}
    {{- include "penstock.writtenVolumes" . | nindent 4 }}
{{- end }}
