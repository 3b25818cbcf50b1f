"""Which libraries may have led a group: all that the bytes of the leader's own subscription allow.

The leader's library and release are not recorded. What is recorded, the leader's subscription of the selected
protocol, shows by its version and by whether user data is null or empty who can have written it. Client ids and
member ids can be set by anyone: they only bring likely candidates forward.

Read from the sources of Java 2.4 to 4.2, librdkafka 0.9.5 to 2.15, kafka-python 0.9 to 3.1, aiokafka 0.14,
sarama 1.26 to 1.60.1, franz-go 1.0 to 1.21, kafka-go 0.4 (which writes version 1 with the body of version 0,
undecodable, so it never comes here).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from assignors.library import JAVA, UNKNOWN, Library, Release
from assignors.registry import known_strategies, strategy_named
from assignors.strategy import Era, Recompute

__all__ = ["recognise"]

# The newest version of the subscription that was read in a source; Java reads, and may one day write, higher.
_NEWEST_VERSION = 3

_NULL, _EMPTY, _FOUR_BYTES, _MORE = "null", "empty", "four bytes", "more"


@dataclass(frozen=True, slots=True)
class _Writer:
    """A library in a span of releases: since inclusive, before exclusive, None is open."""

    library: str
    since: Release | None = None
    before: Release | None = None


_ANYONE = _Writer(UNKNOWN)
_SARAMA_WITH_OWNED = _Writer("sarama", since=(1, 60, 1))

# (version, user data) -> writers, for the strategies that put nothing into the user data.
_EAGER: dict[tuple[int, str], tuple[_Writer, ...]] = {
    # Version 0 with null user data is what any small library writes: nothing can be excluded.
    (0, _NULL): (
        _Writer(JAVA, before=(2, 4)),
        _Writer("sarama"),  # any release, by its configured Version
        _Writer("franz-go", before=(1, 14, 1)),
        _ANYONE,
    ),
    (0, _EMPTY): (_Writer("kafka-python"), _Writer("aiokafka"), _Writer("librdkafka", before=(1, 6))),
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(3, 4)), _SARAMA_WITH_OWNED),
    (1, _EMPTY): (_Writer("librdkafka", since=(1, 6), before=(2, 2)),),
    (2, _NULL): (_SARAMA_WITH_OWNED,),
    (3, _NULL): (_Writer(JAVA, since=(3, 4)), _Writer("franz-go", since=(1, 14, 1))),
    (3, _EMPTY): (_Writer("librdkafka", since=(2, 2)),),
}

# The same for cooperative-sticky, whose user data differs by library.
_COOPERATIVE: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(2, 8, 1)),),
    (1, _FOUR_BYTES): (_Writer(JAVA, since=(2, 8, 1), before=(3, 4)), _SARAMA_WITH_OWNED),
    (1, _EMPTY): (_Writer("kafka-python", since=(3,)), _Writer("librdkafka", since=(1, 6), before=(2, 2))),
    (1, _MORE): (
        _Writer("librdkafka", since=(1, 6), before=(2, 2)),
        _Writer("franz-go", before=(1, 14, 1)),
    ),
    (2, _FOUR_BYTES): (_SARAMA_WITH_OWNED,),
    (3, _FOUR_BYTES): (_Writer(JAVA, since=(3, 4)),),
    (3, _EMPTY): (_Writer("librdkafka", since=(2, 2)), _Writer("franz-go", since=(1, 14, 1))),
    (3, _MORE): (_Writer("librdkafka", since=(2, 2)), _Writer("franz-go", since=(1, 14, 1))),
}

# The same for sticky: nothing, or the partitions and the generation, at least eight bytes.
_STICKY: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (0, _NULL): (_Writer(JAVA, before=(2, 4)), _Writer("sarama"), _ANYONE),
    (0, _EMPTY): (_Writer("kafka-python", since=(2,)), _Writer("aiokafka")),
    (0, _MORE): (
        _Writer(JAVA, before=(2, 4)),
        _Writer("kafka-python", since=(2,)),
        _Writer("aiokafka"),
        _Writer("sarama"),
        _Writer("franz-go", before=(1, 14, 1)),
    ),
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(3, 4)), _SARAMA_WITH_OWNED),
    (1, _MORE): (_Writer(JAVA, since=(2, 4), before=(3, 4)), _SARAMA_WITH_OWNED),
    (2, _NULL): (_SARAMA_WITH_OWNED,),
    (2, _MORE): (_SARAMA_WITH_OWNED,),
    (3, _NULL): (_Writer(JAVA, since=(3, 4)),),
    (3, _MORE): (_Writer(JAVA, since=(3, 4)), _Writer("franz-go", since=(1, 14, 1))),
}

_TABLES = {"sticky": _STICKY, "cooperative-sticky": _COOPERATIVE}

# How default client ids begin. Only an order: whoever sets a client id of "sarama" on a Java client is not told
# that it drifted.
_CLIENT_IDS = (
    ("consumer-", JAVA),
    ("rdkafka", "librdkafka"),
    ("kafka-python-", "kafka-python"),
    ("aiokafka-", "aiokafka"),
    ("sarama", "sarama"),
    ("kgo", "franz-go"),
)


def recognise(
    strategy: str,
    *,
    version: int | None,
    user_data: bytes | None,
    client_id: str = "",
    member_id: str = "",
) -> tuple[Library, ...]:
    """Name every library that can have written the leader's subscription, one per behaviour of the strategy.

    A result can be called drift only if every candidate was computed (LeaderWouldFail included: such a
    candidate is ruled out) and none fits. Candidates that cannot be computed are in the result too, "unknown"
    included; `assign` raises CannotTell for them.

    Args:
        strategy: Selected protocol; a name that is not registered gives ("unknown",).
        version: Version of the leader's subscription bytes; None when they were not decoded.
        user_data: User data in them; None when null, which is not the same as empty.
        client_id: The leader's client id; moves candidates forward, excludes none.
        member_id: The leader's member id, which begins with its client id; used as that when there is none.

    Returns:
        Candidates, the likelier first. Each library's release is the first of its era that the bytes allow.
    """
    kind = _user_data_kind(user_data)
    hint = client_id or member_id
    likely = next((library for start, library in _CLIENT_IDS if hint.startswith(start)), "")
    return _candidates(strategy, version, kind, likely)


@lru_cache(maxsize=1024)
def _candidates(strategy: str, version: int | None, kind: str, likely: str) -> tuple[Library, ...]:
    if version is None or strategy not in known_strategies():
        return (Library(UNKNOWN),)
    # Stable: among the unlikely the table's order stays, and what cannot be computed comes last. Before behaviours
    # are told apart, so that the likely one of two libraries that behave alike gives the candidate its name.
    writers = sorted(
        _writers(strategy, version, kind),
        key=lambda writer: (writer.library == UNKNOWN, writer.library != likely),
    )
    return tuple(_one_per_behaviour(strategy, writers))


def _writers(strategy: str, version: int, kind: str) -> tuple[_Writer, ...]:
    known = min(version, _NEWEST_VERSION)
    writers = _TABLES.get(strategy, _EAGER).get((known, kind), ())
    if not writers or version > _NEWEST_VERSION:
        writers = (*writers, _ANYONE)
    return writers


def _one_per_behaviour(strategy: str, writers: Iterable[_Writer]) -> Iterable[Library]:
    eras = strategy_named(strategy).eras
    seen: set[Recompute] = set()
    result: list[Library] = []
    for writer in writers:
        overlapping = [era for era in eras if era.library == writer.library and _overlap(era, writer)]
        if not overlapping:
            result.append(Library(writer.library, writer.since))
        for era in overlapping:
            if era.recompute not in seen:
                seen.add(era.recompute)
                result.append(Library(writer.library, max(era.since, writer.since or era.since)))
    return result


def _overlap(era: Era, writer: _Writer) -> bool:
    era_ends_first = era.before is not None and writer.since is not None and era.before <= writer.since
    writer_ends_first = writer.before is not None and writer.before <= era.since
    return not era_ends_first and not writer_ends_first


def _user_data_kind(user_data: bytes | None) -> str:
    if user_data is None:
        return _NULL
    return {0: _EMPTY, 4: _FOUR_BYTES}.get(len(user_data), _MORE)
