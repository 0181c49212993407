#!/usr/bin/env python3
"""The main job of the README on a server of its own: JAX's losses, predictions, one log entry a step, donated parameters gone."""
import subprocess
import sys

from server import ROOT, Meshd

with Meshd(sys.argv[1], "--devices", "8") as server:
    sys.exit(subprocess.run([sys.executable, str(ROOT / "tests/conformance/main_job.py"), "--url", server.url]).returncode)
