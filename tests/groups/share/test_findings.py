"""Findings about the members and topics of share groups."""

from __future__ import annotations

import pytest

from streaming.records import GroupInput, GroupObservation
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


ONE = {TOPIC: (0,)}
DECIDED = 10 + len(READY) - 2
NO_OWNER = "partitions without an owner: orders"

# Records, then rounds, and what is said of a finding after them; None where it does not hold.
FOUND: dict[str, tuple[str, list[Written], list[tuple[list[GroupInput], str | None]]]] = {
    "a member that has not reached the newest target is reconciling": (
        "reconciling",
        [*TWO, owns("a", 3, {TOPIC: (2, 3)})],
        [
            ([observation(60)], "1 of 2 members have not reached epoch 3: b"),
            ([*read([owns("b", 3, {TOPIC: (0, 1)})], 61), observation(70)], None),
        ],
    ),
    "initialized partitions that no member has are unassigned once the group had time to notice": (
        "unassigned",
        [*READY[:-4], epoch(2), target("a", {TOPIC: (0, 1, 2)}), stands(2), owns("a", 2, {TOPIC: (0, 1, 2)})],
        [
            ([observation(DECIDED + 20), observation(DECIDED + SETTLED_S)], None),
            ([observation(DECIDED + SETTLED_S + 1)], f"{NO_OWNER} (1 partition)"),
        ],
    ),
    "partitions whose state is not initialized are new to the coordinator": (
        "stale_metadata",
        FIRST,
        [
            (
                [observation(30), observation(60)],
                "new partitions that the coordinator's target does not have: orders (0 to 4 partitions)",
            )
        ],
    ),
    "and unassigned after the grace": (
        "unassigned",
        FIRST,
        [([observation(30), observation(60), observation(30 + GRACE_S)], f"{NO_OWNER} (0 to 4 partitions)")],
    ),
    "a member without a partition is idle though several could share one": (
        "idle_members",
        [
            *(member("a", "orders"), member("b", "orders"), state(ONE), epoch(1), target("a", ONE), target("b", {})),
            *(stands(1), owns("a", 1, ONE), owns("b", 1, {})),
        ],
        [
            ([observation(30, orders=1)], None),
            ([observation(90, orders=1)], "1 of 2 members own nothing, though several may share a partition: b"),
        ],
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_a_finding_holds_as_long_as_rounds_show_it(case: str) -> None:
    finding, log, steps = FOUND[case]
    life = after(log)
    for inputs, detail in steps:
        life.take(*inputs)
        assert finding_details(life).get(finding) == detail


@pytest.mark.parametrize(("asked", "visible"), [(True, {"topic_not_visible"}), (False, set())])
def test_a_subscribed_topic_is_missed_only_where_the_round_asked_for_it(asked: bool, visible: set[str]) -> None:
    log = [*READY, member("a", "orders", "nowhere"), epoch(3), stands(3), owns("a", 3, ALL)]
    rounds = [observation(at, missing="nowhere" if asked else None) for at in (60, 90)]

    assert finding_details(after(log, *rounds)).keys() == visible
