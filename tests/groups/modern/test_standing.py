"""What `group_health` says of a group that the broker assigns, before its first decision and after its last."""

from __future__ import annotations

import pytest

from tests.groups.build import GROUP, Life
from tests.groups.coordinator import Written
from tests.groups.modern_log import FIRST, epoch, gone, metadata, observation, owns, read, stands, target
from tests.offsets_log.written import other_key


def standing(*log: Written) -> tuple[str | None, int | None, str | None, str | None]:
    """State, generation, verdict and its reason; nothing has drifted in any of these groups."""
    life = Life()
    row = life.take(*read(list(log)), observation(10 + len(log))).group_health[-1]
    assert row.drifted_count == 0
    return row.state, row.generation, row.verdict, row.verdict_reason


def test_a_group_whose_first_record_shows_it_empty_has_its_epoch_and_no_verdict() -> None:
    assert standing(epoch(5)) == ("Empty", 5, "not_applicable", "the group is empty")


def test_a_group_that_is_empty_after_a_decision_keeps_that_decisions_epoch_until_a_newer_one() -> None:
    state, generation, verdict, _ = standing(*FIRST, *gone("a"))
    assert (state, generation, verdict) == ("Empty", 1, "identical")


def test_a_member_without_a_target_waits_for_one() -> None:
    reason = "no target assignment of the group has been read yet"
    assert standing(metadata("a"), epoch(5)) == ("Assigning", None, "pending", reason)
    assert standing(metadata("a"), epoch(1), stands(1))[2] != "pending"


@pytest.mark.parametrize("between", [False, True], ids=["no round between", "a round between"])
def test_a_new_group_that_has_not_decided_yet_has_no_verdict_of_the_deleted_one_of_its_name(between: bool) -> None:
    twice = [metadata("a"), epoch(1), target("a", 0, 1, 2, 3), stands(1), owns("a", 1, 0, 1, 2, 3)]
    twice += [metadata("b"), epoch(2), target("b", 0, 1), stands(2)]
    end = [*gone("a"), *((other_key(kind, GROUP, *of), None) for kind, *of in ((7, "a"), (6,), (3,)))]
    log = [*twice, *end, metadata("c"), epoch(1)]
    cut = 10 + len(twice) + len(end)
    life = Life()
    inputs = read(log)
    life.take(*(one for one in inputs if one.position < cut), *([observation(cut)] if between else []))
    life.take(*(one for one in inputs if one.position >= cut), observation(10 + len(log)))
    assert [row.verdict for row in life.rows.drift] == ["identical", "drifted"]
    health = life.rows.group_health[-1]
    assert (health.members, health.verdict, health.drifted_count, health.imbalance) == (1, "pending", 0, None)
