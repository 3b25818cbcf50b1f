"""Causes of a modern group's new targets: what its records prove, and nothing else."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings

from streaming.records import GroupEpoch, GroupInput, KnownTopics, TargetEpoch
from tests.examples import examples
from tests.groups.build import START, causes_of, decisions_of, even, make_record, make_tombstone
from tests.groups.coordinator import Coordinator, Written, lives
from tests.groups.modern_log import (
    FIRST,
    SECOND_MEMBER,
    TOPIC_ID,
    asking,
    epoch,
    gone,
    metadata,
    observation,
    owns,
    read,
    stands,
    target,
)
from tests.offsets_log.written import (
    member_metadata,
    other_key,
    regular_expression,
    target_assignment,
)

GROUP = "orders-app"


def subscribes(name: str, *topics: str, regex: str | None = None) -> Written:
    return other_key(5, GROUP, name), member_metadata(topics, regex=regex, assignor="uniform")


def matches(regex: str, *topics: str, version: int = 7) -> Written:
    return other_key(16, GROUP, regex), regular_expression(topics, version, START)


def hashed(first: int, second: int, *targets: Written, log: tuple[Written, ...] = ()) -> list[GroupInput]:
    """Two decisions with these hashes of the topics' metadata (Kafka 4.1)."""
    return [observation(1), *with_hashes([*FIRST, *log, epoch(2), *targets, stands(2)], {1: first, 2: second})]


def with_hashes(log: list[Written], hashes: dict[int, int]) -> list[GroupInput]:
    return [
        msgspec.structs.replace(item, metadata_hash=hashes[item.epoch]) if isinstance(item, GroupEpoch) else item
        for item in read(log)
    ]


def counted(at: int, count: int) -> KnownTopics:
    """The partition count itself, as the log has it up to Kafka 4.0."""
    return KnownTopics(at, START, "consumer", 7, ((TOPIC_ID, "orders", count),))


RETURNED = metadata("a2", "i"), target("a2", 0, 1, 2, 3), owns("a2", 1, 0, 1, 2, 3)
GROWN = [epoch(2), target("a", 0, 1, 2, 3, 4, 5), stands(2)]
BY_PATTERN = (subscribes("a", regex="or.*"), matches("or.*", "orders"), epoch(2), stands(2))
BILLS = other_key(7, GROUP, "b"), target_assignment({bytes(15) + b"b": (0, 1)})
CARRIED = [(other_key(5, GROUP, name), member_metadata(("orders",), protocols=["range"])) for name in ("a", "b")]
UPGRADE = [*CARRIED, metadata("n"), epoch(4), target("a", 0), target("b", 1), target("n", 2, 3), stands(4)]
ENDED = [*FIRST, *SECOND_MEMBER, *gone("a", "b"), (other_key(6, GROUP), None), (other_key(3, GROUP), None)]
LATER = [metadata("a"), epoch(1), target("a"), stands(1), epoch(2), target("a", 0, 1, 2, 3), stands(2)]


@pytest.mark.parametrize(
    ("log", "causes"),
    [
        pytest.param([], ["member_joined a"], id="the first member of a group joined"),
        pytest.param(SECOND_MEMBER, ["member_joined b"], id="a member that joined is named"),
        pytest.param(
            [*SECOND_MEMBER, *gone("b"), epoch(3), target("a", 0, 1, 2, 3), stands(3)],
            ["member_gone b"],
            id="a member that is gone may have left or expired",
        ),
        pytest.param([*gone("a"), epoch(2)], ["member_gone a"], id="the last member leaves an empty group"),
        pytest.param(
            [
                *(*gone("a"), *RETURNED),
                *(*SECOND_MEMBER[:2], target("a2", 0, 1), target("b", 2, 3), stands(2)),
            ],
            ["member_joined b"],
            id="a static member's return under another id is no cause",
        ),
        pytest.param(
            [subscribes("a", "bills"), epoch(2), target("a"), stands(2)],
            ["subscription_changed a"],
            id="a member that subscribes to something else is named",
        ),
        pytest.param(
            [*BY_PATTERN, matches("or.*", "orders", "orphans", version=9), epoch(3), stands(3)],
            ["subscription_changed a"],
            id="what a regular expression newly matches is a change of the subscription",
        ),
        pytest.param(
            [*BY_PATTERN, matches("or.*", "orders", version=9), epoch(3), stands(3)],
            ["unknown"],
            id="a regular expression resolved again to the same topics is no change",
        ),
        pytest.param(
            [asking("a", "range"), epoch(2), stands(2)], ["strategy_changed uniform range"], id="another assignor"
        ),
        pytest.param([asking("a", None), epoch(2), stands(2)], ["unknown"], id="the broker's default may be the same"),
        pytest.param(
            [metadata("b"), epoch(2), metadata("c"), epoch(3), target("b"), target("c"), stands(3)],
            ["member_joined b c"],
            id="members that joined in epochs without a target of their own",
        ),
    ],
)
def test_the_causes_are_what_the_records_prove(log: list[Written], causes: list[str]) -> None:
    assert causes_of(*read([*FIRST, *log])) == causes


