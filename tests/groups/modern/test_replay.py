"""Modern groups: one target epoch is one decision, there is no output in between, and nothing unknown is reported."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from streaming.groups.modern.group import (
    ModernDecision,
    ModernGroup,
    asked_assignors,
    state_of,
    subscribed,
)
from streaming.groups.modern.replay import replay
from streaming.offsets_log import OtherKey, Rejected, UnknownVersion, decode_key, decode_modern
from streaming.records import (
    CONSUMER,
    SHARE,
    STREAMS,
    CurrentAssignment,
    IdPartitions,
    KnownTopics,
    ModernInput,
    ModernMember,
    Removed,
    ResolvedRegex,
    StreamsTopology,
    TargetAssignment,
)
from tests.examples import examples
from tests.groups.build import GROUP
from tests.groups.coordinator import Coordinator, Owned, Told, Written, lives
from tests.groups.modern_log import TOPIC_ID, epoch, owns, stands, target
from tests.offsets_log.written import (
    member_metadata,
    other_key,
    regular_expression,
    target_epoch,
)

Said = ModernDecision | Removed


def decoded(log: list[Written]) -> list[ModernInput]:
    items = []
    for offset, (key_bytes, value) in enumerate(log):
        key = decode_key(key_bytes)
        assert isinstance(key, OtherKey)
        item = decode_modern(offset, 1_000 + offset, key, value, 3)
        assert not isinstance(item, Rejected | UnknownVersion), item
        items.append(item)
    return items


def played(
    items: list[ModernInput], group: ModernGroup | None = None, *, born: bool = False
) -> tuple[ModernGroup | None, list[Said]]:
    said = []
    for item in items:
        group, word = replay(group, item, born=born)
        if isinstance(word, Removed):
            born = True
        if word is not None:
            said.append(word)
    return group, said


def lived(*writes: Written) -> tuple[ModernGroup, list[Said]]:
    group, said = played(decoded(list(writes)))
    assert group is not None
    return group, said


def owned(*partitions: int) -> IdPartitions:
    return ((TOPIC_ID, partitions),) if partitions else ()


def metadata(name: str, **fields: object) -> Written:
    return other_key(5, GROUP, name), member_metadata(["t"], **fields)  # type: ignore[arg-type]


def gone(key_type: int, part: str | None = None) -> Written:
    return other_key(key_type, GROUP, part), None


FIRST = (metadata("a"), epoch(1), target("a", 0, 1), stands(1), owns("a", 1, 0, 1))
SECOND = (metadata("b"), epoch(2), target("a", 0), target("b", 1), stands(2))


def test_the_first_heartbeat_of_a_group_is_one_decision_with_nothing_before() -> None:
    group, said = lived(*FIRST)
    assert said == [
        ModernDecision(
            record=3,
            record_time=1_003,
            log_partition=3,
            group_type="consumer",
            epoch=1,
            group_epoch=1,
            became_empty=False,
            exact=True,
            members=(group.members["a"],),
            subscriptions={"a": 0},
            topic_lists=(("t",),),
            assignors=(),
            targets={"a": owned(0, 1)},
            before={},
            joined=("a",),
            left=(),
            replaced=(),
            undescribed=(),
        )
    ]
    assert state_of(group) == "Stable"


@pytest.mark.parametrize(
    ("group_type", "of_epoch", "of_member", "of_target", "of_current"),
    [(CONSUMER, 3, 5, 7, 8), (SHARE, 11, 10, 13, 14), (STREAMS, 17, 19, 21, 22)],
)
def test_a_tombstone_removes_what_its_key_names_from_groups_of_every_type(
    group_type: str, of_epoch: int, of_member: int, of_target: int, of_current: int
) -> None:
    where = (10, 1_000, group_type, 3)
    group: ModernGroup | None = None
    for item in (
        ModernMember(*where, "a", None, None, "client", "/10.0.0.1", ()),
        TargetAssignment(*where, "a", ()),
        CurrentAssignment(*where, "a", 1, 0, 0, ()),
    ):
        group, _ = replay(group, item, born=True)
    for tombstone, left in ((of_current, (1, 1, 0)), (of_target, (1, 0, 0)), (of_member, (0, 0, 0))):
        group, _ = replay(group, Removed(*where, tombstone, "a"))
        assert (len(group.members), len(group.targets), len(group.currents)) == left
    end = Removed(*where, of_epoch)
    assert replay(group, end) == (None, end)


def test_tombstones_remove_a_resolved_expression_the_known_topics_and_a_topology() -> None:
    where, streams = (10, 1_000, CONSUMER, 3), (10, 1_000, STREAMS, 3)
    group: ModernGroup | None = None
    group, _ = replay(group, ResolvedRegex(*where, "or.*", ("orders",), 1, 1_000), born=True)
    group, _ = replay(group, StreamsTopology(*streams, 1, ()))
    group, _ = replay(group, KnownTopics(*where, ((TOPIC_ID, "orders", 4),)))
    assert (list(group.regexes), group.topology is None, group.topics is None) == (["or.*"], False, False)
    group, _ = replay(group, Removed(*where, 16, "or.*"))
    group, _ = replay(group, Removed(*streams, 23))
    group, _ = replay(group, Removed(*where, 4))
    assert (list(group.regexes), group.topology, group.topics) == ([], None, None)


def test_a_group_met_in_the_middle_tells_what_was_before_only_once_it_knows() -> None:
    _, said = lived(
        *FIRST[3:], *SECOND, metadata("c"), epoch(3), target("c"), stands(3), metadata("d"), epoch(4), stands(4)
    )
    decisions = [word for word in said if isinstance(word, ModernDecision)]
    assert [decision.exact for decision in decisions] == [False, True, True, True]
    assert [decision.before is None for decision in decisions] == [True, True, False, False]
    assert [decision.joined for decision in decisions] == [None, None, ("c",), ("d",)]
    assert [decision.undescribed for decision in decisions] == [(), ("a",), ("a",), ("a", "d")]


def test_the_first_epoch_of_a_group_is_1_and_since_4_3_which_writes_the_time_of_a_target_2() -> None:
    start = (metadata("a"), epoch(2), target("a", 0, 1))
    for end, exact in ((stands(2), False), ((other_key(6, GROUP), target_epoch(2, 1_700_000_000_000)), True)):
        _, (decision,) = lived(*start, end)
        assert isinstance(decision, ModernDecision)
        assert (decision.exact, decision.before) == (exact, {} if exact else None)


def test_members_of_the_classic_protocol_and_the_assignor_asked_for_are_known() -> None:
    group, _ = lived(
        metadata("a", protocols=["range", "sticky"], assignor="range"),
        metadata("b", assignor="uniform"),
        metadata("c", assignor="uniform"),
        metadata("d"),
    )
    assert group.members["a"].classic_protocols == ("range", "sticky")
    assert group.members["b"].classic_protocols is None
    assert asked_assignors(group) == ("uniform",)
    (item,) = decoded([metadata("c", assignor="range")])
    replay(group, item)
    assert asked_assignors(group) == ("range",)
    (item,) = decoded([metadata("a")])
    replay(group, item)
    assert asked_assignors(group) == ("range", "uniform")


def test_a_decision_is_told_with_what_a_regular_expression_stood_for_then() -> None:
    group, _ = lived(metadata("a", regex="o.*"))
    assert subscribed(group, group.members["a"]) is None
    resolved = (other_key(16, GROUP, "o.*"), regular_expression(["orders"], 1, 2))
    _, said = lived(metadata("a", regex="o.*"), epoch(1), target("a"), stands(1), resolved, epoch(2), stands(2))
    first, second = said
    assert isinstance(first, ModernDecision)
    assert isinstance(second, ModernDecision)
    assert (first.topics_of("a"), second.topics_of("a")) == (None, ("orders", "t"))


@settings(max_examples=examples(300), deadline=None)
@given(lives())
def test_what_is_told_is_what_the_coordinator_did(life: Coordinator) -> None:
    group, said = played(decoded(life.log), born=True)
    assert [word.record for word in said if isinstance(word, Removed)] == life.ends
    assert [as_told(word) for word in said if isinstance(word, ModernDecision)] == life.decisions
    assert all(word.exact for word in said if isinstance(word, ModernDecision))
    known = group or ModernGroup("consumer")
    assert list(known.members) == list(life.members)
    assert plain({name: item.partitions for name, item in known.targets.items()}) == life.targets
    assert {name: (item.epoch, numbers(item.partitions)) for name, item in known.currents.items()} == life.currents


def as_told(decision: ModernDecision) -> Told:
    assert decision.before is not None
    assert decision.joined is not None
    assert decision.left is not None
    return Told(
        record=decision.record,
        epoch=decision.epoch,
        members=names(decision),
        targets=plain(decision.targets),
        before=plain(decision.before),
        joined=decision.joined,
        left=decision.left,
        replaced=decision.replaced,
        became_empty=decision.became_empty,
    )


def names(decision: ModernDecision) -> tuple[str, ...]:
    return tuple(member.member_id for member in decision.members)


def numbers(partitions: IdPartitions) -> tuple[int, ...]:
    return tuple(number for _, of_topic in partitions for number in of_topic)


def plain(targets: dict[str, IdPartitions]) -> Owned:
    return {name: numbers(partitions) for name, partitions in targets.items()}
