"""The stateful operator: a thin adapter between `applyInPandasWithState` and the core.

One packed payload column comes in, packed rows go out, and the state is `schema_version int, payload binary`:
Spark 4.2.0 crashes on arrays and maps in the state schema (since SPARK-55323), and each further column costs 0.13 ms
per group. No timeout is set: time comes with the events.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

from pyspark import TaskContext

from streaming.config import RocketMQStrategy, Settings, strategy_of
from streaming.groups import (
    Allocation,
    GroupConfig,
    Incarnations,
    Rows,
    advance,
    custom_of,
    decode_reserved,
    decode_state,
    encode_rows,
    encode_state,
    queue_list,
)
from streaming.job.arrow_state import ArrowState, install
from streaming.log_health import (
    ClusterTopicState,
    RoundsState,
    UnreadableState,
    advance_partition,
    advance_rounds,
    advance_topic,
)
from streaming.records import (
    ROUNDS_KEY,
    GroupInput,
    decode_closed_rounds,
    decode_cluster_topics,
    decode_inputs,
    decode_partition_inputs,
    group_of,
    topic_of,
)

OUTPUT_SCHEMA = "rows binary"
STATE_SCHEMA = "schema_version int, payload binary"

PackedState = tuple[int, bytes]

# Here, because a worker imports this module before it reads its stream.
install()
# After each task a worker collects garbage, and would look through all that it has imported: 60 ms of processor time.
# Nearly all garbage is freed by its counts: looking for cycles every 700 objects took 4 % of a batch without Spark.
if TaskContext.get() is not None:
    gc.freeze()
    gc.set_threshold(20_000)


def group_config(settings: Settings, incarnations: Incarnations | None = None) -> GroupConfig:
    """The settings that the core needs, and what it must know where its state was lost."""
    return GroupConfig(
        cluster=settings.cluster,
        metadata_grace_ms=settings.job.metadata_grace_ms,
        heartbeat_ms=settings.job.heartbeat_ms,
        watches_topic=settings.filters.watches_topic,
        custom=custom_of((one.name, one.assignor, one.deterministic) for one in settings.custom_strategies),
        what_if_max_size=settings.job.what_if_max_size,
        incarnations=incarnations or Incarnations(),
        # The strategies alone: this travels to the executors, and the section holds secrets.
        allocation=partial(_allocation, settings.rocketmq.strategies if settings.rocketmq is not None else ()),
    )


def _allocation(strategies: tuple[RocketMQStrategy, ...], group: str) -> Allocation:
    """What the configuration says of the strategy of a RocketMQ group's members."""
    given = strategy_of(strategies, group)
    if given is None:
        return Allocation()
    listed, rooms = given.message_queue_list, given.consumeridcs
    return Allocation(
        given.virtual_node_cnt,
        None if listed is None else queue_list((one.topic, one.broker, one.queue) for one in listed),
        None if rooms is None else frozenset(rooms),
        given.room_separator,
        given.delegate or "AVG",
    )


def advance_key(
    key: str, payloads: Iterable[bytes], state: PackedState | None, config: GroupConfig
) -> tuple[PackedState | None, Rows]:
    """Advance one key of the operator: a group, a topic, a log partition, or the rounds.

    Args:
        key: As `streaming.records.inputs` makes them.
        payloads: Packed inputs of this batch, in any order.
        state: Version and payload as stored; None when there is none.
        config: Settings of the core.

    Returns:
        The state to store, None to remove it, and the rows that follow.
    """
    group = group_of(key)
    if group is not None:
        inputs: list[GroupInput] = []
        for payload in payloads:
            inputs.extend(decode_inputs(payload))
        after, rows = advance(decode_state(*state) if state else None, group, inputs, config)
        return (encode_state(after) if after is not None else None), rows
    topic = topic_of(key)
    if topic is not None:
        observations = [item for payload in payloads for item in decode_cluster_topics(payload)]
        before = decode_reserved(state, ClusterTopicState) if state else None
        followed, rows = advance_topic(before, topic, observations, config.cluster)
        return (encode_state(followed) if followed is not None else None), rows
    if key == ROUNDS_KEY:
        rounds = [item for payload in payloads for item in decode_closed_rounds(payload)]
        seen, rows = advance_rounds(decode_reserved(state, RoundsState), rounds, config.cluster)
        return encode_state(seen), rows
    unreadable = [item for payload in payloads for item in decode_partition_inputs(payload)]
    counted, rows = advance_partition(decode_reserved(state, UnreadableState), unreadable, config.cluster)
    return encode_state(counted), rows


def operator(
    settings: Settings, incarnations: Incarnations | None = None
) -> Callable[[tuple[str], Any, ArrowState], Iterable[Any]]:
    """Build the function for `applyInPandasWithState`; it may run more than once for a batch, and is pure.

    The payloads come with the state, and the rows go with it (`arrow_state.py`): there are no frames.
    """
    config = group_config(settings, incarnations)

    def apply(key: tuple[str], _frames: Any, state: ArrowState) -> Iterable[Any]:
        state.after, rows = advance_key(key[0], state.payloads, cast("PackedState | None", state.before), config)
        if rows:
            state.rows = encode_rows(rows)
        return ()

    return apply
