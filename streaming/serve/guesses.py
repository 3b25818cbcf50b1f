"""Slows down who guesses a login, without locking out who knows it.

Many people and scrapers may come from one address (NAT, a proxy), and any of them may be wrong for days: a scraper with
an old token. So nobody is refused because of others. Only different wrong logins count as guesses, and where an address
has made many, its logins are checked a second later, a few at a time.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["Guesses"]

# Ten different wrong logins a minute: people mistype less often, and nobody guesses a secret so.
_MOST = 10
_WINDOW_S: Final = 60.0

# From then on an address gets this many checks per pause: 20 a second guess nothing that deserves the name of a secret,
# and a scraper's timeout is longer than a second.
_PAUSE_S: Final = 1.0
_MOST_WAITING: Final = 20

# Addresses that are remembered; the oldest is forgotten first.
_MOST_ADDRESSES = 10_000


class Guesses:
    """Wrong logins of the last minute by address."""

    def __init__(
        self,
        steady: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Begin with none.

        Args:
            steady: A clock in seconds.
            pause: Waits for some seconds.
        """
        self._steady = steady
        self._pause = pause
        self._wrong: OrderedDict[str, dict[bytes, float]] = OrderedDict()
        self._waiting: Counter[str] = Counter()
        # (Wrong logins may be nearly right: only digests are kept, which nobody can look up.)
        self._key = secrets.token_bytes(32)

    async def may_try(self, address: str) -> bool:
        """Wait where the address has guessed a lot; False where too many already wait."""
        if len(self._recent(address)) < _MOST:
            return True
        if self._waiting[address] >= _MOST_WAITING:
            return False
        self._waiting[address] += 1
        try:
            await self._pause(_PAUSE_S)
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
        return True

    def was_wrong(self, address: str, login: str) -> None:
        """Take note of a wrong login; the same one again is no further guess."""
        recent = self._recent(address)
        if len(recent) < _MOST:
            recent[hmac.digest(self._key, login.encode("utf-8", "surrogateescape"), "sha256")] = self._steady()
        self._wrong[address] = recent
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)

    def _recent(self, address: str) -> dict[bytes, float]:
        since = self._steady() - _WINDOW_S
        return {digest: at for digest, at in self._wrong.get(address, {}).items() if at > since}
