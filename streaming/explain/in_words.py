"""One verdict in words: the assignment that it expects, and for drift what is different.

Pure: a row of `drift` in, sentences out. What is recomputed comes from `drift.inputs`, what is actual from
`drifted_partitions`; nothing is guessed.

A partition is typed TOPIC/NUMBER. For RocketMQ, which numbers queues by topic and broker, it means the queues of this
number on every broker; "orders@broker-a" in place of the topic means that one alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assignors import AssignorError, Strategy, at_most, find_strategy
from assignors.explain import Explanation, PartitionId, explain_line
from assignors.jsonl import BadLine
from streaming.exceptions import EvenkeelError, SetupError
from streaming.groups import CONFIGURED, DECLARED, INVARIANT, PROMISE, unpack_inputs
from streaming.terminal import counted, printable, visible

# Partition numbers are signed 32-bit integers.
_DIGITS = 10


class PartitionError(EvenkeelError):
    """A text is no partition."""


class NoSuchPartitionError(SetupError):
    """A verdict does not have the partition that was asked for."""


def read_partition(text: str) -> PartitionId:
    """Read TOPIC/NUMBER; a topic of Kafka has no slash, and the last one counts.

    Raises:
        PartitionError: The text is not of this form.
    """
    topic, slash, number = text.rpartition("/")
    if not (slash and topic and number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        message = f"A partition is written TOPIC/NUMBER, for example orders/3, and not {visible(text[:100])}."
        raise PartitionError(message)
    return topic, int(number)


def is_on(topic: str | None, partition: PartitionId) -> bool:
    """Whether a verdict on a topic can say something of a partition.

    Args:
        topic: The verdict's topic; None where it is on all topics of the group.
        partition: As `read_partition` gives it.
    """
    # A topic of RocketMQ has no "@" in its name.
    return topic is None or partition[0].partition("@")[0] == topic


def is_meant(row: Mapping[str, Any], partition: PartitionId) -> bool:
    """Whether a partition of `drift.drifted_partitions` (topic, broker, partition) is the one that was typed."""
    named = (row["topic"], f"{row['topic']}@{row.get('broker')}")
    return row["partition"] == partition[1] and partition[0] in named


# Units of work (`assignors.context`) for one explanation: one to three seconds at the very most, for somebody who
# waits. The largest ordinary groups (1,000 members, 10,000 partitions) need a tenth.
_MOST_WORK = 10_000_000

# An answer lists this many drifted partitions one by one: a screen. `drift.drifted_partitions` has all of them.
_MOST_DRIFTED = 20

# The most topics that a sentence names: nobody reads more.
_MOST_TOPICS = 8

_BASES: Final = {
    INVARIANT: "No client or broker decides so.",
    PROMISE: "The strategy's name promises otherwise, and no known client breaks that.",
    CONFIGURED: "Expected owners are by the configured strategy.",
    DECLARED: "It is declared who decides, and how.",
}

_CONNECT, _STREAMS = "connect", "streams"

_KNOWN_PREFIXES = ("server-", "streams-", "rocketmq:")


@dataclass(frozen=True, slots=True)
class VerdictInWords:
    """A verdict in words.

    Attributes:
        line: What the verdict used, as a line of `evenkeel assign`; None where the row has no inputs.
        sentences: Why the assignment should be as it is, in order.
        drift: What is different, in order; empty without drift.
        explanation: The expected assignment; None without inputs.
    """

    line: dict[str, Any] | None
    sentences: tuple[str, ...]
    drift: tuple[str, ...] = ()
    explanation: Explanation | None = None

    def json(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The line of `evenkeel assign` with the explanation beside it, so that a pipe gives the assignment again."""
        document = {
            **{name: row[name] for name in ("cluster", "group_id", "decision", "generation", "verdict", "reason")},
            "topic": row.get("topic"),
            "sentences": self.sentences,
            "drift": self.drift,
        }
        return {**(self.line or {}), "explanation": document}


