#!/bin/bash
# check_clients.sh [BINARY]: the contract as other people's tools see it. Lints it, generates clients in seven languages with the
# real openapi-generator, compiles those whose compilers are here, and lets the TypeScript and the Python client upload, run and
# download, and train on the digits of tests/conformance, against a server of BINARY; then schemathesis makes 3,000 requests from the
# contract (MESHD_LONG=1: 20,000; or CHECK_CLIENTS_REQUESTS). Builds the wheel of the package for JAX and tests what it installs
# (clients/check_package.sh). Triton's Python clients make each call of the inference protocol (tests/http/triton_check.py).
# Needs Node 20 (or npx), Java 17, Maven, Python 3.11 and the networks of npm, Maven and PyPI.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$here/../build/release/meshd}")
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}
port=${CHECK_CLIENTS_PORT:-$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
contract=$here/openapi.yaml
generator=7.14.0
jar=$work/openapi-generator-cli-$generator.jar
[ -x "$binary" ] || { echo "check_clients.sh: there is no $binary; build it first" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

say "the Python package"
CHECK_CLIENTS_DIR=$work bash "$here/clients/check_package.sh" "$binary"

say "Triton's clients"
[ -d "$work/triton" ] || python3 -m venv "$work/triton"
"$work/triton/bin/pip" install -q 'tritonclient[http]'
"$work/triton/bin/python" "$here/../tests/http/triton_check.py" "$binary"

say "lint"
mkdir -p "$work/npm"
cd "$work/npm"
[ -f package.json ] || echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-fund --no-audit @redocly/cli@2 openapi-typescript@7 openapi-fetch@0.17 typescript@5 @types/node@20
REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true \
  npx redocly lint --config "$here/redocly.yaml" --max-problems 1000 "$contract"

say "generate"
[ -f "$jar" ] || mvn -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy -Dmdep.useBaseVersion=true \
  "-Dartifact=org.openapitools:openapi-generator-cli:$generator:jar" "-DoutputDirectory=$work"
java -jar "$jar" validate -i "$contract" --recommend
# Without skipFormModel=false typescript-fetch names a model that it does not write.
for language in python typescript-fetch cpp-restsdk go java csharp rust; do
  rm -rf "${work:?}/$language"
  timeout 240 java -jar "$jar" generate -i "$contract" -g "$language" -o "$work/$language" --global-property skipFormModel=false \
    >"$work/$language.log" 2>&1 || { cat "$work/$language.log"; exit 1; }
  echo "$language"
done

say "compile"
npx openapi-typescript "$contract" -o api.ts
cp "$here/clients/client.ts" client.ts
cp "$here/clients/main_job.ts" "$work/main_job.ts"
strict=(--strict --target es2022 --lib es2022,dom,dom.iterable --module esnext --moduleResolution bundler)
npx tsc "${strict[@]}" --types node client.ts
npx tsc "${strict[@]}" --noEmit "$work/typescript-fetch/index.ts"
ln -sfn npm/node_modules "$work/node_modules"
npx tsc --strict --target es2022 --lib es2022,dom,dom.iterable --module commonjs --moduleResolution node --types node \
  --outDir "$work/main_job" "$work/main_job.ts"
if command -v go >/dev/null; then (cd "$work/go" && GOFLAGS=-mod=mod go build ./...); fi
[ -d "$work/venv" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q -r "$work/python/requirements.txt"

say "run"
data=$(mktemp -d)
"$binary" serve --listen "127.0.0.1:$port" --data "$data" --devices 8 --log-level err &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$data"' EXIT
for _ in $(seq 100); do "$binary" health "127.0.0.1:$port" && break || sleep 0.2; done
node client.js "http://127.0.0.1:$port"
PYTHONPATH=$work/python "$work/venv/bin/python" "$here/clients/client.py" "http://127.0.0.1:$port"
digits=$here/../tests/conformance/digits
node "$work/main_job/main_job.js" "http://127.0.0.1:$port" "$digits"
PYTHONPATH=$work/python "$work/venv/bin/python" "$here/clients/main_job.py" "http://127.0.0.1:$port" "$digits"
for file in openapi.yaml openapi.json; do curl -sSf "http://127.0.0.1:$port/$file" -o "$work/$file"; done
cmp "$contract" "$work/openapi.yaml"

say "made requests"
CHECK_CLIENTS_DIR=$work bash "$here/tester/check_contract.sh" "$binary"
