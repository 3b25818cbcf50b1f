"""The packed state: what an earlier release left in a checkpoint must go on in this one."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest

from streaming.groups.exceptions import UnknownStateVersion
from streaming.groups.quarantine import PartitionState
from streaming.groups.rounds import RoundsState
from streaming.groups.state import (
    STATE_VERSION,
    GroupState,
    decode_reserved,
    decode_state,
    encode_reserved,
    encode_state,
)
from tests.groups.build import SECOND, START, Life, even, make_commit, make_record, make_tick, make_topic

GOLDEN = json.loads((Path(__file__).parent / "data" / "state_v1.json").read_text())["states"]


def resumed(name: str) -> Life:
    life = Life()
    life.state = decode_state(GOLDEN[name]["version"], base64.b64decode(GOLDEN[name]["payload"]))
    return life


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_state_of_version_1_comes_back(name: str) -> None:
    state = resumed(name).state
    assert state is not None
    assert decode_state(*encode_state(state)) == state


def test_a_cooperative_rebalance_of_version_1_is_finished() -> None:
    life = resumed("cooperative")
    rows = life.take(make_commit(60, 6, topic="x", partition=1), make_tick(70, make_topic("x", 2)))
    (churn,) = rows.rebalance_churn
    # Partition 1 went from a to b; its last commit before was at 9, the first after at 60.
    assert (churn.record_offset, churn.revision, churn.follows, churn.moves) == (45, 2, 35, 1)
    assert (churn.unowned_partition_seconds_min, churn.unowned_partition_seconds_max) == (0.02, 51.0)
    assert [(row.record_offset, row.verdict) for row in rows.drift] == [(45, "valid_unverified")]
    # 31, 33 and 29 were committed while the state was packed.
    assert [(row.partition, row.committed_offset, row.commits, row.rewound_by) for row in rows.lag] == [
        (0, 29, 3, 4),
        (1, 6, 1, 0),
    ]
    assert [(row.member_id, row.lag_status) for row in rows.lag] == [("a", "rewound"), ("b", "ok")]
    assert rows.group_health[-1].commits == 4


def test_findings_of_version_1_keep_their_since_times() -> None:
    life = resumed("in_transfer")
    life.take(make_tick(30, make_topic("x", 3), state="PreparingRebalance"))
    (row,) = life.rows.group_health
    assert [(f.finding, f.since) for f in row.findings] == [
        ("stale_metadata", START + 20 * SECOND),
        ("in_transfer", START + 15 * SECOND),
    ]


def test_the_judgement_of_lag_of_version_1_goes_on() -> None:
    life = resumed("stopping")
    rows = life.take(make_tick(301, make_topic("x", 1, end=300)))
    assert [(row.lag_status, row.lag, row.commits) for row in rows.lag] == [("stopped", 110, 0)]


def test_a_field_appended_later_with_a_default_is_no_new_version() -> None:
    class GroupStateLater(GroupState, array_like=True):
        something_new: int = 7

    life = resumed("cooperative")
    assert life.state is not None
    later = msgspec.msgpack.decode(encode_state(life.state)[1], type=GroupStateLater)
    assert (later.something_new, later.current) == (7, life.state.current)


def test_a_state_of_a_later_version_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnknownStateVersion, match="run the release that wrote it, or start a new checkpoint"):
        decode_state(STATE_VERSION + 1, b"")


def test_the_state_of_a_reserved_key_comes_back() -> None:
    assert decode_reserved(encode_reserved(RoundsState(5)), RoundsState) == RoundsState(5)
    assert decode_reserved(None, PartitionState) == PartitionState()
    with pytest.raises(UnknownStateVersion):
        decode_reserved((STATE_VERSION + 1, b""), RoundsState)


def test_a_state_is_packed_the_same_however_it_was_reached() -> None:
    one, two = Life(), Life()
    inputs = (make_record(5, even("x", 2, "a", "b")), make_commit(6, 1, topic="x"), make_tick(10, make_topic("x", 2)))
    one.take(*inputs)
    for item in inputs:
        two.take(item)
    assert one.state == two.state
