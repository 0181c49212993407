"""Lowering of callbacks on meshes whose devices only the server has.

JAX refuses to lower a callback under an AbstractMesh, since `sharding=` of a callback names a device. One without it
needs no device to be lowered, so for those the check is answered here. The answer holds for the thread that lowers and
nothing else; where a version of JAX has other inner names, its refusal stands.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
REFUSAL = "require devices to be present during lowering"


@contextlib.contextmanager
def callbacks_need_no_devices() -> Iterator[None]:
    """While it holds, callbacks without `sharding=` are lowered by this thread on meshes without devices."""
    from jax._src import callback, core, dispatch

    devices_needed = dispatch.jaxpr_has_prim_requiring_devices
    this_thread = threading.get_ident()
    free = (callback.io_callback_p, callback.pure_callback_p)

    def needs(jaxpr: Any) -> bool:
        for equation in jaxpr.eqns:
            known = equation.primitive in dispatch.prim_requires_devices_during_lowering
            if known and (equation.primitive not in free or equation.params["sharding"] is not None):
                return True
        return any(needs(each) for each in core.subjaxprs(jaxpr))

    def answer(jaxpr: Any) -> bool:
        return needs(jaxpr) if threading.get_ident() == this_thread else bool(devices_needed(jaxpr))

    with _lock:
        dispatch.jaxpr_has_prim_requiring_devices = answer
        try:
            yield
        finally:
            dispatch.jaxpr_has_prim_requiring_devices = devices_needed


def lower(traced: Any, **options: Any) -> Any:
    """`traced.lower`, with callbacks also where JAX asks for devices."""
    __tracebackhide__ = True
    try:
        return traced.lower(**options)
    except ValueError as error:
        if REFUSAL not in str(error):
            raise
        try:
            with callbacks_need_no_devices():
                return traced.lower(**options)
        except (ImportError, AttributeError):
            raise error from None
