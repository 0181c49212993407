#!/bin/bash
# check_accuracy.sh [BINARY]: our numbers and XLA's against exact ones (accuracy.py), on a server of its own.
# Needs Python 3.11 and the network of PyPI.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$here/../../build/release/meshd}")
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}
[ -d "$work/accuracy" ] || python3 -m venv "$work/accuracy"
"$work/accuracy/bin/pip" install -q jax==0.10.2 numpy scipy ml_dtypes mpmath
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
data=$(mktemp -d)
"$binary" serve --listen "127.0.0.1:$port" --data "$data" --devices 1 --log-level err &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$data"' EXIT
for _ in $(seq 100); do "$binary" health "127.0.0.1:$port" && break || sleep 0.2; done
"$work/accuracy/bin/python" "$here/accuracy.py" "http://127.0.0.1:$port"
