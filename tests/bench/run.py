#!/usr/bin/env python3
"""All benchmarks, one after another, and RESULTS.md: what each row measured beside its limit or peer of the same run, judged by gates.tsv.
Nothing fails: a person reads it. At most a quarter of an hour; a bench that takes longer than its share is cut off and says so.

run.py [BENCH...]     with names: only these, printed, and RESULTS.md stays
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build/release"
sys.path.insert(0, str(ROOT / "tests/system"))
from server import Meshd  # noqa: E402

# name: seconds that it may take
BINARIES = {"fused_loop": 60, "gemm": 30, "heavy": 150, "linalg": 60, "windows": 60, "parse": 30, "engine": 60, "front": 60, "requests": 60, "storage": 180}
SCRIPTS = {"jobs": (["jobs_bench.py"], 60), "halo": (["halo_bench.py"], 90), "jax": (["jax/compare.py", "--url"], 60)}
INTERESTING = ("avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile")


def output_of(command, seconds):
    """Lines of stdout, and what cut it short or None."""
    # A shell may preset the kernels of OpenBLAS, which halves them.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=seconds, text=True, env=environment, check=False)
        return done.stdout.splitlines(), f"ended with {done.returncode}" if done.returncode else None
    except subprocess.TimeoutExpired as cut:
        return (cut.stdout or b"").decode().splitlines(), f"cut off after {seconds} s"


def measure(names):
    """(name, lines, note, load before it) of each."""
    wanted = [name for name in [*BINARIES, *SCRIPTS] if not names or name in names]
    targets = ["meshd", *(f"{name}_bench" for name in wanted if name in BINARIES)]
    subprocess.run(["cmake", "--build", BUILD, "-j", str(os.cpu_count()), "--target", *targets], check=True, stdout=subprocess.DEVNULL)

    def report(name, command, seconds):
        load = os.getloadavg()[0]
        lines, note = output_of(command, seconds)
        print(f"== {name}", *lines, *([note] if note else []), sep="\n", flush=True)
        return name, lines, note, load

    for name in wanted:
        if name in BINARIES:
            yield report(name, [BUILD / f"tests/bench/{name}_bench"], BINARIES[name])
    scripts = [name for name in wanted if name in SCRIPTS]
    if "jax" in scripts and subprocess.run([sys.executable, "-c", "import jax"], stderr=subprocess.DEVNULL, check=False).returncode:
        scripts.remove("jax")
        yield "jax", [], "not measured: pip install jax==0.10.2, then run again", 0
    if scripts:
        with tempfile.TemporaryDirectory() as folder, Meshd(BUILD / "meshd", "--idle-timeout", "600", data=folder) as server:
            for name in scripts:
                (script, *options), seconds = SCRIPTS[name]
                yield report(name, [sys.executable, HERE / script, *options, server.url], seconds)


def gates():
    for line in (HERE / "gates.tsv").read_text().splitlines():
        if line and not line.startswith("#"):
            bench, row, gate, meaning = line.split("\t")
            how, limit = gate.split()
            yield bench, re.compile(row), how, float(limit), meaning


def verdicts(bench, line):
    """ "<= 1.35: 1.21, holds" for each gate that the line fits."""
    for of, row, how, limit, _ in gates():
        found = row.search(line) if of == bench else None
        if found:
            figure = float(found.group(1))
            holds = figure <= limit if how == "<=" else figure >= limit
            yield f"{found.group(1)} {how} {limit:g}: " + ("holds" if holds else "**misses**"), holds


def columns(line):
    """The row's name, its figure, and what stands beside it (peer, ratio, spread)."""
    line = re.sub(r"^(\w+) +(?=\d+ x )", r"\1 ", re.sub(r" +x +", " x ", line.strip()))  # f32 64 x 64 x 64
    name, _, rest = line.partition("  ") if "  " in line else line.partition(": ")
    figure, beside = (re.split(r", |   +|  ", rest.strip(), maxsplit=1) + [""])[:2]
    return [part.strip().replace("|", "\\|") for part in (name.rstrip(":"), figure, beside)]


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    flags = set(re.search(r"flags\s*: (.*)|$", text).group(1).split() if "flags" in text else ())
    return f"{model.group(1) if model else os.uname().machine}, {os.cpu_count()} cores; {', '.join(f for f in INTERESTING if f in flags)}"


def page(results):
    git = lambda *command: subprocess.run(["git", "-C", ROOT, *command], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    seen, tables = [], []
    for name, lines, note, load in results:
        rows = []
        for line in filter(str.strip, lines):
            judged = list(verdicts(name, line))
            seen += [(name, line, holds) for _, holds in judged]
            rows.append("| " + " | ".join([*columns(line), "; ".join(text for text, _ in judged)]) + " |")
        tables += ["", f"## {name}", "", f"Load average before it: {load:.1f}." if lines else "", *([f"This bench {note}."] if note else []), ""]
        if rows:
            tables += ["| row | figure | peer or limit, ratio, spread | gate |", "|---|---|---|---|", *rows]
    busy = max((load for _, _, _, load in results), default=0) > os.cpu_count() / 2
    held, missed = sum(holds for *_, holds in seen), [row for row in seen if not row[2]]
    unmeasured = [f"{bench}: {meaning}" for bench, row, _, _, meaning in gates()
                  if not any(bench == name and row.search(line) for name, line, _ in seen)]
    return "\n".join([
        "# Results of the benchmarks", "", "Written by `./dev bench`; the gates are in `gates.tsv`. Ratios are from one run and are what counts; absolute figures drift.", "",
        f"- machine: {machine()}", f"- date: {time.strftime('%Y-%m-%d', time.gmtime())}", f"- commit: {git('rev-parse', '--short', 'HEAD')}{changed}",
        "- other work on the machine: " + ("**yes**: the load averages below are more than half of the cores. Latencies, two devices at once and whatever "
                                           "shares the memory are worse than on a quiet machine" if busy else "hardly any"),
        "", f"{held} rows hold their gate, {len(missed)} miss it."
        + ("" if not missed else " Missed:\n\n" + "\n".join(f"- {name}: {' '.join(line.split())}" for name, line, _ in missed)),
        *(["", "Not measured: " + "; ".join(unmeasured) + "."] if unmeasured else []), *tables, ""])


def main():
    names = sys.argv[1:]
    results = list(measure(names))
    if not names:
        (HERE / "RESULTS.md").write_text(re.sub(r"\n{3,}", "\n\n", page(results)))
        print(f"written: {(HERE / 'RESULTS.md').relative_to(ROOT)}")


main()
