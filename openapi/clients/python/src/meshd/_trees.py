"""Trees of arrays as names below a prefix, and back: what a checkpoint is on the server."""

from __future__ import annotations

import json
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from . import _jax

#: The name, below the prefix, of the tree's structure: JSON as an array of bytes.
STRUCTURE = "__tree__"


def _joined(path: tuple[str, ...]) -> str:
    return "/".join(urllib.parse.quote(part, safe=" ,:;@+()[]") or "%" for part in path) or "%"


def flatten(tree: Any) -> tuple[dict[str, Any], Any]:
    """Leaves by name, and the structure as JSON: null for None, lists with their kind first, objects, names; of typed
    keys the implementation and the name."""
    leaves: dict[str, Any] = {}

    def visit(node: Any, path: tuple[str, ...]) -> Any:
        if node is None:
            return None
        if type(node) is dict:
            if not all(isinstance(key, str) for key in node):
                raise TypeError(f"keys of a checkpoint's dicts are strings, got {list(node)!r}")
            return {"dict": {key: visit(node[key], (*path, key)) for key in node}}
        if type(node) in (list, tuple):
            return {type(node).__name__: [visit(each, (*path, str(i))) for i, each in enumerate(node)]}
        registered = _children(node)
        if registered is not None:
            # Its class is the reader's to know (`like`); here are its children.
            return {"other": {key: visit(child, (*path, key)) for key, child in registered.items()}}
        name = _joined(path)
        leaves[name] = node
        kind = _jax.kind_of_key(node)
        return name if kind is None else {"key": {kind: name}}

    return leaves, visit(tree, ())


def _children(node: Any) -> dict[str, Any] | None:
    """The children of a node that JAX knows how to take apart; None for a leaf."""
    jax = sys.modules.get("jax")
    if jax is None or jax.tree_util.all_leaves([node]):
        return None
    found, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda each: each is not node)
    return {_key(path[0]): child for path, child in found}


def _key(entry: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)


def encode(structure: Any) -> bytes:
    return json.dumps(structure, separators=(",", ":"), ensure_ascii=False).encode()


def build(structure: Any, leaf: Callable[[str], Any]) -> Any:
    """The tree of a structure. Raises TypeError for nodes of classes: `like` is needed for them."""
    if structure is None:
        return None
    if isinstance(structure, str):
        return leaf(structure)
    ((kind, inner),) = structure.items()
    if kind == "dict":
        return {key: build(child, leaf) for key, child in inner.items()}
    if kind == "key":
        ((implementation, name),) = inner.items()
        return _jax.as_key(leaf(name), implementation)
    if kind in ("list", "tuple"):
        children = [build(child, leaf) for child in inner]
        return tuple(children) if kind == "tuple" else children
    raise TypeError("the checkpoint has nodes of classes that it does not name: load(prefix, like=a tree of them)")


def build_like(like: Any, leaf: Callable[[str], Any]) -> Any:
    """The tree that has this one's structure, and leaves by their names."""
    names, structure = flatten(like)
    if not any("other" in each for each in _nodes(structure)):
        return build(structure, leaf)
    import jax

    kinds = {name: _jax.kind_of_key(value) for name, value in names.items()}
    by_id = {id(value): name for name, value in names.items()}

    def found(value: Any) -> Any:
        name = by_id[id(value)]
        kind = kinds[name]
        return leaf(name) if kind is None else _jax.as_key(leaf(name), kind)

    return jax.tree_util.tree_map(found, like)


def _nodes(structure: Any) -> list[Mapping[str, Any]]:
    if not isinstance(structure, dict):
        return []
    ((kind, inner),) = structure.items()
    if kind == "key":
        return [structure]
    children = inner.values() if isinstance(inner, dict) else inner
    return [structure, *(node for child in children for node in _nodes(child))]
