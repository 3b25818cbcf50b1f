"""Fields of a decoded JSON line, with type checks; each error is one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class BadLine(Exception):
    """The line cannot be answered; the text says why."""


def required(holder: Mapping[str, Any], key: str, where: str = "the line") -> object:
    """The value of a required key."""
    if key not in holder:
        message = f"There is no {key!r} in {where}: add it."
        raise BadLine(message)
    return holder[key]


def an_object(given: object, what: str) -> dict[str, Any]:
    """Require a JSON object."""
    if not isinstance(given, dict):
        message = f"Expected a JSON object for {what}."
        raise BadLine(message)
    return given


def a_list(given: object, what: str) -> list[Any]:
    """Require a JSON list."""
    if not isinstance(given, list):
        message = f"Expected a list for {what}."
        raise BadLine(message)
    return given


def a_text(given: object, what: str) -> str:
    """Require a text."""
    if not isinstance(given, str):
        message = f"Expected a text for {what}, got {given!r}."
        raise BadLine(message)
    return given


def optional_text(given: object, what: str) -> str | None:
    """Require a text or null."""
    return None if given is None else a_text(given, what)


def a_whole_number(given: object, what: str) -> int:
    """Require a whole number; true and false are not."""
    if type(given) is not int:
        message = f"Expected a whole number for {what}, got {given!r}."
        raise BadLine(message)
    return given
