"""How steps name members and partitions in a sentence: short, in order, and cut where a list would fill the screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assignors.assignment import PartitionId

# A sentence with more names than this is read by nobody; the rest is counted.
MOST_NAMES = 8

# A step's own list of members is cut here: more than this are counted, not named.
MOST_LINES = 12

# Foreign names may be long: an id of Kafka's clients has some 60 characters, which fits.
_LONGEST_NAME = 80


def name(text: str) -> str:
    """A foreign name within a sentence; an empty one is shown as quotes."""
    if not text or text.isspace():
        return repr(text)
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"


def one(partition: PartitionId) -> str:
    """A partition within a sentence: orders 3."""
    return f"{name(partition[0])} {partition[1]}"


def count(number: int, what: str) -> str:
    """A number with its noun: 1 partition, 1,200 partitions."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def names(listed: Sequence[str]) -> str:
    """Names one after the other; beyond `MOST_NAMES` only counted."""
    shown = ", ".join(map(name, listed[:MOST_NAMES]))
    left = len(listed) - MOST_NAMES
    return shown if left <= 0 else f"{shown} and {left:,} more"


def numbers(listed: Iterable[int]) -> str:
    """Numbers with runs joined: 0 to 4 as 0-4."""
    runs: list[list[int]] = []
    for number in sorted(set(listed)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return _cut([str(first) if first == last else f"{first}-{last}" for first, last in runs], ", ", " and ", "range")


def partition_names(listed: Iterable[PartitionId]) -> str:
    """Partitions, topic by topic: orders 0-4, 7; payments 2."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in listed:
        by_topic.setdefault(topic, []).append(number)
    return _cut([f"{name(topic)} {numbers(of_topic)}" for topic, of_topic in by_topic.items()], "; ", " and ", "topic")


def lines(by_member: Mapping[str, str], what: str = "member") -> str:
    """What each member has, in order; beyond `MOST_LINES` members only counted."""
    return _cut([f"{name(member)}: {said}" for member, said in by_member.items()], "; ", "; and ", what, MOST_LINES)


def partition_lines(pairs: Iterable[tuple[PartitionId, str]], what: str = "member") -> str:
    """Partitions by member, in the order in which the members first occur."""
    return lines({member: partition_names(mine) for member, mine in grouped(pairs).items()}, what)


def _cut(parts: Sequence[str], separator: str, joint: str, what: str, most: int = MOST_NAMES) -> str:
    shown, left = separator.join(parts[:most]), len(parts) - most
    return shown if left <= 0 else f"{shown}{joint}{count(left, f'more {what}')}"


def shares(quota: int, larger: int) -> str:
    """How much each gets where the first ones get one more: 2 each, and one more for the first 3."""
    if not larger:
        return f"{quota:,} each"
    return f"{quota:,} each, and one more for the first{f' {larger:,}' if larger > 1 else ''}"


def grouped(pairs: Iterable[tuple[PartitionId, str]]) -> dict[str, list[PartitionId]]:
    """Partitions by member, in the order in which the members first occur."""
    result: dict[str, list[PartitionId]] = {}
    for partition, member in pairs:
        result.setdefault(member, []).append(partition)
    return result
