"""Findings about the members and topics of share groups."""

from __future__ import annotations

import pytest

from streaming.records import GroupObservation
from tests.groups.build import Life
from tests.groups.coordinator import TOPIC, Written
from tests.groups.modern_log import read
from tests.groups.share.share_log import ALL, FIRST, READY, TWO, epoch, member, observation, owns, stands, state, target

SETTLED_S = 45
GRACE_S = 600


def after(log: list[Written], *rounds: GroupObservation) -> Life:
    return Life.after(*read(log), *rounds)


def finding_details(life: Life) -> dict[str, str]:
    """Details of the newest findings about the present, by their names."""
    newest = life.rows.group_health[-1].findings
    return {one.finding: one.detail for one in newest if one.finding != "unexplained_assignment"}


def test_a_group_at_rest_has_no_findings_and_is_stable() -> None:
    life = after(
        [*TWO, owns("a", 3, {TOPIC: (2, 3)}), owns("b", 3, {TOPIC: (0, 1)})], observation(60), observation(900)
    )

    assert finding_details(life) == {}
    row = life.rows.group_health[-1]
    assert (row.state, row.verdict, row.members, row.group_type) == ("Stable", "identical", 2, "share")


def test_a_member_that_has_not_reached_the_newest_target_is_reconciling() -> None:
    life = after([*TWO, owns("a", 3, {TOPIC: (2, 3)})], observation(60))

    assert finding_details(life)["reconciling"] == "1 of 2 members have not reached epoch 3: b"
    life.take(*read([owns("b", 3, {TOPIC: (0, 1)})], 61), observation(70))
    assert "reconciling" not in finding_details(life)


def test_initialized_partitions_that_no_member_has_are_unassigned_once_the_group_had_time_to_notice() -> None:
    life = after([*READY[:-4], epoch(2), target("a", {TOPIC: (0, 1, 2)}), stands(2), owns("a", 2, {TOPIC: (0, 1, 2)})])
    decided = 10 + len(READY) - 2
    life.take(observation(decided + 20), observation(decided + SETTLED_S))
    assert "unassigned" not in finding_details(life)

    life.take(observation(decided + SETTLED_S + 1))

    assert finding_details(life)["unassigned"] == "partitions without an owner: orders (1 partition)"


def test_partitions_whose_state_is_never_initialized_are_unassigned_after_the_grace() -> None:
    life = after(FIRST, observation(30), observation(60))
    assert (
        finding_details(life)["stale_metadata"]
        == "new partitions that the coordinator's target does not have: orders (0 to 4 partitions)"
    )

    life.take(observation(30 + GRACE_S))

    assert finding_details(life)["unassigned"] == "partitions without an owner: orders (0 to 4 partitions)"


def test_a_member_without_a_partition_is_idle_though_several_could_share_one() -> None:
    one = {TOPIC: (0,)}
    log = [member("a", "orders"), member("b", "orders"), state(one), epoch(1), target("a", one), target("b", {})]
    life = after([*log, stands(1), owns("a", 1, one), owns("b", 1, {})], observation(30, orders=1))
    assert "idle_members" not in finding_details(life)

    life.take(observation(90, orders=1))

    assert (
        finding_details(life)["idle_members"] == "1 of 2 members own nothing, though several may share a partition: b"
    )


@pytest.mark.parametrize(("asked", "visible"), [(True, {"topic_not_visible"}), (False, set())])
def test_a_subscribed_topic_is_missed_only_where_the_round_asked_for_it(asked: bool, visible: set[str]) -> None:
    log = [*READY, member("a", "orders", "nowhere"), epoch(3), stands(3), owns("a", 3, ALL)]
    rounds = [observation(at, missing="nowhere" if asked else None) for at in (60, 90)]

    assert finding_details(after(log, *rounds)).keys() == visible
