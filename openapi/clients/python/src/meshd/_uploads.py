"""Bodies that a lost connection does not send back to their beginning: the IETF's resumable uploads
(draft-ietf-httpbis-resumable-upload, interop version 8)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import errors
from ._transport import Answer, Transport, pause_of
from .errors_by_code import NotFound, UploadCompleted, UploadInUse, UploadOffsetMismatch

#: Bodies from this size on are sent so: the server writes what has come once more when all of it is there.
RESUMED_BYTES = 64 << 20

Buffer = bytes | memoryview


def size_of(body: Sequence[Buffer]) -> int:
    return sum(len(part) for part in body)


def behind(body: Sequence[Buffer], offset: int) -> list[Buffer]:
    """What follows the first bytes, without a copy."""
    out: list[Buffer] = []
    for part in body:
        if offset < len(part):
            out.append(memoryview(part)[offset:])
        offset = max(0, offset - len(part))
    return out


def upload(
    transport: Transport,
    method: str,
    path: str,
    *,
    query: Iterable[tuple[str, Any]],
    body: Sequence[Buffer],
    headers: Mapping[str, str],
) -> Answer:
    """The answer to the request. Each time the connection is lost the server is asked how far it is, and the rest
    follows: `retries` times without a byte more in between."""
    size = size_of(body)
    begun = {**headers, "Upload-Complete": "?0", "Upload-Length": str(size)}
    # Should its answer be lost it is sent again; the upload that nobody knows of expires.
    where = transport.request(method, path, query=query, body=b"", headers=begun).headers["Location"]
    offset, fruitless = 0, 0
    while True:
        fields = {
            **transport.settings.headers,
            "Content-Type": "application/partial-upload",
            "Upload-Offset": str(offset),
            "Upload-Complete": "?1",
        }
        try:
            return transport.request("PATCH", where, body=behind(body, offset), headers=fields, is_repeatable=False)
        except (errors.ConnectionFailed, UploadInUse, UploadOffsetMismatch) as error:
            if fruitless > transport.settings.retries:
                raise
            lost = error
        time.sleep(pause_of(fruitless, None))
        found = _state(transport, where)
        if found["complete"]:
            return _answer_that_was_lost(transport, where, found, lost)
        fruitless = fruitless + 1 if found["offset"] == offset else 0
        offset = found["offset"]


def _state(transport: Transport, where: str) -> dict[str, Any]:
    """How far it is. A server that is just ending it says so after 10 s, as long as that takes."""
    while True:
        try:
            found: dict[str, Any] = transport.json("GET", where)
            return found
        except UploadInUse:
            time.sleep(1)


def _answer_that_was_lost(transport: Transport, where: str, found: dict[str, Any], lost: Exception) -> Answer:
    """The upload has ended, and its answer did not arrive: what it has made tells the same."""
    result = found.get("result")
    if result is None:
        raise UploadCompleted(
            f"{where} is complete, and its answer was lost; look for what it has made", status=400
        ) from lost
    try:
        return transport.request("GET", result)
    except NotFound:
        raise lost from None
