{{- define "evenkeel.fullname" -}}
{{- ternary .Release.Name (printf "%s-evenkeel" .Release.Name) (contains "evenkeel" .Release.Name) | trunc 30 | trimSuffix "-" }}
{{- end }}

{{- define "evenkeel.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "evenkeel.fullname" .) }}
{{- end }}

{{- /* Name of a cluster's probes. */ -}}
{{- define "evenkeel.probeName" -}}
{{- printf "%s-probe-%s" (include "evenkeel.fullname" (index . 0)) (regexReplaceAll "[^a-z0-9]" (lower (index . 1)) "-") | trunc 55 | trimSuffix "-" }}
{{- end }}

{{- define "evenkeel.selector" -}}
app.kubernetes.io/name: evenkeel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "evenkeel.labels" -}}
{{ include "evenkeel.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* The volume that job and server share; empty where the lake is on an object store. */ -}}
{{- define "evenkeel.sharedVolume" -}}
{{- if not .Values.lake.uri }}shared{{ end }}
{{- end }}

{{- /* Whether the job has a volume. */ -}}
{{- define "evenkeel.jobVolume" -}}
{{- if and .Values.job.enabled (not (and .Values.lake.uri .Values.lake.checkpoints)) }}yes{{ end }}
{{- end }}

{{- define "evenkeel.claim" -}}
{{- .Values.lake.volume.existingClaim | default (printf "%s-%s" (include "evenkeel.fullname" .) (ternary "checkpoints" "lake" (ne .Values.lake.uri ""))) }}
{{- end }}

{{- /* evenkeel.toml */ -}}
{{- define "evenkeel.config" -}}
{{- $file := deepCopy .Values.settings }}
{{- range list "lake" "cluster" "clusters" "kafka" "rocketmq" "offsets_log" "clients" }}
{{- if hasKey $file . }}{{ fail (printf "settings.%s has another place: clusters, or lake.uri." .) }}{{ end }}
{{- end }}
{{- $names := dict }}
{{- $entries := list }}
{{- range .Values.clusters }}
{{- $name := include "evenkeel.probeName" (list $ .name) }}
{{- with get $names $name }}{{ fail (printf "The clusters %s and another have one name in Kubernetes (%s): name one of them otherwise." . $name) }}{{ end }}
{{- $_ := set $names $name .name }}
{{- $entry := merge (dict "name" .name) (deepCopy (.settings | default dict)) }}
{{- if $.Values.lake.uri }}
{{- $place := printf "%s/%s" ($.Values.lake.checkpoints | default "/var/lib/evenkeel/checkpoints" | trimSuffix "/") .name }}
{{- $_ := set $entry "job" (merge (get $entry "job" | default dict) (dict "checkpoint" $place)) }}
{{- end }}
{{- $entries = append $entries $entry }}
{{- end }}
{{- $_ := set $file "lake" (.Values.lake.uri | default "/var/lib/evenkeel/lake") }}
{{- $_ := set $file "clusters" $entries }}
{{- include "evenkeel.prepare" $file }}
{{- toToml $file }}
{{- end }}

{{- /* Whole numbers as such (Helm has floats), and no secrets: changes the dict that it is given. */ -}}
{{- define "evenkeel.prepare" -}}
{{- range $name, $value := . }}
{{- if and (has $name (list "sasl_password" "ssl_password" "secret_key" "access_token" "token" "password" "marks_token")) $value }}
{{- fail (printf "%s in settings is a secret, and would be in a ConfigMap: name a Secret in clusters[].secrets, server.secrets or secretFiles." $name) }}
{{- end }}
{{- if kindIs "map" $value }}
{{- if eq $name "targets" }}{{ fail "alerts.targets in settings are secrets, and would be in a ConfigMap: name Secrets in server.secrets, or a file of server.secretFiles in alerts.targets_file." }}{{ end }}
{{- include "evenkeel.prepare" $value }}
{{- else if kindIs "slice" $value }}
{{- range $value }}{{ if kindIs "map" . }}{{ include "evenkeel.prepare" . }}{{ end }}{{ end }}
{{- else if and (kindIs "float64" $value) (eq (float64 $value) (floor $value)) }}
{{- $_ := set $ $name (int64 $value) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* What all pods have: of the root, and the values of one workload. */ -}}
{{- define "evenkeel.pod" -}}
{{- $ := index . 0 }}
{{- $of := index . 1 -}}
serviceAccountName: {{ include "evenkeel.serviceAccount" $ }}
automountServiceAccountToken: false
# A Service named evenkeel would set EVENKEEL_... variables of its own.
enableServiceLinks: false
securityContext:
  {{- toYaml $.Values.podSecurityContext | nindent 2 }}
{{- with $.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $of.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $of.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "evenkeel.container" -}}
{{- $ := index . 0 }}
{{- $of := index . 1 -}}
image: "{{ $.Values.image.repository }}:{{ $.Values.image.tag | default $.Chart.AppVersion }}"
imagePullPolicy: {{ $.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml $of.resources | nindent 2 }}
{{- end }}

{{- /* Variables from Secrets: of a prefix, and {setting: {name, key}}. */ -}}
{{- define "evenkeel.secrets" -}}
{{- $prefix := index . 0 }}
{{- range $setting, $secret := index . 1 -}}
- name: {{ $prefix }}{{ $setting | replace "." "__" | upper }}
  valueFrom:
    secretKeyRef: {name: {{ $secret.name }}, key: {{ $secret.key }}}
{{ end -}}
{{- end }}

{{- /* Whether a cluster's bus is a folder, as that of RocketMQ is by default, in the lake: of the root, and the cluster. */ -}}
{{- define "evenkeel.busIsFolder" -}}
{{- $own := (index . 1).settings | default dict }}
{{- $bus := merge (deepCopy ($own.bus | default dict)) ((index . 0).Values.settings.bus | default dict) }}
{{- if or $bus.folder (and $own.rocketmq (not $bus.bootstrap_servers)) }}yes{{ end }}
{{- end }}

{{- define "evenkeel.clusterSecrets" -}}
{{- with .secrets }}
{{- include "evenkeel.secrets" (list (printf "EVENKEEL_CLUSTERS__%s__" (upper (regexReplaceAll "[^A-Za-z0-9]" $.name "_"))) .) }}
{{- end }}
{{- end }}

{{- /* Mounts and volumes: of the root, the Secret with files, the size of /tmp, whether the lake's volume is mounted. Else
       the working folder is the pod's own, so that it can be written beside a root file system that cannot. */ -}}
{{- define "evenkeel.mounts" -}}
volumeMounts:
  - {name: config, mountPath: /etc/evenkeel, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  {{- if index . 1 }}
  - {name: secrets, mountPath: /run/secrets/evenkeel, readOnly: true}
  {{- end }}
  - {name: home, mountPath: /var/lib/evenkeel}
{{- end }}

{{- define "evenkeel.volumes" -}}
volumes:
  - name: config
    configMap: {name: {{ include "evenkeel.fullname" (index . 0) }}}
  - name: tmp
    emptyDir: {sizeLimit: {{ index . 2 }}}
  {{- with index . 1 }}
  - name: secrets
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
  - name: home
    {{- if index . 3 }}
    persistentVolumeClaim: {claimName: {{ include "evenkeel.claim" (index . 0) }}}
    {{- else }}
    emptyDir: {}
    {{- end }}
{{- end }}

{{- /* A volume that one node mounts: whoever mounts it goes where it is. (The first pod is placed freely.) */ -}}
{{- define "evenkeel.besideTheVolume" -}}
{{- if and (include "evenkeel.sharedVolume" .) (eq .Values.lake.volume.accessMode "ReadWriteOnce") -}}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels: {evenkeel-lake: {{ include "evenkeel.fullname" . }}}
{{- end }}
{{- end }}
