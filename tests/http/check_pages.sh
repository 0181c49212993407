#!/bin/bash
# check_pages.sh [BINARY]: the documentation pages in headless Chromium (pages_check.py): search, "try it", keyboard, both colour schemes,
# phone and desktop, accessibility by axe-core. Needs chromium, Python 3.11, Node and the networks of PyPI and npm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "${1:-$here/../../build/release/meshd}")
shift || true
work=${CHECK_CLIENTS_DIR:-$(mktemp -d)}
venv=$work/pages-venv
[ -d "$venv" ] || python3 -m venv "$venv"
"$venv/bin/pip" install -q playwright==1.65.2
mkdir -p "$work/axe"
(cd "$work/axe" && { [ -f package.json ] || echo '{"private": true}' >package.json; } && npm install --silent --no-fund --no-audit axe-core@4.14.1)
"$venv/bin/python" "$here/pages_check.py" "$binary" "$work/axe/node_modules/axe-core/axe.min.js" "$@"
