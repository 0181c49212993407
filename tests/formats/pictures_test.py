#!/usr/bin/env python3
"""Pictures of shardings against what lies where, for 1,000 random meshes, shapes and specs, uneven and empty ones included.

Each picture (text and SVG, of /v1/shardings:resolve and of a stored array) is read back into blocks and their devices, and compared
with the shards that the server lists and hands out, and with a placement that is computed here."""
import http.client
import itertools
import json
import re
import sys
import xml.etree.ElementTree as xml

import numpy as np

from file_formats import RAW, Meshd

TRIPLES = 1000
DEVICES = 16
ROUNDS_OF_DATA = 4  # every so many triples the shards' bytes are fetched too


class Client:
    """One connection that stays."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, method, path, body=None, headers=None, status=200):
        headers = dict(headers or {})
        if isinstance(body, dict):
            body, headers["Content-Type"] = json.dumps(body), "application/json"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        data = answer.read()
        assert answer.status in (status, 200), (path, answer.status, data[:600])
        return json.loads(data) if "json" in (answer.getheader("Content-Type") or "") else data


def random_triple(rng):
    """axes [(name, size)], device ids, shape, spec (a list of axis names for each dimension)."""
    while True:
        sizes = [int(n) for n in rng.integers(1, 6, int(rng.integers(1, 4)))]
        if np.prod(sizes) <= DEVICES:
            break
    axes = list(zip("xyz", sizes))
    devices = [int(d) for d in rng.permutation(DEVICES)[:np.prod(sizes)]]
    rank = int(rng.integers(0, 6))
    shape = [int(n) for n in rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 12], rank, p=[.04, .1, .12, .12, .12, .12, .12, .1, .1, .06])]
    spec = [[] for _ in shape]
    for name, _ in [axes[i] for i in rng.permutation(len(axes))]:
        at = int(rng.integers(0, rank + 1))
        if at < rank:
            spec[at].append(name)
    return axes, devices, shape, spec


def placement(axes, devices, shape, spec):
    """device -> its index range in each dimension; written down from the definition, one position of the mesh at a time."""
    sizes = dict(axes)
    out = {}
    for position, device in zip(itertools.product(*(range(size) for _, size in axes)), devices):
        at = dict(zip(sizes, position))
        index = []
        for size, names in zip(shape, spec):
            part, parts = 0, 1
            for name in names:
                part, parts = part * sizes[name] + at[name], parts * sizes[name]
            step = -(-size // parts)
            index.append((min(part * step, size), min((part + 1) * step, size)))
        out[device] = tuple(index)
    return out


def grid_of(axes, shape, spec):
    """Number of parts of each dimension."""
    return [int(np.prod([dict(axes)[name] for name in names], dtype=int)) for names in spec]


def read_text(picture):
    """[(title, rows of cells)], a cell a list of device ids."""
    panels, width = [], None
    for line in picture.splitlines():
        if line.startswith("["):
            panels.append((line, []))
            width = None
            continue
        if not panels:
            panels.append(("", []))
        assert width in (None, len(line)), f"ragged: {picture}"
        width = len(line)
        if line.startswith("|"):
            assert line.endswith("|")
            panels[-1][1].append([[int(word) for word in cell.split(",")] for cell in line[1:-1].split("|")])
        else:
            assert re.fullmatch(r"(\+-+)+\+", line), line
    return panels


def read_svg(picture):
    """The same panels from the places of the boxes, and what the boxes say of their ranges."""
    root = xml.fromstring(picture)
    name = lambda element: element.tag.rsplit("}", 1)[1]
    boxes, titles = [], []
    # What is not a box, its label or a panel's title: names, styles, the background and the legend.
    items = [item for item in root if name(item) not in ("title", "desc", "style", "g")]
    assert {name(item) for item in root} >= {"title", "desc", "style", "g"}, "named for screen readers, both colour schemes, a legend"
    width, height = int(root.get("width")), int(root.get("height"))
    while items:
        item = items.pop(0)
        if name(item) == "text":
            titles.append((int(item.get("y")), item.text))
            continue
        assert name(item) == "rect"
        x, y, w, h = (int(item.get(key)) for key in ("x", "y", "width", "height"))
        label = items.pop(0)
        assert name(label) == "text" and x < int(label.get("x")) < x + w and y < int(label.get("y")) < y + h, "the label stands in its box"
        assert 0 <= x and x + w <= width and 0 <= y and y + h <= height, "the box stands in the picture"
        assert all(x + w <= a or a + c <= x or y + h <= b or b + d <= y for a, b, c, d, _, _ in boxes[-40:]), "boxes do not overlap"
        ranges = [tuple(map(int, part.split(":"))) for part in item[0].text.split(", ")]
        assert float(label.get("font-size")) >= 2 and "dashed" in "".join(root.itertext())
        boxes.append((x, y, w, h, [int(word) for word in label.text.split(",")], ranges))
    panels, ranges = [], []
    for number, (_, title) in enumerate(titles or [(0, "")]):
        top = titles[number][0] if titles else -1
        bottom = titles[number + 1][0] if number + 1 < len(titles) else height
        mine = [box for box in boxes if top < box[1] < bottom]
        rows = [sorted(box for box in mine if box[1] == y) for y in sorted({box[1] for box in mine})]
        panels.append((title, [[box[4] for box in row] for row in rows]))
        to_scale([row[0][3] for row in rows], [row[0][5][0] for row in rows])
        to_scale([box[2] for box in rows[0]], [box[5][1] for box in rows[0]])
        ranges.append([[box[5] for box in row] for row in rows])
    return panels, ranges


def to_scale(sides, ranges):
    """Sides of boxes in one direction grow with the extents of their shards; those without elements, or with too few for a label, have the least side."""
    extents = [stop - start for start, stop in ranges]
    for side, extent in zip(sides, extents):
        assert abs(side - sides[0] * extent / max(1, extents[0])) <= 1 or extent < extents[0] and 14 <= side <= 30 or extents[0] == 0, (sides, extents)


def expected_panels(where, shape, parts):
    """What the pictures have to show: titles, devices by block, ranges by block."""
    blocks = {}
    for device, index in where.items():
        blocks.setdefault(index, []).append(device)
    steps = [-(-size // count) for size, count in zip(shape, parts)]
    span = lambda d, i: (min(i * steps[d], shape[d]), min((i + 1) * steps[d], shape[d]))
    rank = len(shape)
    panels, ranges = [], []
    for outer in itertools.product(*(range(count) for count in parts[:-2])):
        head = [span(d, i) for d, i in enumerate(outer)]
        rows, row_ranges = [], []
        for r in range(parts[-2] if rank >= 2 else 1):
            cells = [tuple(head) + ((span(rank - 2, r),) if rank >= 2 else ()) + ((span(rank - 1, c),) if rank >= 1 else ())
                     for c in range(parts[-1] if rank >= 1 else 1)]
            rows.append(cells)
            row_ranges.append([[cell[-2] if rank >= 2 else (0, 1), cell[-1] if rank >= 1 else (0, 1)] for cell in cells])
        panels.append(("[" + ", ".join(f"{a}:{b}" for a, b in head) + "]" if head else "", rows))
        ranges.append(row_ranges)
    return panels, ranges


def devices_by_block(axes, devices, shape, spec, parts):
    """Panels with the devices of each block. Blocks are told apart by part numbers: empty ones at the end have the same range."""
    sizes = dict(axes)
    holders = {}
    for position, device in zip(itertools.product(*(range(size) for _, size in axes)), devices):
        at = dict(zip(sizes, position))
        block = []
        for names in spec:
            part = 0
            for name in names:
                part = part * sizes[name] + at[name]
            block.append(part)
        holders.setdefault(tuple(block), []).append(device)
    rank = len(shape)
    return [[[holders[outer + ((r,) if rank >= 2 else ()) + ((c,) if rank >= 1 else ())] for c in range(parts[-1] if rank >= 1 else 1)]
             for r in range(parts[-2] if rank >= 2 else 1)] for outer in itertools.product(*(range(count) for count in parts[:-2]))]


def check(client, rng, number):
    axes, devices, shape, spec = random_triple(rng)
    where, parts = placement(axes, devices, shape, spec), grid_of(axes, shape, spec)
    panels, ranges = expected_panels(where, shape, parts)
    titles, held = [title for title, _ in panels], devices_by_block(axes, devices, shape, spec, parts)
    mesh = client.ask("POST", "/v1/meshes", {"axis_names": [name for name, _ in axes], "devices": np.reshape(devices, [n for _, n in axes]).tolist()}, status=201)["id"]

    resolved = client.ask("POST", "/v1/shardings:resolve", {"shape": shape, "mesh": mesh, "spec": spec})
    listed = {shard["device"]: tuple(map(tuple, shard["index"])) for shard in resolved["shards"]}
    assert listed == where, (axes, devices, shape, spec)
    shown = read_text(resolved["picture"])
    assert [title for title, _ in shown] == titles and [rows for _, rows in shown] == held, (resolved["picture"], held)

    values = np.arange(np.prod(shape, dtype=int), dtype=np.int16).reshape(shape)
    query = f"dtype=int16&shape={','.join(map(str, shape))}&mesh={mesh}&spec={','.join('.'.join(names) for names in spec)}"
    array = client.ask("POST", f"/v1/arrays?durability=memory&{query}", values.tobytes(), RAW, 201)["id"]
    shards = client.ask("GET", f"/v1/arrays/{array}/shards")["items"]
    assert {shard["device"]: tuple(map(tuple, shard["index"])) for shard in shards} == where and len(shards) == len(devices)
    assert client.ask("GET", f"/v1/arrays/{array}/sharding.txt").decode() == resolved["picture"]
    shown, shown_ranges = read_svg(client.ask("GET", f"/v1/arrays/{array}/sharding.svg").decode())
    assert [title for title, _ in shown] == titles and [rows for _, rows in shown] == held and shown_ranges == ranges, (axes, shape, spec)
    if number % ROUNDS_OF_DATA == 0:
        for panel, rows in enumerate(held):
            for r, row in enumerate(rows):
                for c, cell in enumerate(row):
                    block = values[tuple(slice(*pair) for pair in panels[panel][1][r][c])]
                    for device in cell:
                        assert client.ask("GET", f"/v1/arrays/{array}/shards/{device}") == block.tobytes(), (shape, spec, device)
    client.ask("DELETE", f"/v1/arrays/{array}", status=204)
    return len(devices), any(size % count for size, count in zip(shape, parts)), len(shape)


def main():
    rng = np.random.default_rng(13)
    with Meshd(sys.argv[1], "--devices", str(DEVICES)) as server:
        client = Client(server.port)
        seen = [check(client, rng, number) for number in range(TRIPLES)]
    uneven, ranks = sum(u for _, u, _ in seen), {rank for _, _, rank in seen}
    assert uneven > TRIPLES // 4 and ranks == set(range(6))
    print(f"{TRIPLES} pictures are right, {uneven} of them uneven, {sum(count for count, _, _ in seen)} shards")


main()
