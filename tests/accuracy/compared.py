"""One row of the table: our and XLA's largest and mean error against the exact values, and who is closer."""
import base64
import json
import urllib.request

import ml_dtypes
import numpy as np

MARGIN = 1.05  # of two errors that are this near to one another neither is the larger


def meshd(url, text, args):
    """The results of a program on a running server."""
    body = {"program": {"format": "stablehlo", "text": text}, "results": {"encoding": "base64"},
            "arguments": [{"dtype": str(x.dtype), "shape": list(x.shape), "base64": base64.b64encode(x.tobytes()).decode()} for x in args]}
    request = urllib.request.Request(url + "/v1/run", json.dumps(body).encode(), {"Content-Type": "application/json"})
    return [decoded(each) for each in json.load(urllib.request.urlopen(request))["results"]]


def decoded(value):
    dtype = np.dtype(getattr(ml_dtypes, value["dtype"], None) or value["dtype"])
    return np.frombuffer(base64.b64decode(value["base64"]), dtype).reshape(value["shape"])


class Table:
    """Rows as they come, in Markdown. `worse` are those in which XLA is closer and that `known` has no reason for."""

    def __init__(self, unit, known, margin=MARGIN):
        self.unit, self.known, self.margin = unit, known, margin
        self.count, self.exact, self.worse = 0, 0, []
        print("| op | type | meshd largest | mean | XLA largest | mean | closer |\n|---|---|--:|--:|--:|--:|---|", flush=True)

    def add(self, name, dtype, ours, theirs):
        """`ours` and `theirs` are errors, value by value."""
        self.count += 1
        (our_max, their_max), (our_mean, their_mean) = ((f(np.asarray(ours, float)), f(np.asarray(theirs, float))) for f in (np.max, np.mean))
        if our_max == their_max == 0:
            self.exact += 1
            return
        # Not `>`: an error that is no number is no small one.
        is_worse = not (our_max <= their_max * self.margin and our_mean <= their_mean * self.margin)
        known = name in self.known or f"{name} {dtype}" in self.known
        if is_worse and not known:
            self.worse.append(f"{name} {dtype}")
        closer = ("XLA (known)" if known else "XLA") if is_worse else ""
        print(f"| {name} | {dtype} | {our_max:.3g} | {our_mean:.3g} | {their_max:.3g} | {their_mean:.3g} | {closer} |", flush=True)

    def finish(self):
        """A sentence and the reasons; true where all is well."""
        print(f"\n{self.count} rows in {self.unit}, {self.exact} of them exact on both sides and not shown. "
              f"XLA is closer without a known reason in: {', '.join(self.worse) or 'none'}.", flush=True)
        for row, reason in self.known.items():
            print(f"- {row}: {reason}")
        print(flush=True)
        return not self.worse
