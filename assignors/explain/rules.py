"""What each strategy does, in a sentence or two: the first words of an explanation."""

from __future__ import annotations

from assignors.strategy import JAVA, Library, Release

_CLIENTS = {
    "range": (
        "range cuts each topic by itself: its partitions, in order, into one block per subscriber; where they do not "
        "divide evenly, the first subscribers get one more."
    ),
    "roundrobin": (
        "roundrobin deals the partitions of all topics, topic by topic, one by one to the members in turn; a member "
        "that does not subscribe to the topic is passed over, and the next topic goes on where the last one ended."
    ),
    "sticky": (
        "sticky lets members keep what they had as far as the balance allows, deals the rest, and moves partitions "
        "only where that makes the group more even."
    ),
    "cooperative-sticky": (
        "cooperative-sticky lets members keep what they had as far as the balance allows and deals the rest; what "
        "another member still reads is not assigned in this generation but in the next."
    ),
}

_SERVER = {
    "server-range": (
        "The broker's range cuts each topic by itself: its partitions, in order, into one block per subscriber; where "
        "they do not divide evenly, the first subscribers get one more."
    ),
    "server-uniform": (
        "The broker's uniform lets members keep the partitions of their previous target as far as the balance allows, "
        "gives the free ones to members with few, and moves some where members subscribe to different topics."
    ),
}

_RANGE_RACKS: dict[str, Release] = {JAVA: (3, 5), "librdkafka": (2, 2)}

# The brokers' range kept earlier targets in its first release.
_SERVER_RANGE_KEEPS: Release = (3, 9)


def rule_of_client(strategy: str, library: Library, *, in_racks: bool) -> str:
    """The rule of a leader's strategy."""
    said = _CLIENTS.get(strategy, f"{strategy}.")
    since = _RANGE_RACKS.get(library.name)
    if strategy == "range" and in_racks and since is not None and (library.release or since) >= since:
        said += " Racks change who gets which partitions of a topic, not how many."
    return said


def rule_of_other_client(strategy: str, library: Library) -> str:
    """The rule of a client with an algorithm of its own."""
    return f"{library.name} has its own algorithm under the name {strategy}: docs/assignors.md says what it does."


def rule_of_server(strategy: str, release: Release | None) -> str:
    """The rule of a broker's assignor."""
    if strategy == "server-range" and release is not None and release < _SERVER_RANGE_KEEPS:
        return (
            "The broker's range, in this release, lets members keep up to their share of each topic, the lowest "
            "partitions first, and gives the rest in order to those below it."
        )
    return _SERVER[strategy]
