"""Reading the fields of a decoded JSON line, each refused in one sentence when it is not what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["BadLine", "a_list", "a_text", "a_whole_number", "an_object", "optional_text", "required"]


class BadLine(Exception):
    """The line is no question that can be answered; its text says why."""


def required(holder: Mapping[str, Any], key: str, where: str = "the line") -> object:
    """The value under a key that must be there."""
    if key not in holder:
        message = f"There is no {key!r} in {where}: add it."
        raise BadLine(message)
    return holder[key]


def an_object(given: object, what: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(given, dict):
        message = f"What stands for {what} is no JSON object."
        raise BadLine(message)
    return given


def a_list(given: object, what: str) -> list[Any]:
    """A JSON list."""
    if not isinstance(given, list):
        message = f"What stands for {what} is no list."
        raise BadLine(message)
    return given


def a_text(given: object, what: str) -> str:
    """A text."""
    if not isinstance(given, str):
        message = f"What stands for {what} is {given!r}: give a text."
        raise BadLine(message)
    return given


def optional_text(given: object, what: str) -> str | None:
    """A text or null."""
    return None if given is None else a_text(given, what)


def a_whole_number(given: object, what: str) -> int:
    """A whole number; true and false are none."""
    if type(given) is not int:
        message = f"What stands for {what} is {given!r}: give a whole number."
        raise BadLine(message)
    return given
