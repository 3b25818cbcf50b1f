"""Takes secrets out of the lines of the doctor's report."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from streaming.probe import CheckResult

HIDDEN = "***"

# Environment variables with such names hold secrets, no matter which program they are for.
_SECRET_NAMES = re.compile(
    r"SECRET|PASSWORD|PASSWD|TOKEN|CREDENTIAL|ACCESS_KEY|ACCOUNT_KEY|API_KEY|TARGETS|PROXY_URL|SAS"
)

# Shorter values would hide ordinary words of the report, and protect nothing.
_SHORTEST = 4

_FILES = frozenset({"sasl_password_file", "ssl_password_file", "proxy_url_file"})
_LONGEST_FILE = 65_536

# A part of an URL may be an ordinary word, such as "hook" or "services"; keys are longer.
_SHORTEST_PART = 8


class Redactor:
    """Takes secrets out of texts: those of the settings, of files that they name, and of the environment."""

    def __init__(self, settings: BaseModel | None, more: Iterable[str] = ()) -> None:
        """Collect the secrets.

        Args:
            settings: All settings; None where they could not be read.
            more: Further secrets.
        """
        found = set(more)
        if settings is not None:
            found.update(_secrets_of(settings))
        found.update(value for name, value in os.environ.items() if _SECRET_NAMES.search(name.upper()))
        found.update([part for one in found for part in _parts_of(one)])
        # Longest first: one may be a part of another, such as a password in an URL.
        self._secrets = sorted((one for one in found if len(one) >= _SHORTEST), key=len, reverse=True)

    def clean(self, line: CheckResult) -> CheckResult:
        """The line without secrets."""
        return replace(line, what=self.text(line.what), text=self.text(line.text))

    def text(self, text: str) -> str:
        """A text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        # Whatever stands before an "@" in an URL.
        return re.sub(r"([a-z][a-z0-9+.-]*://)[^/@\s]+@", rf"\1{HIDDEN}@", text)


def _content_of(path: Path | None) -> Iterator[str]:
    """What is in a file with a secret, as far as it can be read."""
    if path is not None:
        with suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as file:
            yield file.read(_LONGEST_FILE).strip()


def _parts_of(secret: str) -> Iterator[str]:
    """The parts of an URL that a message could quote alone: name, password, and what follows the host."""
    if "://" not in secret:
        return
    try:
        parts = urlsplit(secret)
        pieces = [parts.username, parts.password, *parts.path.split("/"), *re.split(r"[&=?]", parts.query)]
    except ValueError:
        return
    for piece in pieces:
        if piece and len(piece) >= _SHORTEST_PART:
            yield piece
            yield unquote(piece)


def _secrets_of(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            if name in _FILES:
                yield from _content_of(getattr(value, name))
            else:
                yield from _secrets_of(getattr(value, name))
    elif isinstance(value, dict):
        for one in value.values():
            yield from _secrets_of(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _secrets_of(one)
