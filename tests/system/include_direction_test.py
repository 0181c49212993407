#!/usr/bin/env python3
"""Holds every #include of the sources to the table of allowed edges (service/README.md), and third parties to their fences."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORDER = ["core", "quotas", "tensor", "mesh", "sharding", "ir", "kernels", "ops", "program", "propagation", "partition", "compile", "device",
         "arrays", "registry", "effects", "sessions", "jobs"]
# Folders of service that call storage, which itself uses core only.
STORES = {"arrays", "registry", "effects", "sessions", "jobs"}
NEVER = {("program", "propagation"), ("program", "partition"), ("propagation", "program"), ("propagation", "partition"),
         ("partition", "program"), ("partition", "propagation")}
FENCES = {  # what is included -> where it may be
    r"httplib\.h": ["api/httplib_bridge", "api/app/probe"], r"sqlite3\.h": ["storage/"], r"boost/asio": ["service/device/", "api/"],
    r"boost/context": ["service/core/fiber"],
    r"(cblas|openblas|dnnl|oneapi)": ["service/kernels/"], r"mpi\.h": ["service/device/"], r"spdlog": ["api/app/", "storage/"],
    r"CLI/": ["api/app/"], r"openssl/(?!evp\.h)": ["api/tls_"]}


def room(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "service" and len(parts) > 2 else parts[0]


def allowed(user, used):
    if user == used or used == "core":
        return True
    if user == "api":
        return True
    if user == "storage":
        return False
    if used == "storage":
        return user in STORES
    if used == "api" or user not in ORDER or used not in ORDER:
        return False
    return ORDER.index(used) < ORDER.index(user) and (user, used) not in NEVER


wrong, count = [], 0
for top in ("service", "storage", "api"):
    for path in sorted((ROOT / top).rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        name = str(path.relative_to(ROOT))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#include\s+(["<])([^">]+)[">]', line)
            if not found:
                continue
            count += 1
            target = found.group(2)
            if found.group(1) == '"':
                if not re.match(r"(service|storage|api)/", target):
                    wrong.append(f"{name}:{number}: '{target}' is not written from the root")
                elif not allowed(room(name), room(target)):
                    wrong.append(f"{name}:{number}: {room(name)} may not include {room(target)} ('{target}')")
            for pattern, places in FENCES.items():
                if re.match(pattern, target) and not any(name.startswith(place) for place in places):
                    wrong.append(f"{name}:{number}: <{target}> belongs behind {', '.join(places)}")
print("\n".join(wrong))
print(f"{count} includes, {len(wrong)} in the wrong direction")
sys.exit(1 if wrong or count < 100 else 0)
