"""The sticky task assignor by hand: what a reader would expect of each release."""

from __future__ import annotations

import pytest

from assignors import BadGroup, CannotTell, LeaderWouldFail, TooMuchWork, UnknownLibrary, at_most
from assignors.streams import STREAMS_ERAS, StreamsGroup, StreamsMember, Subtopology, assign_tasks

_STATEFUL = Subtopology("0", 4, stateful=True)


@pytest.mark.parametrize("release", STREAMS_ERAS)
def test_a_first_assignment_is_even_with_standby_tasks_on_the_other_process(release: str) -> None:
    group = StreamsGroup((StreamsMember("a", "p"), StreamsMember("b", "q")), (_STATEFUL,), 1)

    given = assign_tasks(group, release)

    assert given.active == {"a": {"0": [0, 2]}, "b": {"0": [1, 3]}}
    assert given.fits(given.active, {"a": {"0": (1, 3)}, "b": {"0": (0, 2)}})


@pytest.mark.parametrize("release", STREAMS_ERAS)
def test_a_task_goes_to_the_standby_member_of_the_one_that_left(release: str) -> None:
    b = StreamsMember("b", "q", active=(("0", (0, 1)),), standby=(("0", (2,)),))
    c = StreamsMember("c", "r", standby=(("0", (3,)),))

    given = assign_tasks(StreamsGroup((b, c, StreamsMember("d", "s")), (_STATEFUL,)), release)

    assert given.active == {"b": {"0": [0, 1]}, "c": {"0": [3]}, "d": {"0": [2]}}


@pytest.mark.parametrize("release", STREAMS_ERAS)
def test_a_subtopology_without_state_gets_no_standby_tasks(release: str) -> None:
    group = StreamsGroup((StreamsMember("a", "p"), StreamsMember("b", "q")), (Subtopology("0", 2),), 1)

    assert assign_tasks(group, release).standby == {"a": {}, "b": {}}


def test_state_on_a_disk_brings_a_task_back_since_4_4() -> None:
    members = StreamsMember("a", "p"), StreamsMember("b", "q", offsets=(("0", 0, 70),))
    group = StreamsGroup(members, (Subtopology("0", 1, stateful=True),))

    assert assign_tasks(group, "4.3.1").active == {"a": {"0": [0]}, "b": {}}
    assert assign_tasks(group, "4.4.0").active == {"a": {}, "b": {"0": [0]}}


@pytest.mark.parametrize("release", STREAMS_ERAS)
def test_a_group_without_members_has_no_target(release: str) -> None:
    with pytest.raises(LeaderWouldFail, match="TaskAssignorException"):
        assign_tasks(StreamsGroup((), (_STATEFUL,)), release)


@pytest.mark.parametrize("release", STREAMS_ERAS)
def test_work_has_a_limit(release: str) -> None:
    group = StreamsGroup((StreamsMember("a", "p"),), (Subtopology("0", 100_000),))

    with at_most(10_000), pytest.raises(TooMuchWork):
        assign_tasks(group, release)


def test_bad_groups_and_releases_are_refused() -> None:
    with pytest.raises(BadGroup, match="subtopology appears twice"):
        StreamsGroup((), (_STATEFUL, _STATEFUL))
    with pytest.raises(BadGroup, match="give 0 to 100"):
        StreamsGroup((), (), -1)
    with pytest.raises(CannotTell, match=r"brokers before 4\.2, where the protocol was early access"):
        assign_tasks(StreamsGroup((), ()), "4.1.1")
    with pytest.raises(UnknownLibrary, match="not a Kafka release"):
        assign_tasks(StreamsGroup((), ()), "sarama")
