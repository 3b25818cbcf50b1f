"""Fields of a decoded JSON line, with type checks; each error is one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INT32 = 1 << 31
"""Kafka's partition numbers and generations are signed 32-bit integers, below this."""

# Kafka's strings have an int16 length (real topics have up to 249 bytes).
_LONGEST_NAME = (1 << 15) - 1

# Rates of any unit are far below; the sum of a million of these is far below the largest float, 1.8e308.
_MOST_LOAD = 1e100


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


def a_partition(given: object, what: str) -> tuple[str, int]:
    """Require [topic, partition] with an int32, and with a name that a record can hold."""
    match given:
        case [str(topic), int(partition)] if type(partition) is int and -INT32 <= partition < INT32:
            if _can_be_written(topic):
                return topic, partition
    message = f"{what} is {given!r}: give [topic, partition], a name of up to {_LONGEST_NAME:,} bytes and an int32."
    raise BadLine(message)


def _can_be_written(name: str) -> bool:
    try:
        return len(name.encode()) <= _LONGEST_NAME
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def loads(given: object, what: str, count: int) -> list[float]:
    """Require a list of so many numbers, from 0 up to some that can be added."""
    numbers = a_list(given, what)
    if len(numbers) != count:
        message = f"Expected {count} numbers for {what}, got {len(numbers)}."
        raise BadLine(message)
    for number in numbers:
        if type(number) not in (int, float) or not 0 <= number <= _MOST_LOAD:
            message = f"A number of {what} is {number!r}: give numbers from 0 to {_MOST_LOAD:g}."
            raise BadLine(message)
    return numbers
