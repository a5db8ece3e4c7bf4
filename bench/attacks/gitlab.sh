#!/usr/bin/env bash
# Attacks on GitlabInstance with the real Flux: a chart that makes its author cluster-admin, from a repository of the tenant's
# own and through values of an allowed one.
#
# usage: KUBECONFIG=… bench/attacks/gitlab.sh STANCHION
#   STANCHION   the operator's binary
# Needed: a control plane of which KUBECONFIG is the administrator's, with RBAC, Flux's source-controller and helm-controller
# on it with the rights of the administrator, and kubectl, helm and python3 in PATH.
set -euo pipefail
stanchion=$(realpath "${1:?usage: $0 STANCHION}")
repo=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT
failed=0
row() { printf '| %s | %s |\n' "$1" "$2"; }
check() { # words, command…
  local words=$1; shift
  if "$@" > "$work/out" 2>&1; then row "$words" held; else row "$words" "BROKE: $(tail -c 300 "$work/out" | tr '\n' ' ')"; failed=1; fi
}
until_true() { # seconds, command…
  local end=$(( SECONDS + $1 )); shift
  until "$@" > "$work/out" 2>&1; do [ "$SECONDS" -lt "$end" ] || return 1; sleep 0.5; done
}
reason() { [ "$(kubectl get gli -n "$1" "$2" -o jsonpath='{.status.conditions[?(@.type=="Ready")].reason}')" = "$3" ]; }
phase() { [ "$(kubectl get gli -n "$1" "$2" -o jsonpath='{.status.phase}')" = "$3" ]; }
no_power() { ! kubectl get clusterrolebinding evil; }
gone() { ! kubectl get "$@"; }

# A chart of the name that the operator installs: some objects of each kind that GitLab's has, and one that it must not have.
chart=$work/gitlab
mkdir -p "$chart/templates" "$work/served"
cat > "$chart/Chart.yaml" <<'Y'
{apiVersion: v2, name: gitlab, version: 8.11.8, appVersion: v17.11.7}
Y
cat > "$chart/templates/all.yaml" <<'Y'
{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-map"}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: "{{ .Release.Name }}-secret"}, stringData: {a: b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: "{{ .Release.Name }}-shared-secrets"}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "{{ .Release.Name }}-shared-secrets"},
 rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list, create, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: "{{ .Release.Name }}-shared-secrets"},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "{{ .Release.Name }}-shared-secrets"},
 subjects: [{kind: ServiceAccount, name: "{{ .Release.Name }}-shared-secrets"}]}
---
{apiVersion: v1, kind: Service, metadata: {name: "{{ .Release.Name }}-web"}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ .Release.Name }}-web"}, spec: {selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: "{{ .Release.Name }}-gitaly"}, spec: {serviceName: gitaly,
 selector: {matchLabels: {app: gitaly}}, template: {metadata: {labels: {app: gitaly}}, spec: {containers: [{name: g, image: g}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: "{{ .Release.Name }}-backup"}, spec: {schedule: "0 1 * * *",
 jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: b, image: b}]}}}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: "{{ .Release.Name }}-web"}, spec: {maxReplicas: 2,
 scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: "{{ .Release.Name }}-web"}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: "{{ .Release.Name }}-web"}, spec: {maxUnavailable: 1,
 selector: {matchLabels: {app: web}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: "{{ .Release.Name }}-web"}, spec: {defaultBackend:
 {service: {name: "{{ .Release.Name }}-web", port: {number: 80}}}}}
---
{{- if .Values.evil }}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: evil},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
 subjects: [{kind: ServiceAccount, name: default, namespace: "{{ .Release.Namespace }}"}]}
{{- end }}
{{- if .Values.own }}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: own},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin},
 subjects: [{kind: ServiceAccount, name: default}]}
{{- end }}
Y
helm package "$chart" -d "$work/served" > /dev/null
(cd "$work/served" && exec python3 -u -m http.server --bind 127.0.0.1 0) > "$work/server" 2>&1 &
pids+=($!)
until_true 10 grep -q 'port [0-9]' "$work/server"
url=http://127.0.0.1:$(grep -o 'port [0-9]*' "$work/server" | head -1 | cut -d' ' -f2)
helm repo index "$work/served" --url "$url"

