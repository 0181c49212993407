#!/bin/bash
# check_zarr.sh [BINARY]: zarr-python 2 and 3, xarray, dask and zarrita, in Node and in headless Chromium, against a server (zarr_check.py).
# Needs Python 3.11 with numpy, Node and the networks of PyPI and npm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$here/../../build/release/meshd}")
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}
[ -d "$work/zarr3" ] || python3 -m venv "$work/zarr3"
"$work/zarr3/bin/pip" install -q 'zarr>=3,<4' xarray dask fsspec aiohttp requests obstore
[ -d "$work/zarr2" ] || python3 -m venv "$work/zarr2"
"$work/zarr2/bin/pip" install -q 'zarr<3' 'numcodecs<0.16' 'xarray<2025' dask fsspec aiohttp requests
mkdir -p "$work/zarrita"
(cd "$work/zarrita" && echo '{"private": true, "type": "module"}' >package.json && npm install --silent --no-fund --no-audit zarrita@0.7)
/usr/bin/python3 "$here/zarr_check.py" "$binary" "$work/zarr3/bin/python" "$work/zarr2/bin/python" "$work/zarrita"
