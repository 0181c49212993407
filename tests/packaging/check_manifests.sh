#!/usr/bin/env bash
# check_manifests.sh: the Compose files and the Kubernetes manifests, read by compose-go, by Kubernetes' own types and by type and validation of the
# MPI operator, and once more each with something wrong, which must be refused; the bill of materials, read by the validator of SPDX. Needs Go and
# Python 3 and the networks of their packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
docker=$here/../../docker
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}/manifests
mkdir -p "$work"

if command -v go >/dev/null; then
  cp "$here/manifests/main.go" "$work/"
  cd "$work"
  [ -f go.mod ] || go mod init check.local/manifests 2>/dev/null
  go get github.com/compose-spec/compose-go/v2@v2.4.1 k8s.io/api@v0.31.1 sigs.k8s.io/yaml@v1.4.0 \
    github.com/kubeflow/mpi-operator@v0.6.0 2>/dev/null
  go mod tidy 2>/dev/null
  go build -o manifests .
  check() { # check COMPOSE_FILE KUBERNETES_FILE
    ./manifests "$docker/$1" "$docker/$2"
    sed 's/stop_grace_period/stop_grace/' "$docker/$1" >wrong.yaml
    ! ./manifests wrong.yaml "$docker/$2" >/dev/null 2>&1 || { echo "check_manifests.sh: a misspelt field of $1 was not found" >&2; exit 1; }
    sed 's/failureThreshold: 6/failureThresholds: 6/' "$docker/$2" >wrong.yaml
    ! ./manifests "$docker/$1" wrong.yaml >/dev/null 2>&1 || { echo "check_manifests.sh: a misspelt field of $2 was not found" >&2; exit 1; }
  }
  check compose.yaml kubernetes/meshd.yaml
  check compose.hosts.yaml kubernetes/hosts.yaml
  sed 's/launcherCreationPolicy/launcherCreation/' "$docker/kubernetes/hosts.yaml" >wrong.yaml
  ! ./manifests "$docker/compose.hosts.yaml" wrong.yaml >/dev/null 2>&1 || { echo "check_manifests.sh: a misspelt field of MPIJob was not found" >&2; exit 1; }
  sed 's/restartPolicy: OnFailure/restartPolicy: Always/' "$docker/kubernetes/hosts.yaml" >wrong.yaml
  ! ./manifests "$docker/compose.hosts.yaml" wrong.yaml >/dev/null 2>&1 || { echo "check_manifests.sh: what the MPI operator refuses was not found" >&2; exit 1; }
else
  echo "check_manifests.sh: there is no Go: manifests were not read by the code of Compose and Kubernetes" >&2
fi

[ -d "$work/spdx" ] || python3 -m venv "$work/spdx"
"$work/spdx/bin/pip" install -q 'spdx-tools==0.8.3'
/usr/bin/python3 "$docker/sbom.py" --version 0 --output "$work/meshd.spdx.json"
"$work/spdx/bin/pyspdxtools" -i "$work/meshd.spdx.json" --version SPDX-2.3
echo "meshd.spdx.json is valid SPDX 2.3"
