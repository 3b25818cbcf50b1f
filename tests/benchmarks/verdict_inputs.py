"""What keeping the inputs of a verdict (`drift.inputs`) costs a decision, in bytes and in time.

A group decides again and again, in turns with all its members and without the last. Time is the processor's, from
payloads to packed rows; packing is timed inside it, because two runs differ by more than it takes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from statistics import median
from unittest.mock import patch

import msgspec

from assignors import Group, Library, assign
from streaming.groups import GroupConfig, encode_rows, unpack_inputs, verdicts
from streaming.groups.classic.membership import subscription_of
from streaming.groups.verdict_inputs import VerdictInputs, pack_inputs
from streaming.job.operator import advance_key
from streaming.records import Member, TopicPartitions, encode_inputs, group_key
from tests.benchmarks.figure import Figure, Say
from tests.groups.build import make_member, make_observation, make_record, make_topic

__all__ = ["InputsSize", "cost_of_inputs", "inputs"]

_LIBRARY = Library("java", (3, 4))


@dataclass(frozen=True, slots=True)
class InputsSize:
    """One group, and how often it decides."""

    strategy: str
    members: int
    topics: int
    partitions: int
    decisions: int = 40


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of the decisions but the first: bytes of the line and of what is kept of it; microseconds."""

    line: int
    kept: int
    packing: float
    decision: float


SIZES = (
    InputsSize("range", 2, 1, 10),
    InputsSize("range", 10, 10, 100),
    InputsSize("cooperative-sticky", 10, 10, 100),
    InputsSize("range", 1_000, 10, 10_000, decisions=7),
    InputsSize("cooperative-sticky", 1_000, 10, 10_000, decisions=7),
)


def inputs(say: Say) -> list[Figure]:
    """Measure all sizes, with other strategies tried (as by default) and without."""
    figures = []
    for size in SIZES:
        what = f"{size.strategy}, {size.members:,} members x {size.partitions:,} partitions"
        for what_if in (50_000, 0):
            say(f"{what}, what_if_max_size {what_if:,}")
            cost = cost_of_inputs(size, what_if)
            note = f"of {cost.decision:,.0f} us a decision; {cost.kept:,} bytes, {cost.line:,} in the clear"
            name = f"inputs: {what}" if what_if else "  without what_if"
            figures.append(Figure(name, f"{cost.packing:,.0f} us", "", note))
    return figures


def cost_of_inputs(size: InputsSize, what_if_max_size: int, rounds: int = 5) -> Cost:
    """Measure one size."""
    config = GroupConfig("bench", what_if_max_size=what_if_max_size)
    payloads = _payloads(size)
    packing: list[float] = []
    taken: list[float] = []
    kept: list[bytes] = []

    def timed(given: VerdictInputs) -> bytes | None:
        began = time.process_time_ns()
        packed = pack_inputs(given)
        packing.append((time.process_time_ns() - began) / 1_000)
        return packed

    with patch.object(verdicts, "pack_inputs", timed):
        for _ in range(rounds):
            state: tuple[int, bytes] | None = None
            for number, of_round in enumerate(payloads):
                began = time.process_time_ns()
                state, rows = advance_key(group_key("bench"), of_round, state, config)
                encode_rows(rows)
                if number:
                    taken.append((time.process_time_ns() - began) / 1_000)
                    kept.extend(row.inputs for row in rows.drift if row.inputs is not None)
    lines = [len(unpack_inputs(packed)) for packed in kept]
    return Cost(int(median(lines)), int(median(map(len, kept))), median(packing), median(taken))


def _payloads(size: InputsSize) -> list[list[bytes]]:
    """A record and a round for each decision, as a Java leader makes it."""
    random = Random(1)
    topics = [f"orders-{number}" for number in range(size.topics)]
    counts = dict.fromkeys(topics, size.partitions // size.topics)
    names = [f"consumer-orders-{n}-{random.randbytes(16).hex()}" for n in range(size.members)]
    owned: dict[str, TopicPartitions] = {}
    payloads = []
    for generation in range(1, size.decisions + 1):
        asking = [
            _member(name, topics, owned.get(name), generation - 1, sticky=size.strategy != "range")
            for name in (names if generation % 2 else names[:-1])
        ]
        given = assign(size.strategy, Group(tuple(map(subscription_of, asking)), counts), _LIBRARY)
        owned = {m: tuple((topic, tuple(of)) for topic, of in topics.items()) for m, topics in given.items()}
        members = [msgspec.structs.replace(member, assigned=owned[member.member_id]) for member in asking]
        record = make_record(10 * generation, members, generation=generation, protocol=size.strategy)
        seen = make_observation(10 * generation + 5, *(make_topic(topic, count) for topic, count in counts.items()))
        payloads.append([encode_inputs([record]), encode_inputs([seen])])
    return payloads


def _member(name: str, topics: list[str], owned: TopicPartitions | None, generation: int, *, sticky: bool) -> Member:
    if not sticky:
        return make_member(name, topics)
    had = generation if owned is not None else -1
    return make_member(
        name,
        topics,
        owned=owned or (),
        generation=had if had >= 0 else None,
        user_data=had.to_bytes(4, "big", signed=True),
    )
