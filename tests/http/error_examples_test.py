"""The examples of /docs/errors against a running server: each command is run in a shell, and its answer compared with the one that is shown.

error_examples_test.py BINARY           compares
error_examples_test.py BINARY --write   writes the details and errors of api/routes/documents/error_examples.yaml"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))
from server import ROOT, Meshd

EXAMPLES = ROOT / "api/routes/documents/error_examples.yaml"
OPTIONS = ["--devices", "8", "--processes", "2", "--memory", "2GB"]


def shortened(text, port=None):
    """Without what differs from run to run: ids, the port, and whether a deadline came while a busy machine had not begun."""
    text = text.replace("the job's time was up", "the run's time was up")
    text = re.sub(r"\b(arr|mesh|ses|job|prog|upl)_[0-9a-f]{8}[0-9a-f-]{20,64}", r"\1_...", text)
    return text.replace(f"127.0.0.1:{port}", "127.0.0.1:8080") if port else text


PROBE = {"program": {"text": "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.negate %a : tensor<8xf32> return %0 : tensor<8xf32> }"},
         "arguments": [[0] * 8], "in_shardings": [{"parts": [8]}]}


def wait_idle(url):
    """Jobs that an example left must not keep the next one waiting: a run on all devices comes after them."""
    for _ in range(600):
        with urllib.request.urlopen(url + "/v1/jobs?limit=1000") as answer:
            if all(job["state"] not in ("queued", "running") for job in json.load(answer)["items"]):
                break
        time.sleep(0.05)
    request = urllib.request.Request(url + "/v1/run", json.dumps(PROBE).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def answer_of(command, url):
    """(code, detail, errors, status) of what a shell prints for a command."""
    wait_idle(url)
    shell = subprocess.run(["bash", "-c", command], env={"URL": url, "PATH": "/usr/bin:/bin"}, capture_output=True, timeout=60)
    try:
        got = json.loads(shell.stdout)
        return got["code"], got["detail"], got.get("errors", []), got.get("status")
    except (ValueError, KeyError, TypeError):
        return None, (shell.stdout + shell.stderr).decode(errors="replace")[:500], [], None


def compared(items, url, port):
    """What differs between examples (as GET /docs/errors has them) and a server's answers."""
    wrong = []
    for item in items:
        if "command" not in item:
            continue
        code, detail, errors, status = answer_of(item["command"], url)
        told = json.loads(shortened(json.dumps([code, detail, errors]), port))
        example = item["example"]
        expected = [item["code"], example["detail"], example["errors"]]
        if told != expected or status not in (None, item["status"]):
            wrong.append(f"{item['code']}:\n  shown    {json.dumps(expected)}\n  answered {json.dumps(told)} {status}")
    return wrong


def literal(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


def write(url, port):
    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(str, literal)
    text = EXAMPLES.read_text()
    out = text[:text.index("\n- code")]
    for row in yaml.safe_load(text):
        if "command" in row:
            code, detail, errors, _ = answer_of(row["command"], url)
            if code != row["code"]:
                raise SystemExit(f"{row['code']} is answered with {code}: {detail}")
            row["detail"], row["errors"] = json.loads(shortened(json.dumps([detail, errors]), port))
            if not row["errors"]:
                del row["errors"]
        out += "\n" + yaml.dump([row], Dumper=Dumper, sort_keys=False, allow_unicode=True, width=150)
    EXAMPLES.write_text(out)


def main():
    with Meshd(os.path.abspath(sys.argv[1]), *OPTIONS) as server:
        if "--write" in sys.argv:
            return write(server.url, server.port)
        items = server.ask("GET", "/docs/errors", headers={"Accept": "application/json"})[2]["items"]
        wrong = compared(items, server.url, server.port)
        asked = sum("command" in item for item in items)
        assert all(("command" in item) != ("only_when" in item) for item in items), items
    print(*wrong, f"{asked} of {len(items)} codes asked for, {len(wrong)} answered otherwise", sep="\n")
    return 1 if wrong or asked < 55 else 0


if __name__ == "__main__":
    sys.exit(main())
