#!/bin/bash
# check_package.sh [BINARY]: builds the wheel of python/, installs it with JAX in a venv of its own, type-checks and lints the
# sources, and runs the tests of what was installed against servers of BINARY. Needs Python 3.11 (as PYTHON, if it is not
# python3) and the network of PyPI.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$here/../../build/release/meshd}")
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}
venv=$work/package-venv
[ -x "$binary" ] || { echo "check_package.sh: there is no $binary; build it first" >&2; exit 1; }

[ -d "$venv" ] || "${PYTHON:-python3}" -m venv "$venv"
# Built of a copy: the tree stays as it is.
rm -rf "$work/package" "$work/wheel"
cp -r "$here/python" "$work/package"
"$venv/bin/pip" install -q build jax==0.10.2 ml_dtypes flatbuffers pytest==9.2.0 mypy==2.4.1 ruff==0.17.6
cd "$work/package"
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
"$venv/bin/mypy"
"$venv/bin/mypy" --strict tests/typed_script.py
"$venv/bin/python" -m build -q --wheel --outdir "$work/wheel" .
"$venv/bin/pip" install -q --force-reinstall --no-deps "$work"/wheel/meshd-*.whl
rm -rf src build  # what is tested is what was installed
MESHD_BINARY=$binary MESHD_README=$here/../../README.md MESHD_DOCS=$here/../../docs JAX_PLATFORMS=cpu "$venv/bin/python" -m pytest -q
