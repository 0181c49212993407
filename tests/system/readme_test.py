#!/usr/bin/env python3
"""Every shell block of the README's tour, as pasted, against a server of its own: each must succeed and print something."""
import pathlib
import re
import subprocess
import sys

from server import ROOT, Meshd

blocks = re.findall(r"```\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
tour = [block for block in blocks if "curl -s" in block]
with Meshd(sys.argv[1], "--devices", "8") as server:
    script = "set -euo pipefail\n" + "".join(f"{block}\necho '-- block {i}'\n" for i, block in enumerate(tour))
    # An event stream ends when curl's time is up, which is what the tour shows.
    script = re.sub(r"(curl -s -N -m 1 \S+)", r"{ \1 || [ $? -eq 28 ]; }", script).replace("127.0.0.1:8080", f"127.0.0.1:{server.port}")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=server.folder)
print(done.stdout[-3000:], done.stderr[-2000:])
wrong = done.returncode != 0 or '"status":4' in done.stdout or "null" in done.stdout.split("-- block 0")[0]
print(f"{len(tour)} blocks, {'failed' if wrong else 'all as pasted'}")
sys.exit(1 if wrong or len(tour) < 3 else 0)