@pytest.mark.parametrize(
    ("inputs", "causes"),
    [
        pytest.param(
            hashed(7, 8, target("a", 0, 1, 2, 3, 4, 5)),
            ["partitions_changed orders 4 6"],
            id="partitions gained by the hash and the target",
        ),
        pytest.param(hashed(7, 7, target("a", 0, 1, 2, 3, 4, 5)), ["unknown"], id="a larger target with the same hash"),
        pytest.param(hashed(0, 8, target("a", 0, 1, 2, 3, 4, 5)), ["unknown"], id="no hash before"),
        pytest.param(
            hashed(0, 8, target("a", 0, 1, 2, 3, 4, 5), log=(target("b"),)),
            ["unknown"],
            id="no hash before, and a member without partitions",
        ),
        pytest.param(hashed(7, 0, target("a", 0, 1, 2, 3, 4, 5)), ["unknown"], id="no hash now"),
        pytest.param(hashed(7, 8), ["unknown"], id="metadata that changed otherwise"),
        pytest.param(
            hashed(7, 8, target("a")),
            ["partitions_changed orders 4 0"],
            id="a deleted topic that is still subscribed lost its partitions",
        ),
        pytest.param(
            hashed(7, 8, target("a"), log=(subscribes("a", "bills"),)),
            ["subscription_changed a"],
            id="a topic that nobody subscribes to any more did not lose its partitions",
        ),
        pytest.param(
            hashed(7, 8, BILLS, log=(subscribes("b", "bills"),)),
            ["member_joined b"],
            id="partitions of an unknown topic that come with a member are no change of the topic",
        ),
        *(
            pytest.param(
                [*seen, *with_hashes(LATER, {1: first, 2: 8})],
                [f"partitions_changed {name} 0 4"],
                id=f"a topic that the coordinator saw after its first member, hash {first}, {name}",
            )
            for first in (0, 7)
            for name, seen in (("orders", [observation(1)]), (TOPIC_ID, []))
        ),
        pytest.param(
            [*read(FIRST)[:1], counted(10, 4), *read(FIRST)[1:], counted(19, 6), *read(GROWN, 20)],
            ["partitions_changed orders 4 6"],
            id="up to Kafka 4.0 the log has the partition counts themselves",
        ),
        pytest.param(
            [
                msgspec.structs.replace(item, leader_epoch=item.epoch + 6) if isinstance(item, TargetEpoch) else item
                for item in read([*FIRST, *SECOND_MEMBER])
            ],
            ["member_joined b", "coordinator_moved 7 8"],
            id="a newer leader epoch of the log partition stands beside the cause",
        ),
        pytest.param(
            [make_record(5, even("orders", 4, "a", "b"), generation=3), make_tombstone(9), *read(UPGRADE, 10)],
            ["migration", "member_joined n"],
            id="an upgrade is a migration with who joined",
        ),
        pytest.param(
            [*read(ENDED), make_record(10 + len(ENDED), even("orders", 4, "a"), generation=3)],
            ["migration", "member_gone b"],
            id="a downgrade is a migration with who is gone",
        ),
        pytest.param(
            read([metadata("a"), metadata("b"), epoch(9), target("a", 0), target("b", 1), stands(9)]),
            ["unknown"],
            id="what came before a group that is met in the middle of its life is unknown",
        ),
    ],
)
def test_the_causes_are_what_records_and_rounds_prove(inputs: list[GroupInput], causes: list[str]) -> None:
    assert causes_of(*inputs) == causes


@pytest.mark.parametrize(
    ("inputs", "evidence"),
    [
        (read([*FIRST, *gone("a"), epoch(2)]), "gone; a leave and a timeout look the same in the log"),
        (hashed(7, 0, target("a", 0)), "the log does not show why"),
        (hashed(7, 8), "the metadata of the topics changed, and the targets do not show how"),
    ],
)
def test_a_cause_says_what_shows_it(inputs: list[GroupInput], evidence: str) -> None:
    (found,) = decisions_of(*inputs)[-1].causes or ()
    assert found.evidence.startswith(evidence)


def test_members_of_the_new_protocol_stop_nothing_and_one_of_the_classic_among_them_may_stop_everything() -> None:
    row = decisions_of(*read([*FIRST, *SECOND_MEMBER]))[-1]
    assert (row.rebalance_protocol, row.partitions_stopped_unmoved) == ("consumer", 0)
    classic = other_key(5, GROUP, "c"), member_metadata(("orders",), protocols=["range"])
    row = decisions_of(*read([*FIRST, classic, epoch(2), target("a", 0, 1), target("c", 2, 3), stands(2)]))[-1]
    assert (row.rebalance_protocol, row.partitions_stopped_unmoved) == (None, None)


@settings(deadline=None, max_examples=examples(200))
@given(lives())
def test_no_cause_is_claimed_that_did_not_happen(group: Coordinator) -> None:
    rows = {row.decision: row for row in decisions_of(*read(group.log, 0))}
    # A group whose beginning looks like its middle has no row for having become empty.
    for told in [told for told in group.decisions if told.record in rows]:
        causes = {found.cause: found for found in rows[told.record].causes or ()}
        named = {kind: found.members for kind, found in causes.items()}
        if "unknown" in causes and causes["unknown"].evidence.startswith("the decision before"):
            assert len(causes) == 1
            continue
        assert set(named.get("member_joined", ())) == set(told.joined)
        assert set(named.get("member_gone", ())) == set(told.left)
        assert causes.keys() <= {
            "member_joined",
            "member_gone",
            "subscription_changed",
            "unknown",
        }
        if "unknown" in causes:
            assert not told.joined
            assert not told.left