def verdicts_in_words(
    rows: Sequence[Mapping[str, Any]],
    partition: PartitionId | None = None,
    custom: Mapping[str, Strategy] | None = None,
) -> list[tuple[Mapping[str, Any], VerdictInWords]]:
    """Put the verdicts on a group's newest decision into words: one, or one a topic (RocketMQ), in their order.

    Args:
        rows: Verdicts on one group, the newest decision first, as `verdict_in_words` takes them, with cluster,
            group_id, decision and topic; at least one.
        partition: Only this partition, as people type it, and only the verdict on its topic.
        custom: Users' own strategies by name.

    Raises:
        NoSuchPartitionError: None of these verdicts has the partition. (A verdict without known
            inputs may have it, so it is kept.)
    """
    # A topic that the group has left has an older verdict.
    newest = [row for row in rows if row["decision"] == rows[0]["decision"]]
    if partition is None:
        return [(row, verdict_in_words(row, None, custom)) for row in newest]
    told = [(row, verdict_in_words(row, partition, custom)) for row in newest if is_on(row.get("topic"), partition)]
    having = [(row, words) for row, words in told if _may_have(row, words.explanation, partition)]
    if not having:
        raise NoSuchPartitionError(_lacks(partition, newest, told))
    return having


def _may_have(row: Mapping[str, Any], explanation: Explanation | None, partition: PartitionId) -> bool:
    if explanation is None or explanation.meant(partition):
        return True
    return any(is_meant(one, partition) for one in row["drifted_partitions"] or ())


def _lacks(
    partition: PartitionId,
    rows: Sequence[Mapping[str, Any]],
    told: Sequence[tuple[Mapping[str, Any], VerdictInWords]],
) -> str:
    lacks = f"This verdict has no {_unit(rows[0])} {visible(partition[0])} {partition[1]}"
    for _, words in told:
        if words.explanation is not None:
            return f"{lacks}: it has {printable(words.explanation.listed())}."
    topics = ", ".join(visible(row["topic"]) for row in rows[:_MOST_TOPICS])
    left = len(rows) - _MOST_TOPICS
    return f"{lacks}: its topics are {topics}{f' and {left:,} more' if left > 0 else ''}."


def verdict_in_words(
    row: Mapping[str, Any], partition: PartitionId | None = None, custom: Mapping[str, Strategy] | None = None
) -> VerdictInWords:
    """Put a verdict into words.

    Args:
        row: A row of `drift`: verdict, basis, own_verdict, reason, strategy, matching_library,
            nearest_library, nearest_differing, drifted_count, drifted_partitions, inputs; and protocol_type, where it
            is known.
        partition: Only this partition.
        custom: Users' own strategies by name; without them such a strategy is not asked.
    """
    head = _verdict(row)
    drift = tuple(_drifted(row, partition))
    packed = row["inputs"]
    if packed is None:
        return VerdictInWords(None, (head, _no_inputs(row)), drift)
    try:
        line = json.loads(unpack_inputs(bytes(packed)))
    except ValueError as error:
        return VerdictInWords(None, (head, f"Its inputs cannot be read: {error}."), drift)
    strategy = line.get("strategy", "")
    if find_strategy(strategy) is None and not strategy.startswith(_KNOWN_PREFIXES) and strategy not in (custom or {}):
        said = (
            f"{strategy} is a strategy of your own, whose code does not run here: `evenkeel explain` asks it, where it "
            "is configured."
        )
        return VerdictInWords(line, (head, said), drift)
    try:
        with at_most(_MOST_WORK, "an explanation"):
            explanation = explain_line(line, custom)
    except (BadLine, AssignorError) as error:
        return VerdictInWords(line, (head, f"It cannot be explained: {getattr(error, 'reason', error)}."), drift)
    return VerdictInWords(line, (head, *explanation.sentences(partition)), drift, explanation)


