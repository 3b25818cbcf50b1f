"""Patterns of names: a literal name, or a regular expression between slashes ("/^payments-.*/", searched as it is)."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_MATCHERS: dict[str, re.Pattern[str] | str] = {}


def fits(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern.

    Raises:
        ValueError: The regular expression does not compile.
    """
    matcher = _matcher(pattern)
    return name == matcher if isinstance(matcher, str) else matcher.search(name) is not None


def _matcher(pattern: str) -> re.Pattern[str] | str:
    found = _MATCHERS.get(pattern)
    if found is None:
        if len(pattern) > 1 and pattern[0] == pattern[-1] == "/":
            try:
                found = re.compile(pattern[1:-1], re.DOTALL)
            except re.error as error:
                message = f"the regular expression {pattern} does not compile: {error}"
                raise ValueError(message) from error
        else:
            found = pattern
        _MATCHERS[pattern] = found
    return found


def _compiled(pattern: str) -> str:
    _matcher(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_compiled)]
"""A pattern in the settings; one that does not compile is refused."""
