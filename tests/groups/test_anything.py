"""Nothing that may stand in the log stops the core, and its rows fit the tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import Rows, encode_rows
from streaming.records import (
    CONSUMER,
    SHARE,
    STREAMS,
    CommitWindow,
    CurrentAssignment,
    GroupEpoch,
    GroupInput,
    GroupObservation,
    InternalTopics,
    KnownTopics,
    Member,
    MembershipRecord,
    MembershipTombstone,
    ModernMember,
    Removed,
    ResolvedRegex,
    StreamsTopology,
    TargetAssignment,
    TargetEpoch,
    TopicObservation,
    decode_inputs,
    encode_inputs,
)
from tests.examples import examples
from tests.groups.build import GROUP, Life, counted, packed
from tests.groups.streams import Logged, Step, streams
from tests.offsets_log.compacting import inputs_of
from tests.offsets_log.written import assignment, group_key, group_value, member, offset_key, offset_value, subscription

INT64 = st.sampled_from((-(2**63), -1, 0, 1, 1_767_225_600_000, 2**63 - 1)) | st.integers(-(2**63), 2**63 - 1)
# Log offsets come from the broker, and rounds from the probe after checks: they increase and are never negative.
OFFSET = st.integers(0, 40)
INT32 = st.sampled_from((-(2**31), -1, 0, 1, 2, 2**31 - 1)) | st.integers(-(2**31), 2**31 - 1)
PARTITION = st.integers(0, 3) | INT32
NAME = st.sampled_from(("x", "y", "consumer", "range", "a", "b")) | st.text(max_size=5)
MAYBE = NAME | st.none()
ASSIGNED = st.lists(st.tuples(NAME, st.lists(PARTITION, max_size=4).map(tuple)), max_size=3).map(tuple)

MEMBER = st.builds(
    Member,
    member_id=NAME,
    group_instance_id=MAYBE,
    client_id=NAME,
    client_host=NAME,
    rebalance_timeout=INT32,
    session_timeout=INT32,
    subscription_version=st.none() | st.integers(0, 2**15 - 1),
    topics=st.none() | st.lists(NAME, max_size=3).map(tuple),
    owned=ASSIGNED,
    generation=INT32 | st.none(),
    rack=MAYBE,
    user_data=st.none() | st.binary(max_size=5),
    assigned=st.none() | ASSIGNED,
    undecodable=st.none() | st.none() | NAME,
)
RECORD = st.builds(
    MembershipRecord,
    record=OFFSET,
    record_time=INT64,
    protocol_type=st.sampled_from(("consumer", "consumer", "consumer", "connect", "")),
    generation=INT32,
    protocol=st.sampled_from(("range", "roundrobin", "cooperative-sticky", "house-blend", None)),
    leader=MAYBE,
    state_time=INT64,
    members=st.lists(MEMBER, max_size=3).map(tuple),
    value_version=st.integers(0, 4),
    log_partition=st.integers(0, 49),
)
WINDOW = st.builds(
    CommitWindow,
    topic=NAME,
    partition=PARTITION,
    commits=st.integers(0, 5),
    tombstones=st.integers(0, 5),
    first_offset=INT64,
    first_commit_time=INT64,
    first_record=OFFSET,
    offset=INT64,
    leader_epoch=INT32,
    last_commit_time=INT64,
    last_record=OFFSET,
    deleted=st.booleans(),
    step_back=st.integers(0, 2**64 - 1),
    topic_id=MAYBE,
)
IDS = st.lists(st.tuples(NAME, st.lists(PARTITION, max_size=4).map(tuple)), max_size=2).map(tuple)
TOPICS = st.lists(NAME, max_size=3).map(tuple)
PARTS = st.lists(st.tuples(NAME, TOPICS, TOPICS, TOPICS), max_size=3).map(tuple)
INTERNAL = st.lists(
    st.builds(
        InternalTopics,
        changelogs=st.lists(st.tuples(NAME, INT32), max_size=2).map(tuple),
        repartition_counts=st.lists(INT32, max_size=3).map(tuple),
        sinks=TOPICS,
        copartitioned=st.just((((0, 7), (0, 1, -1)),)),
    ),
    max_size=3,
).map(tuple)
WHERE: dict[str, st.SearchStrategy[Any]] = {
    "record": OFFSET,
    "record_time": INT64,
    "group_type": st.sampled_from((CONSUMER, CONSUMER, SHARE, STREAMS)),
    "log_partition": st.integers(0, 49),
}
MODERN: st.SearchStrategy[GroupInput] = st.one_of(
    st.builds(
        GroupEpoch,
        **WHERE,
        epoch=INT32,
        metadata_hash=INT64,
        validated_topology=st.integers(-1, 1),
        assignment_configs=st.dictionaries(
            st.just("num.standby.replicas"), st.sampled_from(("0", "1", "-1", "²", "a"))
        ),
    ),
    st.builds(
        ModernMember,
        **WHERE,
        member_id=NAME,
        instance_id=MAYBE,
        rack=MAYBE,
        client_id=NAME,
        client_host=NAME,
        topics=TOPICS,
        regex=MAYBE,
        assignor=MAYBE,
    ),
    st.builds(TargetEpoch, **WHERE, epoch=INT32, time=INT64),
    st.builds(TargetAssignment, **WHERE, member_id=NAME, partitions=IDS, standby=IDS, warmup=IDS),
    st.builds(
        CurrentAssignment,
        **WHERE,
        member_id=NAME,
        epoch=INT32,
        previous_epoch=INT32,
        state=st.integers(-128, 127),
        partitions=IDS,
        revoking=IDS,
        standby=IDS,
        warmup=IDS,
    ),
    st.builds(ResolvedRegex, **WHERE, regex=NAME, topics=TOPICS, image_version=INT64, time=INT64),
    st.builds(KnownTopics, **WHERE, topics=st.lists(st.tuples(NAME, NAME, st.none() | INT32), max_size=2).map(tuple)),
    st.builds(StreamsTopology, **WHERE, epoch=st.integers(-1, 1), subtopologies=PARTS, internal=INTERNAL),
    st.builds(Removed, **WHERE, key_type=st.integers(3, 23), part=MAYBE),
)
END = st.integers(-1, 2**63 - 1)


@st.composite
def topic_observations(draw: st.DrawFn) -> TopicObservation:
    count = draw(st.none() | st.integers(1, 4))
    offsets = [packed(draw(st.lists(END, min_size=count or 0, max_size=count or 0))) for _ in range(3)]
    return TopicObservation(draw(NAME), draw(MAYBE), count, *offsets)


ROUND = st.builds(
    GroupObservation,
    round=st.integers(0, 40),
    time=st.integers(0, 253_402_300_799_999),
    log_partition=st.integers(0, 49),
    log_position=OFFSET,
    state=MAYBE,
    protocol_type=MAYBE,
    group_type=MAYBE,
    gone=st.sampled_from((None, None, None, None, "deleted", "filtered")),
    held_since=st.none() | st.none() | st.integers(0, 253_402_300_799_999),
    topics=st.lists(topic_observations(), max_size=3).map(tuple),
    cluster_id=MAYBE,
)
INPUTS = st.lists(
    st.one_of(WINDOW, RECORD, ROUND, MODERN, MODERN, st.builds(MembershipTombstone, record=OFFSET, record_time=INT64)),
    max_size=15,
)


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(INPUTS, min_size=1, max_size=3))
def test_anything_passes_and_fits_the_tables(batches: list[list[GroupInput]]) -> None:
    # Imported here: the tables load deltalake and pandas, which the tests of this folder do not load at start.
    from streaming.tables import table_named, to_arrow  # noqa: PLC0415

    life = Life()
    for inputs in batches:
        rows = life.take(*decode_inputs(encode_inputs(inputs)))
        # As in the job's writer: unpacked into plain lists.
        for table, found in zip(Rows.__struct_fields__, msgspec.msgpack.decode(encode_rows(rows)), strict=True):
            assert to_arrow(table_named(table), found).num_rows == len(found)
            assert all(map(math.isfinite, _floats(found))), table
        _has_reasons(rows)


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    for held in value if isinstance(value, list) else ():
        yield from _floats(held)


def _has_reasons(rows: Rows) -> None:
    """What is NULL has a reason, and only that."""
    for lag in rows.lag:
        assert (lag.lag is None) == (lag.reason is not None)
        bounds = lag.oldest_unread_time_min, lag.oldest_unread_time_max
        assert (None in bounds) == (lag.oldest_unread_reason is not None)
    for health in rows.group_health:
        assert (health.time_behind_seconds_max is None) == (health.time_behind_reason is not None)
        # A backlog has a place only where something is certainly behind, and then it is behind for at least so long.
        assert health.time_behind_topic is None or health.time_behind_seconds_min is not None


Record = tuple[int, int, bytes, bytes | None]


def written(item: GroupInput | Logged) -> Record:
    """One input of a stream as the record that a broker would write."""
    if isinstance(item, CommitWindow):
        value = None if item.deleted else offset_value(4, item.offset)
        return item.last_record, max(item.last_commit_time, 0), offset_key(GROUP, item.topic, item.partition), value
    if isinstance(item, MembershipTombstone):
        return item.record, item.record_time, group_key(GROUP), None
    if isinstance(item, Logged):
        return item.record, item.time, item.key, item.value
    assert isinstance(item, MembershipRecord)
    value = group_value(
        3,
        [written_member(m) for m in item.members],
        protocol_type=item.protocol_type,
        generation=item.generation,
        protocol=item.protocol,
        leader=item.leader,
        timestamp=item.state_time,
    )
    return item.record, item.record_time, group_key(GROUP), value


def written_member(m: Member) -> bytes:
    return member(
        3,
        member_id=m.member_id,
        group_instance_id=m.group_instance_id,
        subscription=b"\x00" if m.undecodable else subscription(3, list(m.topics or ())),
        assignment=assignment(3, [(topic, list(partitions)) for topic, partitions in m.assigned or ()]),
    )


def rows_of(steps: Sequence[Step], cuts: Iterable[int]) -> Rows:
    life = Life()
    bounds = [0, *sorted(set(cuts)), len(steps)]
    for at, start in enumerate(bounds[:-1]):
        items = [item for step in steps[start : bounds[at + 1]] for item in step]
        observations = [item for item in items if isinstance(item, GroupObservation)]
        records = [written(item) for item in items if not isinstance(item, GroupObservation)]
        life.take(*observations, *inputs_of(records, [observation.log_position for observation in observations]))
    return life.rows


@settings(deadline=None, max_examples=examples(80))
@given(streams(20), st.data())
def test_bytes_cut_anywhere_give_the_same_rows(steps: list[Step], data: st.DataObject) -> None:
    whole = rows_of(steps, ())
    cuts = data.draw(st.lists(st.integers(1, max(1, len(steps) - 1)), max_size=8))
    assert counted(rows_of(steps, cuts)) == counted(whole)
    assert counted(rows_of(steps, range(1, len(steps)))) == counted(whole)
    commits = sum(row.commits for row in whole.lag)
    assert commits <= sum(isinstance(i, CommitWindow) and not i.deleted for step in steps for i in step)
