"""The verdict that `group_health` repeats where no decision has one."""

from __future__ import annotations

from streaming.records import GroupInput
from tests.groups.build import Life, make_commit, make_observation, make_topic


def standing(*inputs: GroupInput) -> tuple[str | None, str | None, int | None]:
    row = Life().take(*inputs).group_health[-1]
    return row.verdict, row.verdict_reason, row.drifted_count


def test_members_without_a_record_wait_for_one() -> None:
    reason = "the group has members, but no record of its membership has been read yet"
    assert standing(make_observation(10, make_topic("x", 1), state="Stable")) == ("pending", reason, 0)


def test_a_group_of_which_the_log_has_nothing_waits_for_something() -> None:
    reason = "the log has neither a membership nor a committed offset of the group"
    assert standing(make_observation(10, state="Empty")) == ("pending", reason, 0)


def test_offsets_without_a_membership_have_no_verdict() -> None:
    reason = "no membership: offsets are committed without joining the group (assign and commit)"
    inputs = make_commit(5, 7, topic="x"), make_observation(10, make_topic("x", 1), state="Empty")
    assert standing(*inputs) == ("not_applicable", reason, 0)
