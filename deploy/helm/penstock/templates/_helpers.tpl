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
  master: k8s://https://kubernetes.default.svc
  java: system
  state: /state
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
  volumes:
    - {{- include "penstock.projectVolume" . | nindent 6 }}
{{- end }}
