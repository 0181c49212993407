"""Jitted: what `@m.jit` makes of a function."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import _jax

if TYPE_CHECKING:
    from ._client import Client
    from ._programs import Program


class Jitted:
    """A function that runs on the server. `.jitted` is JAX's, which runs here.

    Called by a function that JAX traces, `m.run`'s and `jax.grad`'s too, it is part of that one, as functions of
    `jax.jit` are."""

    def __init__(self, client: Client, jitted: Any, keep: bool | str) -> None:
        self._client, self.jitted, self.keep = client, jitted, keep
        functools.update_wrapper(self, jitted, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        if _jax.are_traced((args, kwargs)):
            return self.jitted(*args, **kwargs)
        return self._client._run(self, args, kwargs, self.keep, None)

    def program(self, /, *args: Any, **kwargs: Any) -> Program:
        """The program of a call with such arguments; `.text` is its StableHLO."""
        return self._client.program(self, *args, **kwargs)

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """What such a call would do: shardings, collectives, memory."""
        return self._client.explain(self, *args, **kwargs)

    def __repr__(self) -> str:
        return f"meshd.jit({getattr(self.jitted, '__name__', self.jitted)})"
