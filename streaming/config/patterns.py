"""Patterns of names: a literal name, or a regular expression between slashes ("/^payments-.*/", searched as it is)."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator


def fits(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern.

    Raises:
        ValueError: The regular expression does not compile.
    """
    matcher = _matcher(pattern)
    if isinstance(matcher, str):
        return name == matcher
    return matcher.search(name) is not None


@cache
def _matcher(pattern: str) -> re.Pattern[str] | str:
    if len(pattern) < 2 or not pattern[0] == pattern[-1] == "/":
        return pattern
    try:
        return re.compile(pattern[1:-1], re.DOTALL)
    except re.error as error:
        message = f"the regular expression {pattern} does not compile: {error}"
        raise ValueError(message) from error


def _compiled(pattern: str) -> str:
    _matcher(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_compiled)]
"""A pattern in the settings; one that does not compile is refused."""
