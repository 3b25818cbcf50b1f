"""The libraries that may have led a group: all those consistent with the bytes of the leader's own subscription.

The leader's library and release are not recorded. The leader's subscription to the selected protocol is recorded; its
version, and whether its user data is null or empty, show which libraries can have written it. Client ids and member ids
can be set by anyone: they only move likely candidates to the front.

Source: the code of Java 2.4 to 4.2, librdkafka 0.9.5 to 2.15, kafka-python 0.9 to 3.1, aiokafka 0.14, sarama 1.26 to
1.60.1, franz-go 1.0 to 1.22, and of the clients of `assignors.clients.other_clients`. kafka-go, @platformatic/kafka,
sarama-cluster and kafkajs before 2.2.2 write version 1 with the body of version 0; sarama writes the user data that the
application gives it, null, empty or any bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from assignors.registry import find_strategy, strategy_named
from assignors.strategy import JAVA, UNKNOWN, Era, Library, Recompute, Release

# The newest subscription version that we have seen in a source; Java reads higher ones, and may write them some day.
_NEWEST_VERSION = 3

_NULL, _EMPTY, _FOUR_BYTES, _MORE = "null", "empty", "four bytes", "more"


@dataclass(frozen=True, slots=True)
class _Writer:
    """A library in a span of releases: `since` inclusive, `before` exclusive, None is open."""

    library: str
    since: Release | None = None
    before: Release | None = None


_ANYONE = _Writer(UNKNOWN)
_SARAMA = _Writer("sarama")
_SARAMA_WITH_OWNED = _Writer("sarama", since=(1, 60, 1))
_BODY_OF_VERSION_0 = (_Writer("kafka-go"), _Writer("sarama-cluster"))

# (version, user data) -> writers, for strategies without user data of their own.
_EAGER: dict[tuple[int, str], tuple[_Writer, ...]] = {
    # Any small library writes version 0 with null user data: nothing can be excluded.
    (0, _NULL): (
        _Writer(JAVA, before=(2, 4)),
        _Writer("sarama"),  # any release, by its configured Version
        _Writer("franz-go", before=(1, 14, 1)),
        *_BODY_OF_VERSION_0,
        _Writer("kafka-node"),
        _Writer("krafka"),
        _ANYONE,
    ),
    (0, _EMPTY): (
        _Writer("kafka-python"),
        _Writer("aiokafka"),
        _Writer("librdkafka", before=(1, 6)),
        _SARAMA,
    ),
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(3, 4)), _SARAMA_WITH_OWNED, *_BODY_OF_VERSION_0),
    (1, _EMPTY): (_Writer("librdkafka", since=(1, 6), before=(2, 2)), _SARAMA),
    (2, _NULL): (_SARAMA_WITH_OWNED,),
    (2, _EMPTY): (_SARAMA_WITH_OWNED,),
    (3, _NULL): (_Writer(JAVA, since=(3, 4)), _Writer("franz-go", since=(1, 14, 1)), _Writer("krafka")),
    (3, _EMPTY): (_Writer("librdkafka", since=(2, 2)),),
    # (Other bytes are an application's, so anybody's; sarama's documentation offers them.)
    **{(version, kind): (_SARAMA, _ANYONE) for version in (0, 1, 2) for kind in (_FOUR_BYTES, _MORE)},
}

# The same for kafkajs' RoundRobinAssigner; its first releases passed an application's user data on.
_KAFKAJS: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (version, kind): (_Writer("kafkajs"), _ANYONE) for version in (0, 1) for kind in (_NULL, _EMPTY, _FOUR_BYTES, _MORE)
}

# The same for cooperative-sticky, whose user data differs between libraries.
_COOPERATIVE: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(2, 8, 1)), _SARAMA_WITH_OWNED),
    (1, _FOUR_BYTES): (_Writer(JAVA, since=(2, 8, 1), before=(3, 4)), _SARAMA_WITH_OWNED),
    (1, _EMPTY): (_Writer("kafka-python", since=(3,)), _Writer("librdkafka", since=(1, 6), before=(2, 2))),
    (1, _MORE): (
        _Writer("librdkafka", since=(1, 6), before=(2, 2)),
        _Writer("franz-go", before=(1, 14, 1)),
    ),
    (2, _NULL): (_Writer("krafka"),),
    (2, _FOUR_BYTES): (_SARAMA_WITH_OWNED,),
    (3, _NULL): (_Writer("krafka"),),
    # (franz-go's first join has no partitions: an empty array.)
    (3, _FOUR_BYTES): (_Writer(JAVA, since=(3, 4)), _Writer("franz-go", since=(1, 14, 1))),
    (3, _EMPTY): (_Writer("librdkafka", since=(2, 2)), _Writer("franz-go", since=(1, 14, 1))),
    (3, _MORE): (_Writer("librdkafka", since=(2, 2)), _Writer("franz-go", since=(1, 14, 1))),
}

# The same for sticky: empty, or partitions and generation in at least eight bytes.
_STICKY: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (0, _NULL): (_Writer(JAVA, before=(2, 4)), _SARAMA, _ANYONE),
    (0, _EMPTY): (_Writer("kafka-python", since=(2,)), _Writer("aiokafka"), _SARAMA),
    (0, _FOUR_BYTES): (_Writer("franz-go", before=(1, 14, 1)), _SARAMA),
    (0, _MORE): (
        _Writer(JAVA, before=(2, 4)),
        _Writer("kafka-python", since=(2,)),
        _Writer("aiokafka"),
        _Writer("sarama"),
        _Writer("franz-go", before=(1, 14, 1)),
    ),
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(3, 4)), _SARAMA_WITH_OWNED),
    (1, _EMPTY): (_SARAMA_WITH_OWNED,),
    (1, _MORE): (_Writer(JAVA, since=(2, 4), before=(3, 4)), _SARAMA_WITH_OWNED),
    (2, _NULL): (_SARAMA_WITH_OWNED,),
    (2, _EMPTY): (_SARAMA_WITH_OWNED,),
    (2, _MORE): (_SARAMA_WITH_OWNED,),
    (3, _NULL): (_Writer(JAVA, since=(3, 4)),),
    (3, _FOUR_BYTES): (_Writer("franz-go", since=(1, 14, 1)),),
    (3, _MORE): (_Writer(JAVA, since=(3, 4)), _Writer("franz-go", since=(1, 14, 1))),
}

_TABLES = {"sticky": _STICKY, "cooperative-sticky": _COOPERATIVE, "RoundRobinAssigner": _KAFKAJS}

# Prefixes of default client ids. They only affect the order, so a Java client with the client id "sarama" is not
# reported as drifted.
_CLIENT_IDS = (
    ("consumer-", JAVA),
    ("rdkafka", "librdkafka"),
    ("kafka-python-", "kafka-python"),
    ("aiokafka-", "aiokafka"),
    ("sarama", "sarama"),
    ("kgo", "franz-go"),
    ("kafkajs", "kafkajs"),
    ("kafka-node", "kafka-node"),
    ("kafka-php", "kafka-php"),
    ("krafka", "krafka"),
)


def recognise(
    strategy: str,
    *,
    version: int | None,
    user_data: bytes | None,
    client_id: str = "",
    member_id: str = "",
) -> tuple[Library, ...]:
    """List the libraries that can have written the leader's subscription, one per behaviour of the strategy.

    A result is drift only if every candidate was computed (or ruled out by LeaderWouldFail) and none matches. The
    result also contains candidates that cannot be computed, "unknown" included; `assign` raises CannotTell for them.

    Args:
        strategy: Selected protocol; an unregistered name gives ("unknown",).
        version: Version of the leader's subscription bytes; None if they were not decoded.
        user_data: Its user data; None means null, which differs from empty.
        client_id: The leader's client id; moves candidates to the front, excludes none.
        member_id: The leader's member id, which begins with its client id and replaces it if there is none.

    Returns:
        Candidates, likelier ones first. Each has the first release of its era that the bytes allow.
    """
    kind = _user_data_kind(user_data)
    hint = client_id or member_id
    likely = next((library for start, library in _CLIENT_IDS if hint.startswith(start)), "")
    return _candidates(strategy, version, kind, likely)


@lru_cache(maxsize=1024)
def _candidates(strategy: str, version: int | None, kind: str, likely: str) -> tuple[Library, ...]:
    if version is None or find_strategy(strategy) is None:
        return (Library(UNKNOWN),)
    # A stable sort: unlikely candidates stay in the table's order, and those that cannot be computed come last. Sorting
    # precedes the grouping by behaviour, so that the likely one of two libraries that behave alike names the candidate.
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
