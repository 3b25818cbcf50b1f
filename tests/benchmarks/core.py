"""The core's cost per group: unpack its state, process and judge one round, pack state and rows.

On one core, without Spark, Kafka or disk: thousands of small groups, and one group of ten thousand partitions, each of
which commits twice and grows in every round.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from statistics import median

from streaming.groups import GroupConfig, encode_rows
from streaming.job.operator import advance_key
from streaming.records import (
    CommitWindow,
    GroupObservation,
    Member,
    MembershipRecord,
    TopicObservation,
    encode_inputs,
    group_key,
)
from tests.benchmarks.figure import Figure, Say

_TOPIC = "orders"
_TOPIC_ID = "5IbGvSVlRhO4WsV27SXSPw"
_MEMBERS = 2
_INTERVAL_MS = 10_000
_STEP = 37
_WARM_UP = 12
"""Rounds until the judgement of lag has its full history."""


@dataclass(frozen=True, slots=True)
class CoreSize:
    """Size of the benchmark.

    Attributes:
        groups: Groups of two members each.
        partitions: Partitions per group.
        rounds: Rounds that count.
        aim: Target per group, as shown in the table.
    """

    groups: int
    partitions: int
    rounds: int = 5
    aim: str = ""


SIZES = (
    CoreSize(1_000, 1),
    CoreSize(1_000, 10),
    CoreSize(10_000, 10, rounds=2, aim="as of 1,000"),
    CoreSize(1, 10_000, rounds=15, aim="under 150 ms"),
)


def core(say: Say) -> list[Figure]:
    """Measure all sizes."""
    figures = []
    for size in SIZES:
        say(f"{size.groups:,} groups x {size.partitions:,} partitions")
        each, state = milliseconds(size)
        groups = "one group" if size.groups == 1 else f"each of {size.groups:,} groups"
        note = f"a round; processor time; {state:,} bytes of state"
        figures.append(Figure(f"core: {groups} x {size.partitions:,} partitions", f"{each:,.3f} ms", size.aim, note))
    return figures


def milliseconds(size: CoreSize) -> tuple[float, int]:
    """Processor time of one group per round (median of the rounds), and the size of its state in bytes."""
    config = GroupConfig(cluster="bench")
    states: dict[str, tuple[int, bytes] | None] = {group_key(f"checkout-{n}"): None for n in range(size.groups)}
    taken: list[float] = []
    for number in range(_WARM_UP + size.rounds):
        payloads = _payloads(number, size.partitions)
        began = time.process_time()
        for key, state in states.items():
            states[key], rows = advance_key(key, payloads, state, config)
            encode_rows(rows)
        taken.append((time.process_time() - began) / size.groups * 1_000)
    last = next(iter(states.values()))
    return median(taken[_WARM_UP:]), len(last[1]) if last else 0


def _payloads(number: int, partitions: int) -> list[bytes]:
    """The source's output for one group and one round: windows, an observation, and in the first the membership."""
    position, now = 2 + 2 * partitions * number, _INTERVAL_MS * (number + 1)
    consumed = 1_000 + _STEP * number
    windows = [
        CommitWindow(
            topic=_TOPIC,
            partition=partition,
            commits=2,
            tombstones=0,
            first_offset=consumed - _STEP // 2,
            first_commit_time=now - 6_000,
            first_record=position + partition,
            offset=consumed,
            leader_epoch=0,
            last_commit_time=now - 1_000,
            last_record=position + partitions + partition,
            deleted=False,
            step_back=0,
            topic_id=_TOPIC_ID,
        )
        for partition in range(partitions)
    ]
    end = struct.pack(f"<{partitions}q", *([consumed + 5] * partitions))
    seen = TopicObservation(_TOPIC, _TOPIC_ID, partitions, end, end, bytes(8 * partitions))
    observation = GroupObservation(
        number,
        now,
        0,
        position + 2 * partitions,
        "Stable",
        "consumer",
        "classic",
        None,
        None,
        (seen,),
        closed=now + 500,
    )
    payloads = [encode_inputs([*windows]), encode_inputs([observation])]
    if not number:
        payloads.append(encode_inputs([_decision(partitions)]))
    return payloads


def _decision(partitions: int) -> MembershipRecord:
    """The group's generation, assigned by the strategy "range"."""
    least, more = divmod(partitions, _MEMBERS)
    members, first = [], 0
    for number in range(_MEMBERS):
        last = first + least + (number < more)
        members.append(
            Member(
                member_id=f"consumer-{number}",
                group_instance_id=None,
                client_id="bench",
                client_host="/127.0.0.1",
                rebalance_timeout=300_000,
                session_timeout=45_000,
                subscription_version=1,
                topics=(_TOPIC,),
                owned=(),
                generation=None,
                rack=None,
                user_data=None,
                assigned=((_TOPIC, tuple(range(first, last))),),
            )
        )
        first = last
    return MembershipRecord(1, 1, "consumer", 1, "range", "consumer-0", 1, tuple(members), 3, 0)
