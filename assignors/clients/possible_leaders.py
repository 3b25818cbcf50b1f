"""The libraries that may have led a group, in the order in which to try them, and what they may have known beside it.

The leader's library and release are not recorded. Its subscription to the selected protocol is: version and user data
show which of the libraries below may have written it, and client ids and member ids, which anyone can set, which of
these is likelier. Nobody can list all libraries in the world, nor all that their users configure (sarama writes any
user data that it is given), so the bytes exclude nobody: every other behaviour is tried behind the likely ones.

Source: the code of Java 2.4 to 4.2, librdkafka 0.9.5 to 2.15, kafka-python 0.9 to 3.0.12, aiokafka 0.14, sarama 1.26 to
1.60.1, franz-go 1.0 to 1.22, and of the clients of `assignors.clients.other_clients`. kafka-go, @platformatic/kafka,
sarama-cluster and kafkajs before 2.2.2 write version 1 with the body of version 0; sarama writes the user data that the
application gives it, null, empty or any bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from assignors.model import Group, Recompute
from assignors.registry import find_strategy, strategy_named
from assignors.strategy import JAVA, KAFKA_PYTHON, Era, Library, Release

# The newest subscription version that we have seen in a source; Java reads higher ones, and may write them some day.
_NEWEST_VERSION = 3

_NULL, _EMPTY, _FOUR_BYTES, _MORE = "null", "empty", "four bytes", "more"


@dataclass(frozen=True, slots=True)
class _Writer:
    """A library in a span of releases: `since` inclusive, `before` exclusive, None is open."""

    library: str
    since: Release | None = None
    before: Release | None = None


_SARAMA = _Writer("sarama")
_SARAMA_WITH_OWNED = _Writer("sarama", since=(1, 60, 1))
_BODY_OF_VERSION_0 = (_Writer("kafka-go"), _Writer("sarama-cluster"))

# (version, user data) -> writers, for strategies without user data of their own.
_EAGER: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (0, _NULL): (
        _Writer(JAVA, before=(2, 4)),
        _Writer("sarama"),  # any release, by its configured Version
        _Writer("franz-go", since=(1, 0), before=(1, 14, 1)),
        *_BODY_OF_VERSION_0,
        _Writer("kafka-node"),
        _Writer("krafka"),
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
    # Other bytes are an application's, so anybody's; sarama's documentation offers them.
    **{(version, kind): (_SARAMA,) for version in (0, 1, 2) for kind in (_FOUR_BYTES, _MORE)},
}

# The same for kafkajs' RoundRobinAssigner; its first releases passed an application's user data on.
_KAFKAJS: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (version, kind): (_Writer("kafkajs"),) for version in (0, 1) for kind in (_NULL, _EMPTY, _FOUR_BYTES, _MORE)
}

# The same for cooperative-sticky, whose user data differs between libraries.
_COOPERATIVE: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (1, _NULL): (_Writer(JAVA, since=(2, 4), before=(2, 8, 1)), _SARAMA_WITH_OWNED),
    (1, _FOUR_BYTES): (_Writer(JAVA, since=(2, 8, 1), before=(3, 4)), _SARAMA_WITH_OWNED),
    (1, _EMPTY): (_Writer("kafka-python", since=(3,)), _Writer("librdkafka", since=(1, 6), before=(2, 2))),
    (1, _MORE): (
        _Writer("librdkafka", since=(1, 6), before=(2, 2)),
        _Writer("franz-go", since=(1, 0), before=(1, 14, 1)),
    ),
    (2, _NULL): (_Writer("krafka"),),
    (2, _FOUR_BYTES): (_SARAMA_WITH_OWNED,),
    (3, _NULL): (_Writer("krafka"),),
    # franz-go's first join has no partitions: an empty array.
    (3, _FOUR_BYTES): (_Writer(JAVA, since=(3, 4)), _Writer("franz-go", since=(1, 14, 1))),
    (3, _EMPTY): (_Writer("librdkafka", since=(2, 2)), _Writer("franz-go", since=(1, 14, 1))),
    (3, _MORE): (_Writer("librdkafka", since=(2, 2)), _Writer("franz-go", since=(1, 14, 1))),
}

# The same for sticky: empty, or partitions and generation in at least eight bytes.
_STICKY: dict[tuple[int, str], tuple[_Writer, ...]] = {
    (0, _NULL): (_Writer(JAVA, before=(2, 4)), _SARAMA),
    (0, _EMPTY): (_Writer("kafka-python", since=(2,)), _Writer("aiokafka"), _SARAMA),
    (0, _FOUR_BYTES): (_Writer("franz-go", since=(1, 0), before=(1, 14, 1)), _SARAMA),
    (0, _MORE): (
        _Writer(JAVA, before=(2, 4)),
        _Writer("kafka-python", since=(2,)),
        _Writer("aiokafka"),
        _Writer("sarama"),
        _Writer("franz-go", since=(1, 0), before=(1, 14, 1)),
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


@dataclass(frozen=True, slots=True)
class Leaders:
    """The libraries to try, one per behaviour of the strategy, each in the first release of that behaviour.

    Attributes:
        likely: Those that write such a subscription, likelier ones first, in the first release that does. Some cannot
            be computed: `assign` raises CannotTell for them.
        others: All further behaviours.
    """

    likely: tuple[Library, ...]
    others: tuple[Library, ...]


def possible_leaders(
    strategy: str,
    *,
    version: int | None = None,
    user_data: bytes | None = None,
    client_id: str = "",
    member_id: str = "",
) -> Leaders:
    """List the libraries that may have led a group, in the order in which to try them.

    Args:
        strategy: Selected protocol; an unregistered name gives nobody.
        version: Version of the leader's subscription bytes; None if they are not known, so that nobody is likely.
        user_data: Its user data; None means null, which differs from empty.
        client_id: The leader's client id.
        member_id: The leader's member id, which begins with its client id and replaces it if there is none.
    """
    kind = _user_data_kind(user_data)
    hint = client_id or member_id
    hinted = next((library for start, library in _CLIENT_IDS if hint.startswith(start)), "")
    return _leaders(strategy, version, kind, hinted)


def declared_leaders(strategy: str, clients: Iterable[Library]) -> tuple[Library, ...]:
    """The behaviours of these libraries, all releases of one that has none; a library without an era stays as it is."""
    registered = find_strategy(strategy)
    found: dict[Recompute | Library, Library] = {}
    for client in clients:
        eras = [
            era
            for era in (registered.eras if registered is not None else ())
            if era.library == client.name and (client.release is None or era.holds(client.release))
        ]
        for era in eras:
            found.setdefault(era.recompute, Library(era.library, client.release or era.since))
        if not eras:
            found.setdefault(client, client)
    return tuple(found.values())


@lru_cache(maxsize=1024)
def _leaders(strategy: str, version: int | None, kind: str, hinted: str) -> Leaders:
    if find_strategy(strategy) is None:
        return Leaders((), ())
    # A stable sort: writers stay in the table's order but for the hinted one, and it precedes the grouping by
    # behaviour, so that the hinted one of two libraries that behave alike names the candidate.
    table = _TABLES.get(strategy, _EAGER)
    writers = table.get((min(version, _NEWEST_VERSION), kind), ()) if version is not None else ()
    likely = dict(_one_per_behaviour(strategy, sorted(writers, key=lambda writer: writer.library != hinted)))
    others: dict[Recompute, Library] = {}
    for era in strategy_named(strategy).eras:
        if era.recompute not in likely:
            others.setdefault(era.recompute, Library(era.library, era.since))
    return Leaders(tuple(likely.values()), tuple(others.values()))


def _one_per_behaviour(strategy: str, writers: Iterable[_Writer]) -> Iterable[tuple[Recompute | _Writer, Library]]:
    eras = strategy_named(strategy).eras
    seen: set[Recompute] = set()
    for writer in writers:
        overlapping = [era for era in eras if era.library == writer.library and _overlap(era, writer)]
        if not overlapping:
            yield writer, Library(writer.library, writer.since)
        for era in overlapping:
            if era.recompute not in seen:
                seen.add(era.recompute)
                yield era.recompute, Library(writer.library, max(era.since, writer.since or era.since))


def _overlap(era: Era, writer: _Writer) -> bool:
    era_ends_first = era.before is not None and writer.since is not None and era.before <= writer.since
    writer_ends_first = writer.before is not None and writer.before <= era.since
    return not era_ends_first and not writer_ends_first


def _user_data_kind(user_data: bytes | None) -> str:
    if user_data is None:
        return _NULL
    return {0: _EMPTY, 4: _FOUR_BYTES}.get(len(user_data), _MORE)


# `ConsumerCoordinator._perform_assignment` of kafka-python, all releases to 3.0.12, requests the metadata of the other
# members' topics and assigns without waiting for it; its log says "No partition metadata for topic". It may not know
# its own topics either: `poll` waits for metadata before it joins only with a subscription by pattern. It rejoins when
# the metadata has arrived. Java, librdkafka, aiokafka, sarama and franz-go wait for it, but in Java leaders this
# sometimes fails: `ConsumerNetworkClient.awaitMetadataUpdate` waits until the metadata's version has changed, and the
# answer to an earlier refresh changes it, too. In 39 of 4,000 decisions of real groups (3.7.1 and 4.3.1, a
# `metadata.max.age.ms` of 3 s, a loaded machine) topics were missing that the leader itself did not subscribe to; its
# own topics can be missing in the same way when it changes its subscription. This is too rare to expect of a leader, so
# Java is not listed here, but it is not drift either (streaming/groups/classic/recompute.py).
_DOES_NOT_WAIT = frozenset({KAFKA_PYTHON})

_KNOWS_OTHER_TOPICS = frozenset({KAFKA_PYTHON, "aiokafka"})

_KEEPING = frozenset({"sticky", "cooperative-sticky"})

# From this release on `AbstractStickyAssignor.maxGeneration` is kept between decisions.
_REMEMBERS = (3, 0)

# Above every generation that a record can contain.
_ABOVE_ALL = (1 << 31) - 1


def topics_without_metadata(library: Library, subscribed: Iterable[str]) -> frozenset[str]:
    """Existing subscribed topics that a leader of this library may not have known: unassigned, which is not drift.

    The leader treats such a topic as one without partitions: its result is that of a group whose `partitions_per_topic`
    lacks it. A topic is missing completely or not at all.

    Args:
        library: A candidate for the leader's library.
        subscribed: Topics with at least one subscriber.
    """
    if library.name not in _DOES_NOT_WAIT:
        return frozenset()
    return frozenset(subscribed)


def with_hidden_inputs(strategy: str, group: Group, library: Library) -> Iterator[tuple[Group, str | None]]:
    """Yield other groups that a leader of this library may have seen, consistent with the record.

    A Java leader may remember a generation above all of the members', for instance if the group was deleted and created
    again while the leader's process lived on. This is rare, so an assignment that fits only then is not attributed to
    that leader. A leader of kafka-python or aiokafka may know topics that nobody subscribes to, which is common.

    Returns:
        Groups to try besides the given one, each with the reason why a fit does not prove the candidate; None where it
        does.
    """
    if strategy not in _KEEPING:
        return
    if library.name == JAVA and (library.release is None or library.release >= _REMEMBERS):
        reason = "it fits only a leader that remembers a higher generation than any member's"
        yield replace(group, remembered_generation=_ABOVE_ALL), reason
    if library.name in _KNOWS_OTHER_TOPICS:
        yield replace(group, other_topics_known=True), None
