"""Codec and core together: the same bytes, cut anywhere, give the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.groups import Rows
from streaming.records import CommitWindow, GroupInput, GroupObservation, Member, MembershipRecord, MembershipTombstone
from tests.examples import examples
from tests.groups.build import GROUP, Life, counted
from tests.groups.streams import Logged, Step, streams
from tests.offsets_log.compacting import inputs_of
from tests.offsets_log.written import assignment, group_key, group_value, member, offset_key, offset_value, subscription

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
