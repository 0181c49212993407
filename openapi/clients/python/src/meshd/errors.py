"""Error, the base of what this package raises, and how a problem document of the server becomes one."""

from __future__ import annotations

from typing import Any, ClassVar


class Error(Exception):
    """A request that the server refused, or that did not reach it.

    Each code of the server (`/docs/errors`) has a subclass, `meshd.NotFound` for `not_found`. `str()` gives the detail,
    the line of the program with a caret where the error has one, and the hint.
    """

    code: str = "error"
    hint: str = ""
    _by_code: ClassVar[dict[str, type[Error]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "code" in vars(cls):
            Error._by_code[cls.code] = cls

    def __init__(
        self, detail: str, *, status: int = 0, problem: dict[str, Any] | None = None, text: str | None = None
    ) -> None:
        super().__init__(detail)
        problem = problem or {}
        #: What is wrong with this request, and what was expected.
        self.detail = detail
        #: HTTP status; 0 where no answer came.
        self.status = status
        #: All mistakes that were found: objects with pointer, detail and, in a program's text, line and column.
        self.errors: list[dict[str, Any]] = list(problem.get("errors") or [])
        #: Id of the request, as in the server's log.
        self.instance: str = problem.get("instance", "")
        #: Where the answer says to look instead, such as the job that a repeated request has begun; else "".
        self.location: str = ""
        #: JSON Pointer to the first mistake in the request; "" where there is no place.
        self.pointer: str = self.errors[0].get("pointer", "") if self.errors else ""
        placed = next((entry for entry in self.errors if entry.get("line")), {})
        #: Line of the program's text, from 1; None where the error is none of a text.
        self.line: int | None = placed.get("line")
        self.column: int | None = placed.get("column")
        #: The line of the program's text.
        self.source: str | None = _line_of(text, self.line)
        if problem.get("hint"):
            self.hint = problem["hint"]
        if problem.get("code"):
            self.code = problem["code"]

    def __str__(self) -> str:
        out = self.detail if self.code == "error" else f"{self.code}: {self.detail}"
        if self.source is not None and self.source.strip() not in out:
            out += "\n" + _with_caret(self.source, self.line or 0, self.column)
        if self.hint and self.hint not in out:
            out += f"\nhint: {self.hint}"
        return out


class ClientError(Error):
    """What went wrong on this side: no server was asked, or none answered."""


class ConnectionFailed(ClientError):
    """The server cannot be reached, or went away before it answered and the request could not be repeated."""

    code = "connection_failed"


class TimedOut(ClientError):
    """No answer within the timeout; what was asked for may still happen."""

    code = "timed_out"


class CallbackFailed(ClientError):
    """A Python function that a program called has raised; `__cause__` is its exception."""

    code = "callback_failed"


def from_problem(status: int, problem: dict[str, Any], text: str | None = None) -> Error:
    """The error that a problem document says; a code that this package does not know is an Error."""
    kind = Error._by_code.get(str(problem.get("code")), Error)
    return kind(str(problem.get("detail") or problem.get("title") or status), status=status, problem=problem, text=text)


def of_code(code: str, detail: str, text: str | None = None) -> Error:
    """The error of a failed job, of which the server keeps code and detail."""
    return from_problem(0, {"code": code, "detail": detail}, text)


def _line_of(text: str | None, line: int | None) -> str | None:
    if text is None or line is None:
        return None
    lines = text.split("\n")
    return lines[line - 1] if 0 < line <= len(lines) else None


def _with_caret(source: str, line: int, column: int | None, width: int = 160) -> str:
    """The line, cut around the column where it is long, and a caret below the column."""
    at = (column or 1) - 1
    start = max(0, at - width // 2)
    shown = source[start : start + width].expandtabs(1)
    margin = f"{line:>6} | "
    out = margin + ("..." if start else "") + shown
    if column is not None:
        out += "\n" + " " * (len(margin) + (3 if start else 0) + at - start) + "^"
    return out
