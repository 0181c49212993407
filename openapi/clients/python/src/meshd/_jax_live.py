"""Lowering that gives callbacks without results one, so that the server waits for each of their calls.

A callback that gives nothing back is an entry of the log: its function is called when the run is over. Where it has
to be called while the program runs (between calls of functions that do give something back, or on request), its custom
call gets a boolean result that nothing uses, and the server asks for it as for any other. JAX lets a lowering bring
its own rules for primitives; the rules here emit what JAX 0.10.2's own would, with that result. `parameters()` is None
where a version of JAX has other inner names.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np


@functools.cache
def parameters() -> Any:
    """What `Traced.lower(_private_parameters=...)` takes."""
    try:
        from jax._src import callback as callbacks
        from jax._src import debugging
        from jax._src.interpreters import mlir

        rules = (
            (callbacks.io_callback_p, callbacks.io_callback_lowering),
            (debugging.debug_callback_p, debugging.debug_callback_lowering),
            (debugging.debug_print_p, debugging.debug_print_lowering_rule),
        )
        return mlir.LoweringParameters(
            override_lowering_rules=tuple((primitive, _rule(primitive, own)) for primitive, own in rules)
        )
    except (ImportError, AttributeError, TypeError):
        return None


def _rule(primitive: Any, own: Any) -> Any:
    from jax._src import callback as callbacks
    from jax._src import core, effects
    from jax._src.interpreters import mlir

    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        if params.get("result_avals") or params.get("partitioned"):
            return own(ctx, *args, **params)
        answer = core.ShapedArray((), np.dtype(bool))
        try:
            place = callbacks._callback_op_sharding(ctx.module_context.axis_context, params.get("sharding"), [answer])
        except NotImplementedError:  # partly manual: JAX gathers first, by primitives that come here again
            return own(ctx, *args, **params)

        def reply(*values: Any) -> tuple[np.bool_]:
            primitive.impl(*values, **params)
            return (np.True_,)

        effect = _effect(params)
        ordered = effect is not None and effects.ordered_effects.contains(effect)
        token = ctx.tokens_in.get(effect) if ordered else None
        _, token, _ = callbacks.emit_python_callback(
            dataclasses.replace(ctx, avals_out=[answer]),
            reply,
            token,
            list(args),
            ctx.avals_in,
            [answer],
            has_side_effect=True,
            returns_token=ordered,
            sharding=place,
        )
        if ordered:
            ctx.set_tokens_out(ctx.tokens_in.update_tokens(mlir.TokenSet({effect: token})))
        return []

    return lower


def _effect(params: dict[str, Any]) -> Any:
    """The effect of an equation by its parameters."""
    from jax._src import callback as callbacks
    from jax._src import debugging

    if "effect" in params:
        return params["effect"]
    if not params.get("ordered"):
        return None
    return callbacks._OrderedIOEffect if "result_avals" in params else debugging.ordered_debug_effect