# The operator, with the rights that are shipped and no others.
kubectl apply --server-side --force-conflicts -f "$repo/deploy/crds" > /dev/null
kubectl create namespace stanchion-system > /dev/null 2>&1 || true
kubectl apply --server-side --force-conflicts -f "$repo/deploy/rbac.yaml" > /dev/null
token=$(kubectl create token -n stanchion-system stanchion --duration=2h)
kubectl config view --raw --minify -o json | python3 -c '
import json, sys
config = json.load(sys.stdin)
config["users"][0]["user"] = {"token": sys.argv[1]}
json.dump(config, open(sys.argv[2], "w"))' "$token" "$work/operator.kubeconfig"
operator() { # words…
  KUBECONFIG=$work/operator.kubeconfig "$stanchion" run --controllers gitlab --operator-namespace stanchion-system --no-webhooks \
    --health-addr 127.0.0.1:0 --metrics-addr 127.0.0.1:0 "$@" >> "$work/operator.log" 2>&1 &
  operator_pid=$!
  pids+=("$operator_pid")
}
operator

secrets() { # namespace
  kubectl create namespace "$1" > /dev/null
  kubectl create secret generic -n "$1" pg --from-literal=host=127.0.0.1 --from-literal=port=1 --from-literal=password=x > /dev/null
  kubectl create secret generic -n "$1" redis --from-literal=host=127.0.0.1 --from-literal=port=1 --from-literal=password=x > /dev/null
}
instance() { # namespace, more of the spec
  kubectl apply -n "$1" -f - > /dev/null <<Y
apiVersion: k8s.bnerd.com/v1alpha1
kind: GitlabInstance
metadata: {name: shop}
spec:
  version: 17.11.7
  domains: {gitlab: git.example.com}
  postgres: {credentialsSecret: pg}
  redis: {credentialsSecret: redis}
${2:-}
Y
}
map() { # more of the spec
  kubectl apply -f - > /dev/null <<Y
apiVersion: k8s.bnerd.com/v1alpha1
kind: GitlabVersionMap
metadata: {name: default}
spec:
  versions: {17.11.7: {chartVersion: 8.11.8}}
  ${1:-}
Y
}

printf '| attack | |\n|---|---|\n'
map
secrets evil
instance evil "  helm: {repository: {url: \"$url\"}, values: {evil: true}}"
check 'a chart of the tenant, from a repository of the tenant, is refused' until_true 60 reason evil shop ChartRepositoryNotAllowed
check 'and Flux gets no release' gone helmrelease -n evil shop-gitlab
check 'and nobody is cluster-admin' no_power

map "repository: {url: \"$url\"}"
secrets good
instance good
check 'what a chart has in its namespace, Flux installs as the account' until_true 120 phase good shop Ready
check 'the release names the account' test "$(kubectl get helmrelease -n good shop-gitlab -o jsonpath='{.spec.serviceAccountName}')" = shop-gitlab-release

instance evil "  helm: {values: {evil: true}}"
check 'values that make the chart create an object of the cluster are refused by the API server' until_true 120 reason evil shop ReleaseForbidden
check 'and nobody is cluster-admin' no_power
instance evil "  helm: {values: {own: true}}"
check 'nor does the chart give away more than the account has' until_true 120 reason evil shop ReleaseForbidden
check 'and there is no such binding' gone rolebinding -n evil own

kubectl apply -f - > /dev/null <<'Y'
{apiVersion: k8s.bnerd.com/v1alpha1, kind: GitlabProfile, metadata: {name: strong}, spec: {release: {serviceAccountName: strong}}}
Y
instance evil "  profile: strong
  helm: {values: {evil: true}}"
check 'a profile for another namespace gives nothing here' until_true 60 reason evil shop ServiceAccountMissing
check 'and nobody is cluster-admin' no_power

kubectl delete gli -n good shop --wait=false > /dev/null
check 'Flux uninstalls as the account' until_true 120 gone gli -n good shop
check 'nothing of the chart is left' gone deployment -n good shop-web
check 'and the account goes last' until_true 30 gone serviceaccount -n good shop-gitlab-release

# An upgrade of the operator: a release that was installed with the rights of Flux.
kill "$operator_pid"; wait "$operator_pid" 2>/dev/null || true
operator --trust-tenants
secrets old
instance old
check 'with --trust-tenants Flux installs as itself' until_true 120 phase old shop Ready
check 'as the original does' test -z "$(kubectl get helmrelease -n old shop-gitlab -o jsonpath='{.spec.serviceAccountName}')"
kill "$operator_pid"; wait "$operator_pid" 2>/dev/null || true
operator
named() { [ "$(kubectl get helmrelease -n old shop-gitlab -o jsonpath='{.spec.serviceAccountName}')" = shop-gitlab-release ]; }
check 'a release without an account gets one' until_true 60 named
check 'and stays ready' until_true 120 phase old shop Ready
check 'without a reinstall' test "$(kubectl get secret -n old -l owner=helm,name=shop -o name | wc -l)" = 1
check 'the operator was refused nothing' test "$(grep -c 'cannot .* resource' "$work/operator.log" || true)" = 0
exit "$failed"
