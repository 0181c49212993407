"""A user's script: `mypy --strict` accepts it (openapi/clients/check_package.sh)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import meshd


def main() -> None:
    m = meshd.connect("http://127.0.0.1:8080", token=None)
    mesh = m.mesh((4, 2), ("x", "y"))

    @m.jit
    def twice(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return x * 2

    @m.jit(donate_argnums=0, keep=True)
    def step(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return x * 2

    assert_type(twice, meshd.Jitted)
    assert_type(step, meshd.Jitted)
    assert_type(m.jit(keep=True), Callable[[Callable[..., Any]], meshd.Jitted])
    a = m.put(np.ones((8, 2)), mesh.sharding("x"), name="a")
    assert_type(a, meshd.Array)
    print(len(a), float(a[0, 0]), a.sharding.spec if a.sharding else None, [shard.shape for shard in a.shards])
    kept: meshd.Array = step(a)
    out: npt.NDArray[np.float32] = m.run(twice, kept)
    with m.session("typed", effects="streaming") as s:
        job = s.submit(twice, out)
        assert_type(job, meshd.Job)
        job.result(timeout=3)
        for effect in s.effects(follow=False):
            print(effect.sequence, effect.values[0].sum())
    try:
        m.load("run7/step100")
    except meshd.NotFound as error:
        print(error.pointer.upper(), error.line or 0)
    with m.using(deadline=3) as quick:
        assert_type(quick, meshd.Client)


if __name__ == "__main__":
    main()
