"""Where groups are read from: decided by setting, past and rights, and what a probe without the log may do."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from kafka.admin import ACLOperation, ACLResourcePatternType, ResourceType

from streaming.config import Filters, Settings
from streaming.events import ClassicSeen, CommitsSeen, RoundSeen
from streaming.exceptions import SetupError
from streaming.probe import Probe, check, source_of
from streaming.probe.kafka.source import choose
from tests.probe.secured import RIGHTS, Secured
from tests.probe.witness import read_round

pytestmark = [pytest.mark.xdist_group("secured"), pytest.mark.turn(6)]


def settings(offsets_log: str = "auto") -> Settings:
    return Settings(cluster="c", offsets_log=offsets_log)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "before", "readable", "source"),
    [
        ("auto", None, True, "log"),
        ("auto", None, False, "admin"),
        ("auto", None, None, None),
        ("auto", "log", True, "log"),
        ("auto", "admin", True, "admin"),
        ("auto", "admin", False, "admin"),
        ("log", "admin", False, "log"),
        ("admin", "log", True, "admin"),
    ],
)
def test_a_setting_wins_then_the_rounds_before_then_the_right(
    wanted: str, before: str | None, readable: bool | None, source: str | None
) -> None:
    chosen = choose(settings(wanted), before, lambda: readable)
    assert (None if chosen is None else chosen.name) == source


def test_a_log_that_may_not_be_read_any_more_is_no_reason_to_number_decisions_otherwise() -> None:
    with pytest.raises(SetupError, match="grant Read on Topic '__consumer_offsets' again"):
        choose(settings(), "log", lambda: False)


@pytest.mark.parametrize(("before", "readable"), [(None, False), ("admin", True)])
def test_the_sentence_says_what_is_taken_and_what_is_lost(before: str | None, readable: bool) -> None:
    chosen = choose(settings(), before, lambda: readable)
    assert chosen is not None
    for part in ("__consumer_offsets", "every 10 s", "stay unknown", "docs/admin-mode.md"):
        assert part in chosen.sentence
    assert ("begin a new lake" in chosen.sentence) == readable
    assert "grant Read" in chosen.sentence or readable


@pytest.fixture
def secured(secured_broker: Secured) -> Iterator[Secured]:
    yield secured_broker
    secured_broker.revoke_all()


@pytest.mark.kafka
@pytest.mark.parametrize("describes_log", [False, True])
def test_without_read_on_the_log_describe_is_enough_for_rounds(secured: Secured, *, describes_log: bool) -> None:
    only_groups = (
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders", ACLResourcePatternType.LITERAL),
        RIGHTS[1],
        *RIGHTS[3:],
    )
    secured.grant(*only_groups, *([RIGHTS[2]] if describes_log else []))
    topics = {"rounds_topic": f"evenkeel.seen{describes_log:d}", "events_topic": f"evenkeel.told{describes_log:d}"}
    chosen = secured.settings(Filters(groups=("billing",), topics=("orders",)), **topics)
    deadline = time.monotonic() + 90
    while problems := check(chosen):
        assert time.monotonic() < deadline, problems
    source = source_of(chosen)
    assert source is not None
    assert source.name == "admin"

    with Probe(chosen) as probe:
        first, second = probe.round(), probe.round()
        sent = probe.requests
    assert isinstance(first, RoundSeen)
    assert (first.log, first.seen_by, first.groups) == ((), "admin", 1)
    plain = chosen.model_copy(
        update={"kafka": chosen.kafka.model_copy(update={"bootstrap_servers": secured.broker.bootstrap,
                                                         "security_protocol": "PLAINTEXT"})}
    )  # fmt: skip
    told = read_round(plain, first)
    [members] = [event for event in told.events if isinstance(event, ClassicSeen)]
    [commits] = [event for event in told.events if isinstance(event, CommitsSeen)]
    assert (members.protocol, len(members.members), commits.whole) == ("range", 1, True)
    assert list(commits.offsets) == ["orders"]
    # Nothing has changed since, so the round reports only the group itself.
    assert {type(event).__name__ for event in read_round(plain, second).events} == {"SeenGroupEvent", "TopicEvent"}
    # (Two rounds, one broker; ListOffsets three times each.)
    assert {name: sent[name] for name in ("ListGroups", "DescribeGroups", "OffsetFetch")} == {
        "ListGroups": 2, "DescribeGroups": 2, "OffsetFetch": 2
    }  # fmt: skip
    assert "Fetch" not in sent

    with Probe(chosen) as restarted:
        third = restarted.round()
    assert isinstance(third, RoundSeen)
    # A new probe reports everything once.
    assert any(isinstance(event, ClassicSeen) for event in read_round(plain, third).events)


@pytest.mark.kafka
def test_with_read_on_the_log_the_log_is_taken(secured: Secured) -> None:
    secured.grant(*RIGHTS)
    chosen = secured.settings(rounds_topic="evenkeel.by-log", events_topic="evenkeel.by-log-events")
    deadline = time.monotonic() + 90
    while (source := source_of(chosen)) is None or source.name != "log":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "no completed rebalance is missed" in source.sentence