def _verdict(row: Mapping[str, Any]) -> str:
    verdict, library = row["verdict"], row["matching_library"]
    if verdict == "identical":
        return f"The verdict is identical: recomputed as {library}, the assignment is what its strategy gives."
    if verdict == "drifted":
        partitions = counted(row["drifted_count"], _unit(row))
        said = f"The verdict is drifted, in {partitions}: {row['reason']}. {_BASES.get(row['basis'], '')}"
        if row["basis"] == CONFIGURED:
            said += f" By the strategy that it runs, it is {row['own_verdict'].replace('_', ' ')}."
        said = said.strip()
    else:
        word = str(verdict).replace("_", " ")
        said = f"The verdict is {word}: {row['reason']}." if row["reason"] else f"The verdict is {word}."
    if row["nearest_library"] is not None:
        partitions = counted(row["nearest_differing"], _unit(row))
        said += f" {row['nearest_library']} comes nearest: it differs in {partitions}."
    return said


def _no_inputs(row: Mapping[str, Any]) -> str:
    if row["verdict"] == "drifted":
        return "No strategy had to be asked: no strategy of any library makes such an assignment."
    if row["matching_library"] == "connect" and row["strategy"] == "default":
        return "Connect's eager leader deals every connector and task, so the record shows all that was configured."
    if row["matching_library"] == "connect":
        return (
            "Connect's leader deals connectors and tasks by its configuration and its memory, which no record has: "
            "with some that the record suggests, it gives exactly this."
        )
    if row["verdict"] == "unverified" and row.get("strategy") in ("compatible", "sessioned"):
        return "Nothing here is known to be wrong: a connector or task on two Connect workers would be drifted."
    if row["verdict"] in ("unverified", "identical"):
        return (
            "What the strategy was given is not kept: no strategy was asked, or it is too large for a row of the table."
        )
    return "There is nothing to recompute."


def _unit(row: Mapping[str, Any]) -> str:
    return "task" if row.get("protocol_type") in (_CONNECT, _STREAMS) else "partition"


def _named(one: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A partition or a queue; a task as its system prints it: 1_3 in a streams group, files-3 in Connect."""
    topic, number, broker = one["topic"], one["partition"], one.get("broker")
    if row.get("protocol_type") == _STREAMS:
        return f"{topic}_{number}"
    if row.get("protocol_type") == _CONNECT:
        return f"connector {topic}" if number < 0 else f"{topic}-{number}"
    return f"{topic}{'' if broker is None else f'@{broker}'} {number}"


def _drifted(row: Mapping[str, Any], partition: PartitionId | None) -> list[str]:
    listed: Sequence[Mapping[str, Any]] = row["drifted_partitions"] or ()
    if partition is not None:
        listed = [one for one in listed if is_meant(one, partition)]
    said = []
    for one in listed[:_MOST_DRIFTED]:
        what = _named(one, row)
        actual = ", ".join(one["actual"] or ()) or "nobody"
        match one["kind"]:
            case "doubly_assigned":
                said.append(f"{what} was given to several members at once: {actual}.")
            case "not_subscribed":
                said.append(f"{what} was given to {actual}, which does not subscribe to its topic.")
            case "standby_beside_active":
                said.append(f"{what} was given to {actual} as a standby or warm-up, beside its own active task.")
            case "not_in_topology":
                said.append(f"{what} was given to {actual}, and the topology has no such subtopology.")
            case "unassigned":
                said.append(f"{what} was given to nobody; {one['expected']} should own it.")
            case _ if one["expected"] is None:
                said.append(f"{what} was given to {actual} and should have no owner.")
            case _:
                said.append(f"{what} was given to {actual}; {one['expected']} should own it.")
    left = len(listed) - _MOST_DRIFTED
    if left > 0:
        said.append(f"{left:,} more {_unit(row)}s are in drift.drifted_partitions.")
    return said
