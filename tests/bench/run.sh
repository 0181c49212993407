#!/usr/bin/env bash
# All benchmarks, one after another; each prints ratios against a limit or a peer measured in the same run. Asserts nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
benches=(fused_loop_bench gemm_bench heavy_bench linalg_bench windows_bench parse_bench front_bench storage_bench)
cmake --build --preset release -j "$(nproc)" --target "${benches[@]}" >/dev/null
for bench in "${benches[@]}"; do
  echo "== $bench"
  build/release/tests/bench/"$bench"
done
echo "== jobs over HTTP"
data=$(mktemp -d)
build/release/meshd serve --listen 127.0.0.1:8471 --data "$data" --log-level warn --idle-timeout 600 &
server=$!
trap 'kill $server; wait $server 2>/dev/null; rm -rf "$data"' EXIT
for _ in $(seq 100); do build/release/meshd health 127.0.0.1:8471 >/dev/null && break; sleep 0.1; done
python3 tests/bench/jobs_bench.py http://127.0.0.1:8471
echo "== a CNN whose height is cut"
python3 tests/bench/halo_bench.py http://127.0.0.1:8471
if python3 -c 'import jax' 2>/dev/null; then
  echo "== side by side with JAX"
  python3 tests/bench/jax/compare.py --url http://127.0.0.1:8471
else
  echo "side by side with JAX: pip install jax==0.10.2, then run again"
fi
