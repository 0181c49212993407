#!/bin/bash
# check_contract.sh BINARY: schemathesis makes requests from the contract and holds a server of BINARY to it, with the checks of
# rules.py. Rounds with new seeds until CHECK_CLIENTS_REQUESTS (3,000; with MESHD_LONG=1 20,000) requests were made. Needs PyPI the first time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1")
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}
usual=3000
[ -z "${MESHD_LONG:-}" ] || usual=20000
wanted=${CHECK_CLIENTS_REQUESTS:-$usual}
[ -d "$work/tester" ] || python3 -m venv "$work/tester"
"$work/tester/bin/pip" install -q "schemathesis>=4.32,<5"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
data=$(mktemp -d)
echo tester-token >"$data/tokens"
"$binary" serve --listen "127.0.0.1:$port" --data "$data/data" --devices 8 --tokens "$data/tokens" --log-level err &
server=$!
trap 'kill $server 2>/dev/null; wait $server || true; rm -rf "$data"' EXIT
for _ in $(seq 100); do "$binary" health "127.0.0.1:$port" && break || sleep 0.2; done

cd "$work"
made=0 round=0
while [ "$made" -lt "$wanted" ]; do
  round=$((round + 1))
  seed=${CHECK_CLIENTS_SEED:-$RANDOM$RANDOM}
  if ! PYTHONPATH=$here "$work/tester/bin/schemathesis" --config-file "$here/schemathesis.toml" run "$here/../openapi.yaml" \
    --url "http://127.0.0.1:$port" -H "Authorization: Bearer tester-token" --max-examples 25 --seed "$seed" --no-color \
    --max-response-time 20 >tester.log 2>&1; then
    cat tester.log
    echo "check_contract.sh: findings with seed $seed" >&2
    exit 1
  fi
  some=$(sed -nE 's/^ *([0-9]+) generated.*/\1/p' tester.log)
  made=$((made + some))
  echo "round $round, seed $seed: $made requests, no finding"
done
kill -0 $server || { echo "check_contract.sh: the server ended" >&2; exit 1; }
