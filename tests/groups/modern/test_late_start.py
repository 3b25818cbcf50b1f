"""Groups with a broker-side assignor, first seen in a log that was compacted by Kafka's rule at any place."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import GroupConfig, Incarnations, Rows, advance
from streaming.groups.state import GroupState
from streaming.offsets_log import CompactedStretches, Compactor
from streaming.records import GroupInput
from tests.examples import examples
from tests.groups.build import CONFIG, make_observation, make_topic
from tests.groups.coordinator import GROUP, PARTITIONS, Coordinator, lives
from tests.groups.modern_log import TOPIC_ID

Record = tuple[int, bytes, bytes | None]


def records_of(group: Coordinator) -> list[Record]:
    return [(offset, key, value) for offset, (key, value) in enumerate(group.log)]


def compacted(records: list[Record], upto: int, *, tombstones: bool) -> list[Record]:
    """The records with only the last one of each key below `upto`."""
    last = {key: offset for offset, key, _ in records if offset < upto}
    return [
        record
        for record in records
        if record[0] >= upto or (last[record[1]] == record[0] and (tombstones or record[2] is not None))
    ]


def inputs_of(records: list[Record], start: int, end: int, rounds: set[int]) -> list[GroupInput]:
    """The source's inputs for offsets [start, end); it reads beyond the end for compacted ranges."""
    inputs: list[GroupInput] = []
    codec, stretches = Compactor(0, 1, sorted(rounds), lambda _: True, lambda _: True), CompactedStretches()
    expected = start
    for offset, key, value in records:
        if offset < start:
            continue
        if offset > expected and (expected < end or stretches.open):
            stretches.missing(expected, offset - 1)
        if offset >= end and not stretches.open:
            break
        expected = offset + 1
        stretches.add(offset, key)
        if offset < end:
            codec.add(offset, 1_767_225_600_000 + offset, key, value)
    for _, of_group in (*codec.groups(), *stretches.groups()):
        inputs.extend(of_group)
    inputs.extend(
        make_observation(p, make_topic("t", PARTITIONS, topic_id=TOPIC_ID), group_type="consumer", state=None)
        for p in rounds
        if start < p <= end
    )
    return inputs


def lived(
    records: list[Record],
    cuts: list[int],
    end: int,
    rounds: set[int],
    state: GroupState | None = None,
    config: GroupConfig = CONFIG,
) -> Rows:
    rows = Rows()
    start = cuts[0]
    for cut in [*cuts[1:], end]:
        state, more = advance(state, GROUP, inputs_of(records, start, cut, rounds), config)
        for table in Rows.__struct_fields__:
            getattr(rows, table).extend(getattr(more, table))
        start = cut
    return rows


def said(rows: Rows) -> dict[str, list[str]]:
    return {table: sorted(map(repr, getattr(rows, table))) for table in Rows.__struct_fields__}


def members_at_the_end(rows: Rows) -> dict[str, tuple[int, ...]]:
    newest = {row.member_id: row for row in rows.members}
    return {
        name: tuple(p for of in row.partitions or () for p in of.partitions)
        for name, row in newest.items()
        if not row.ended
    }


def settled(group: Coordinator) -> Coordinator:
    """Let one more member join, and a target follow, so that the members are those of the newest decision."""
    group.join()
    names = list(group.members)
    group.assign({name: tuple(range(at, PARTITIONS, len(names))) for at, name in enumerate(names)})
    return group


def assert_nothing_is_made_up(group: Coordinator, rows: Rows) -> None:
    told = {decision.record: decision for decision in group.decisions}
    for row in rows.rebalance_churn:
        real = told[row.decision]
        assert row.members == len(real.members)
        # Compaction moves a member whose record was written again behind the others.
        assert row.joined is None or sorted(row.joined) == sorted(real.joined)
        assert not row.left or sorted(row.left) == sorted(real.left)
    moves = {
        row.decision: row.partitions_moved for row in lived(records_of(group), [0], len(group.log), {1}).rebalance_churn
    }
    for row in rows.rebalance_churn:
        assert row.partitions_moved in (None, moves[row.decision]), row
    assert "drifted" not in {row.verdict for row in rows.drift}


@settings(deadline=None, max_examples=examples(60))
@given(lives(), st.data())
def test_a_job_that_starts_late_sees_the_members_and_targets_of_now(group: Coordinator, data: st.DataObject) -> None:
    end = len(settled(group).log)
    rounds = {*data.draw(st.lists(st.integers(1, end), max_size=4)), end}
    cuts = sorted({0, *data.draw(st.lists(st.integers(0, end - 1), max_size=3))})
    left = compacted(records_of(group), data.draw(st.integers(0, end)), tombstones=data.draw(st.booleans()))
    rows = lived(left, cuts, end, rounds)
    assert members_at_the_end(rows) == group.targets
    health = rows.group_health[-1]
    assert (health.members, health.generation) == (len(group.members), group.epoch)
    assert_nothing_is_made_up(group, rows)


@settings(deadline=None, max_examples=examples(60))
@given(lives())
def test_a_group_keeps_the_incarnation_that_the_tables_know(group: Coordinator) -> None:
    end = len(settled(group).log)
    whole = lived(records_of(group), [0], end, {end})
    known: dict[int, int] = {}
    for row in whole.rebalance_churn:
        known[row.incarnation] = max(row.decision, known.get(row.incarnation, -1))
    left = compacted(records_of(group), end, tombstones=False)
    config = replace(CONFIG, incarnations=Incarnations({GROUP: list(known.items())}))
    again = lived(left, [0], end, {end}, config=config)
    assert again.group_health[-1].incarnation == whole.group_health[-1].incarnation
    assert {row.incarnation for row in again.drift} <= {row.incarnation for row in whole.drift}


@settings(deadline=None, max_examples=examples(60))
@given(lives(), st.data())
def test_a_job_that_comes_back_sees_the_members_and_targets_of_now(group: Coordinator, data: st.DataObject) -> None:
    end = len(settled(group).log)
    rounds = {*data.draw(st.lists(st.integers(1, end), max_size=4)), end}
    down = data.draw(st.integers(1, end - 1))
    whole = records_of(group)
    state, rows = advance(None, GROUP, inputs_of(whole, 0, down, rounds), CONFIG)
    left = compacted(whole, data.draw(st.integers(0, end)), tombstones=True)
    more = lived(
        left, [down, *sorted({*data.draw(st.lists(st.integers(down, end - 1), max_size=2))})], end, rounds, state
    )
    for table in Rows.__struct_fields__:
        getattr(rows, table).extend(getattr(more, table))
    assert members_at_the_end(rows) == group.targets
    assert_nothing_is_made_up(group, rows)


@settings(deadline=None, max_examples=examples(150))
@given(lives(), st.data())
def test_the_cut_makes_no_difference_in_a_compacted_log(group: Coordinator, data: st.DataObject) -> None:
    end = len(settled(group).log)
    rounds = {*data.draw(st.lists(st.integers(1, end), max_size=4)), end}
    cuts = sorted({0, *data.draw(st.lists(st.integers(0, end - 1), min_size=1, max_size=4))})
    left = compacted(records_of(group), data.draw(st.integers(0, end)), tombstones=data.draw(st.booleans()))
    assert said(lived(left, cuts, end, rounds)) == said(lived(left, [0], end, rounds))
