"""Where groups are read from: decided by setting, past and rights, and what a probe without the log may do."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.admin import ACLOperation, ACLResourcePatternType, ResourceType
from kafka.protocol.admin import ListGroupsRequest

from streaming.config import Filters, Settings
from streaming.exceptions import SetupError
from streaming.probe import Probe, RoundAbandonedError, StopRequestedError, check
from streaming.probe.deadline import Deadline
from streaming.probe.kafka import run as source
from streaming.probe.kafka.requests import Requests
from streaming.probe.kafka.run import choose, is_readable
from streaming.records import Seen
from tests.probe.secured import RIGHTS, Secured
from tests.probe.witness import read_round, requests_sent

pytestmark = [pytest.mark.xdist_group("broker"), pytest.mark.turn(6)]


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
    for part in ("__consumer_offsets", "every 10 s", "stay unknown", "docs/admin-mode.md"):
        assert part in chosen.sentence
    assert ("begin a new lake" in chosen.sentence) == readable
    assert "grant Read" in chosen.sentence or readable


UNKNOWN, NO_LEADER, FORBIDDEN = 3, 5, 29


class Brokers(Requests):
    """A cluster of two brokers, of which another one may answer each request for metadata.

    Attributes:
        asked: Requests for metadata so far.
    """

    def __init__(self, errors: Sequence[int], groups: int = 1) -> None:
        self._errors, self._groups = errors, groups
        self.asked = 0

    def ask(self, work: Sequence[tuple[int | None, Any]], deadline: Deadline) -> list[Any]:
        deadline.remaining()
        groups = [
            SimpleNamespace(group_id=f"g{number}", group_state="Empty", protocol_type="consumer", group_type="classic")
            for number in range(self._groups)
        ]
        listed = SimpleNamespace(API_VERSION=5, error_code=0, groups=groups)
        return [listed if isinstance(request, ListGroupsRequest) else self._metadata(request) for _, request in work]

    def _metadata(self, request: Any) -> Any:
        """The next answer; the last one again where there is no other."""
        error = self._errors[min(self.asked, len(self._errors) - 1)]
        self.asked += 1
        rights = [] if error else [ACLOperation.READ.value, ACLOperation.DESCRIBE.value]
        topic = SimpleNamespace(
            name="__consumer_offsets", error_code=error, authorized_operations=rights, partitions=[], topic_id=None
        )
        brokers = [SimpleNamespace(node_id=node, host="h", rack=None) for node in (1, 2)]
        return SimpleNamespace(
            API_VERSION=12, cluster_id="id", brokers=brokers, topics=[topic] if request.topics else []
        )


def readable(monkeypatch: pytest.MonkeyPatch, brokers: Brokers, again_s: float = 0.0) -> bool | None:
    monkeypatch.setattr(source, "Requests", lambda _: brokers)
    monkeypatch.setattr(source, "_AGAIN_S", again_s)
    return is_readable(brokers, settings(), Deadline.after(60))


@pytest.mark.parametrize(
    ("errors", "groups", "expected", "asked"),
    [
        *(
            pytest.param([UNKNOWN] * unknown + [0], 1, True, None, id=f"a starting broker knows it after {unknown}")
            for unknown in (1, 2, 3, 4)
        ),
        # Twice each time: for the rights, and for the brokers.
        pytest.param([UNKNOWN], 1, False, 6, id="one that stays missing beside groups is hidden"),
        pytest.param([FORBIDDEN], 1, False, 1, id="a denial counts at once"),
        pytest.param([UNKNOWN], 0, None, 2, id="without groups one that is missing is not waited for"),
    ],
)
def test_a_log_is_readable_as_far_as_the_brokers_answers_decide_it(
    monkeypatch: pytest.MonkeyPatch, errors: list[int], groups: int, expected: bool | None, asked: int | None
) -> None:
    brokers = Brokers(errors, groups)
    assert readable(monkeypatch, brokers) is expected
    assert asked in {None, brokers.asked}


@pytest.mark.parametrize(
    ("errors", "why"),
    [
        ([UNKNOWN, UNKNOWN, UNKNOWN, 0, UNKNOWN], "do not agree on whether there is a topic __consumer_offsets"),
        ([NO_LEADER], "LeaderNotAvailableError"),
    ],
)
def test_brokers_that_do_not_agree_and_a_log_without_a_leader_decide_nothing(
    monkeypatch: pytest.MonkeyPatch, errors: list[int], why: str
) -> None:
    with pytest.raises(RoundAbandonedError, match=why):
        readable(monkeypatch, Brokers(errors))


def test_a_stop_ends_the_wait_for_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopping(Brokers):
        def ask(self, work: Sequence[tuple[int | None, Any]], deadline: Deadline) -> list[Any]:
            answers = super().ask(work, deadline)
            if isinstance(work[0][1], ListGroupsRequest):
                deadline.stop.set()
            return answers

    # Without the stop the deadline would end it, by another error.
    with pytest.raises(StopRequestedError):
        readable(monkeypatch, Stopping([UNKNOWN]), again_s=3_600.0)


@pytest.mark.kafka
@pytest.mark.parametrize("describes_log", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_without_read_on_the_log_describe_is_enough_for_rounds(secured: Secured, *, describes_log: bool) -> None:
    only_groups = (
        (ACLOperation.DESCRIBE, ResourceType.TOPIC, "orders", ACLResourcePatternType.LITERAL),
        RIGHTS[1],
        *RIGHTS[3:],
    )
    secured.grant(*only_groups, *([RIGHTS[2]] if describes_log else []))
    topics = {"rounds_topic": f"evenkeel.seen{describes_log:d}", "events_topic": f"evenkeel.told{describes_log:d}"}
    chosen = secured.settings(Filters(groups=("billing",), topics=("orders",)), **topics)
    assert check(chosen) == []
    with Probe(chosen) as probe, requests_sent() as sent:
        first, second = probe.round(), probe.round()
    assert (first.log, first.source, first.groups) == ((), "admin", 1)
    plain = chosen.model_copy(
        update={"kafka": chosen.kafka.model_copy(update={"bootstrap_servers": secured.broker.bootstrap,
                                                         "security_protocol": "PLAINTEXT"})}
    )  # fmt: skip
    told = read_round(plain, first).groups["billing"].seen
    assert (told.classic.protocol, len(told.classic.members), told.commits.whole) == ("range", 1, True)
    assert list(told.commits.offsets) == ["orders"]
    # Nothing has changed since, so the round reports only the group itself.
    assert read_round(plain, second).groups["billing"].seen == Seen("admin", looked=True)
    # Two rounds, one broker; ListOffsets three times each.
    assert {name: sent[name] for name in ("ListGroups", "DescribeGroups", "OffsetFetch")} == {
        "ListGroups": 2, "DescribeGroups": 2, "OffsetFetch": 2
    }  # fmt: skip
    assert "Fetch" not in sent

    with Probe(chosen) as restarted:
        third = restarted.round()
    # A new probe reports everything once.
    again = read_round(plain, third).groups["billing"].seen
    assert again.classic is not None


@pytest.mark.kafka
def test_with_read_on_the_log_the_log_is_taken(secured: Secured) -> None:
    secured.grant(*RIGHTS)
    chosen = secured.settings(rounds_topic="evenkeel.by-log", events_topic="evenkeel.by-log-events")
    with Probe(chosen) as probe:
        assert probe.round().source == "log"
