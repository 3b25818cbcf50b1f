"""The broker's assignors by name and release. A new one needs its own file and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assignors.assignment import Assignment
from assignors.brokers.model import ServerGroup
from assignors.brokers.range import cut_ranges
from assignors.brokers.range_sticky import cut_ranges_keeping_the_target
from assignors.brokers.uniform import uniform_before_4_0, uniform_before_4_0_1, uniform_since_4_0_1
from assignors.exceptions import CannotTell, UnknownLibrary, UnknownStrategy
from assignors.library import JAVA, Library, Release, parse_library
from assignors.work import spend

__all__ = ["ServerEra", "assign_on_server", "known_server_strategies"]


@dataclass(frozen=True, slots=True)
class ServerEra:
    """A span of broker releases in which an assignor behaves the same.

    Attributes:
        recompute: The behaviour.
        since: First release of the era.
        before: First release after it; None if it lasts.
    """

    recompute: Callable[[ServerGroup], Assignment]
    since: Release
    before: Release | None = None

    def holds(self, release: Release | None) -> bool:
        """Whether the release is in this era; None means the newest release, so the last era."""
        if release is None:
            return self.before is None
        return release >= self.since and (self.before is None or release < self.before)


_ERAS = {
    "server-range": (
        ServerEra(cut_ranges_keeping_the_target, since=(3, 8), before=(3, 9)),
        ServerEra(cut_ranges, since=(3, 9)),
    ),
    "server-uniform": (
        ServerEra(uniform_before_4_0, since=(3, 8), before=(4, 0)),
        ServerEra(uniform_before_4_0_1, since=(4, 0), before=(4, 0, 1)),
        ServerEra(uniform_since_4_0_1, since=(4, 0, 1)),
    ),
}


def known_server_strategies() -> tuple[str, ...]:
    """Names of the broker's assignors, with the prefix "server-" to distinguish them from the clients'."""
    return tuple(_ERAS)


def assign_on_server(strategy: str, group: ServerGroup, release: Library | str | None = None) -> Assignment:
    """Recompute the target assignment that a group coordinator computed.

    Args:
        strategy: "server-uniform" or "server-range".
        group: Members with their previous targets, and topics, at the decision.
        release: The broker's release, as a value or as text ("4.0.1"); None means the newest.

    Returns:
        Partitions by topic id (as Kafka prints it) by member id; every member is included. Compare with `same`.

    Raises:
        UnknownStrategy: There is no such assignor.
        UnknownLibrary: The release cannot be parsed, or belongs to another library.
        CannotTell: The result cannot be recomputed exactly; `reason` says why. `TooMuchWork` if the work would exceed a
            limit (`assignors.work`).
        LeaderWouldFail: The assignor throws on this input, so it did not compute a target from it.
    """
    eras = _ERAS.get(strategy)
    if eras is None:
        message = f"Server strategy {strategy!r} is not known: use one of {', '.join(_ERAS)}."
        raise UnknownStrategy(message)
    broker = parse_library(release) if isinstance(release, str) else release or Library(JAVA)
    if broker.name != JAVA:
        message = f"{broker} is not a Kafka release: give one such as 4.0.1."
        raise UnknownLibrary(message)
    for era in eras:
        if era.holds(broker.release):
            spend(group.least_work)
            return era.recompute(group)
    reason = "the consumer protocol's assignors before 3.8 (early access) are not recomputed"
    raise CannotTell(reason)
