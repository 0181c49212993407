#!/usr/bin/env bash
# pin_base.sh: asks the registry for the digest of the image that docker/Dockerfile builds on, and writes it into the line BASE. Needs docker
# and a network. Run it again to take a newer base.
set -euo pipefail
cd "$(dirname "$0")"
name=$(sed -nE 's/^ARG BASE=([^@]+)(@.*)?$/\1/p' Dockerfile)
docker pull --quiet "$name" >/dev/null
digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$name" | sed -nE 's/.*@(sha256:[0-9a-f]{64})$/\1/p')
[ -n "$digest" ] || { echo "pin_base.sh: the registry gave no digest of $name" >&2; exit 1; }
sed -i -E "s|^ARG BASE=.*|ARG BASE=$name@$digest|" Dockerfile
grep '^ARG BASE=' Dockerfile
