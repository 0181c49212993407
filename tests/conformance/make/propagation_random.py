"""Random modules: does a running meshd give every value the sharding that Shardy gives it, and move no more bytes?

    python make/propagation_random.py --url http://127.0.0.1:8080 [--seed 1] [--count 200] [--nesting 0.25] [--keep DIR]

A module has two to six ops of the common kinds over a few annotated arguments, on one of several meshes; with --nesting some of them are
calls (of shared functions, nested), loops, branches and manual computations with further ops inside. Annotations have open and closed
dimensions, parts of axes, priorities, replicated and unreduced axes. Texts that Shardy does not take are left out. What differs is
named with the seed that makes it again; with --keep it is made smaller and kept as a case in DIR. Modules that move more where Shardy's
sum leaves something out are counted by the reason, and so are those that move less. Needs JAX, as propagation.py does.

    python make/propagation_random.py --record propagation [--seed 1] [--count 60] [FILE...]

writes the modules (or those of FILEs, as --keep left them) with Shardy's answers as cases of propagation/random; it needs no server.
"""
import argparse
import collections
import http.client
import json
import pathlib
import re
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))
import explain  # noqa: E402
from propagation_case import lines_of, record  # noqa: E402
from propagation_passes import Refused, Shardy, sharding_parts  # noqa: E402
from propagation_random_nested import Program  # noqa: E402
from random_choices import Choices, smaller  # noqa: E402


WRONG = ("differs", "moves more", "refused")


class Server:
    def __init__(self, url):
        split = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(split.hostname, split.port or 80, timeout=120)

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        data = answer.read()
        return answer.status, json.loads(data) if data else {}

    def explain(self, text):
        status, made = self.post("/v1/programs", {"format": "stablehlo", "text": text})
        if status >= 300:
            return status, made
        answer = self.post(f"/v1/programs/{made['id']}:explain", {})
        self.delete(f"/v1/programs/{made['id']}")
        return answer

    def delete(self, path):
        self.connection.request("DELETE", path)
        self.connection.getresponse().read()
        self.connection.close()  # Shardy may take longer for the next text than a server keeps one that is idle


def made_as(function, value):
    """(result, sharding) of a value: what propagation gave it, and what its op gives where that is resharded."""
    for copy in value.get("copies", [value]):
        yield from enumerate(copy["shardings"])
    for move in function.get("collectives", []):
        if move["of"].get("line") == value["line"] and "region" not in move["of"]:
            yield move["of"]["result"], move["from"]


def not_counted(case, text):
    """Why Shardy's bytes are not all that has to be moved, or None."""
    if "no_reshards" in case:
        return "more: Shardy places no reshards"
    if "propagation_barrier" in text:
        return "more: across a barrier Shardy counts nothing"
    if any("before_rounding" in function for function in case["functions"]):
        return "more: Shardy cuts uneven ends back"
    for function in case["functions"]:
        for value in function["values"]:
            found = re.search(r"->\((.*?)\) \{.*permutation=\{(.*?)\}", value.get("rule", ""))
            if not found:
                continue
            factors = set(found[2].split(", "))
            results = [dims.split(", ") for dims in re.findall(r"\[(.*?)\]", found[1])]
            for result, sharding in made_as(function, value):
                cut = sharding_parts(sharding)[1] if sharding else []
                if any(axes and factors & set(re.findall(r"[a-z](?:_\d+)?", dim)) for dim, axes in zip(results[result], cut)):
                    return "more: Shardy does not count rows of neighbours"
    return None


class Judge:
    def __init__(self, shardy, server):
        self.shardy, self.server = shardy, server

    def judge(self, text):
        """(case, kind of difference or None, words). Raises Refused where Shardy does not take the text."""
        case = self.shardy.run(text)
        case.pop("texts", None)
        status, answer = self.server.explain(text)
        if status >= 300:
            return case, "refused", f"HTTP {status}: {answer.get('detail')}"
        problem, moved, allowed = explain.compare(case, answer)
        if problem:
            return case, "differs", problem
        words = f"{moved} bytes, Shardy {allowed}"
        if moved > allowed:
            return case, not_counted(case, text) or "moves more", words
        return case, "moves less" if moved < allowed else None, words

    def shrunk(self, choices, kind, nesting):
        """The smallest module found that differs in the same way."""
        def is_bad(candidate):
            try:
                return self.judge(Program(candidate, nesting).text())[1] == kind
            except (Refused, RuntimeError):
                return False
        return Program(Choices(given=smaller(choices.made, is_bad)), nesting).text()


def record_all(options):
    with Shardy(timeout=15) as shardy:
        seeds = [] if options.files else range(options.seed, options.seed + options.count)
        texts = {path.stem: path.read_text() for path in options.files}
        for name, text in {**texts, **{f"seed_{seed}": Program(Choices(seed), options.nesting).text() for seed in seeds}}.items():
            try:
                record(shardy, "random", name, text, "", options.record)
            except RuntimeError as error:  # a text that ends the process of the passes
                print(f"{name}: {error}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--nesting", type=float, default=0.25)
    parser.add_argument("--keep", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=20, help="of these, how many are made smaller")
    parser.add_argument("--record", metavar="ROOT", type=pathlib.Path)
    parser.add_argument("files", metavar="FILE", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    if options.record:
        return record_all(options)
    found, kept, refusals = collections.Counter(), 0, collections.Counter()
    with Shardy(timeout=15) as shardy:
        judge = Judge(shardy, Server(options.url))
        for seed in range(options.seed, options.seed + options.count):
            choices = Choices(seed)
            text = Program(choices, options.nesting).text()
            try:
                case, kind, words = judge.judge(text)
            except (Refused, RuntimeError) as error:
                found["not taken by Shardy"] += 1
                refusals[str(error).strip().splitlines()[-1][:90]] += 1
                continue
            found[kind or "same"] += 1
            if kind not in WRONG:
                continue
            print(f"{kind.upper()} seed {seed}: {words}", flush=True)
            if options.keep and kept < options.most:
                kept += 1
                text = judge.shrunk(choices, kind, options.nesting)
                case, kind, words = judge.judge(text)
                print(f"  smaller: {kind}: {words}", flush=True)
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"seed_{seed}.mlir").write_text(text)
                (options.keep / f"seed_{seed}.json").write_text(lines_of({"name": f"seed_{seed}", **case}) + "\n")
    print(", ".join(f"{kind}: {count}" for kind, count in sorted(found.items())))
    for words, count in refusals.most_common(8):
        print(f"  not taken {count} times: {words}")
    return 1 if any(found[kind] for kind in WRONG) or not found["same"] else 0


if __name__ == "__main__":
    sys.exit(main())
