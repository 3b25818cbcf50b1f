"""What one target is sent when many alerts begin and end at once: digests for people, one incident per rule."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.alerts.delivery.items import (
    DELIVERED,
    FAILED,
    SKIPPED,
    Delivery,
    RetryPolicy,
    message_for,
)
from streaming.alerts.delivery.messages import (
    CLOSES,
    GOES_ON,
    INCIDENTS,
    OPENS,
    PEOPLE,
    RECORDS,
    AttemptOutcome,
    Message,
    Wording,
)
from streaming.alerts.delivery.queues import DeliveryQueue
from streaming.alerts.transitions import Transition, id_of
from streaming.config import Owner
from tests.alerts.build import transition
from tests.examples import examples
from tests.patience import until

pytestmark = pytest.mark.turn(6)

_MANY = 5_000

_DRIFT_KEY = id_of("c", "drift")


def _decided(name: str, state: str = "firing", *, rule: str = "drift", severity: str = "critical") -> Transition:
    now = round(time.time() * 1000)
    return transition(
        state, alert_id=f"{rule} {name}", cluster="c", rule=rule, severity=severity, group_id=name or None, since=now,
        round_time=now, decided_time=now,
    )  # fmt: skip


@dataclass
class _Way:
    """A target in memory."""

    reads: str
    fails: int = 0
    messages: list[Message] = field(default_factory=list)
    goes_on: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.goes_on.set()

    def send(self, message: Message) -> AttemptOutcome:
        self.goes_on.wait(60)
        self.messages.append(message)
        if self.fails:
            self.fails -= 1
            return AttemptOutcome("no", 1)
        if self.reads == INCIDENTS and message.act == GOES_ON:
            return AttemptOutcome("others still fire", 0, unsent=True)
        return AttemptOutcome(None, 1)


class _Queue:
    """A delivery queue to a target in memory; a context manager."""

    def __init__(
        self,
        way: _Way,
        digest_above: int = 10,
        retry: RetryPolicy = RetryPolicy(1, 86_400_000),  # noqa: B008 - frozen
    ) -> None:
        self._results: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self._wake = threading.Event()
        self.queue = DeliveryQueue("ops", way, retry, self._results, self._wake, digest_above)
        self.queue.remember({}, ())

    def drain(self) -> None:
        """Wait until nothing is left that could be sent."""
        until(lambda: self.queue.idle, pause_s=0.001)

    def stop(self) -> None:
        """End the queue's thread."""
        self.queue.stop()
        self.queue.join(60)

    def tell(self, *looks: Iterable[Transition]) -> list[Delivery]:
        """Offer the transitions of each pass after the previous ones were delivered; returns the deliveries."""
        for number, look in enumerate(looks):
            self.queue.offer(list(look), fresh=True)
            if number == 0:
                self.queue.start()
            self.drain()
        self.stop()
        return [self._results.get() for _ in range(self._results.qsize())]


def _tell(way: _Way, *looks: Iterable[Transition]) -> list[Delivery]:
    return _Queue(way).tell(*looks)


_NAMES = [f"g{n}" for n in range(_MANY)]


def test_a_message_names_the_owner_of_its_group_and_a_digest_the_owners_of_all() -> None:
    owners = (Owner(team="search", groups=("/^s/",)), Owner(team="billing", groups=("b",)))

    def lines(*groups: str) -> tuple[list[str], str | None]:
        message = message_for([_decided(group) for group in groups], {}, Wording(owners))
        return [line for line in message.body.splitlines() if line.startswith("owner")], message.fields.get("owner")

    assert lines("s1") == (["owner: search"], "search")
    assert lines("nobody's") == lines("") == ([], None)
    assert lines("s2", "b", "s1", "nobody's", "") == (["owners: billing, search"], None)
    assert lines("nobody's", "") == ([], None)


def test_many_at_once_are_one_message_that_says_how_many_of_what_and_how_to_see_all() -> None:
    way = _Way(PEOPLE)
    rows = _tell(way, [_decided(name) for name in _NAMES])
    (message,) = way.messages
    assert message.title == "[firing] drift: 5,000 alerts (critical)"
    lines = message.body.split("\n")
    assert lines[0] == "5,000 alerts of the rule drift are firing."
    assert lines[2:13] == [*_NAMES[:10], "and 4,990 more"]
    assert "all of them: SELECT * FROM alerts_current WHERE rule = 'drift' AND state = 'firing'" in lines
    assert len(message.body) < 1_000
    assert [(row.decided.group_id, row.outcome, row.attempt, row.incident) for row in rows] == [
        (name, DELIVERED, 1, _DRIFT_KEY) for name in _NAMES
    ]


def test_a_few_are_a_message_each() -> None:
    way = _Way(PEOPLE)
    rows = _tell(way, [_decided(name) for name in _NAMES[:10]])
    assert [message.subject for message in way.messages] == [f"drift: {name} (critical)" for name in _NAMES[:10]]
    assert [row.incident for row in rows] == [row.decided.alert_id for row in rows]


def test_a_program_gets_each_transition() -> None:
    way = _Way(RECORDS)
    _tell(way, [_decided(name) for name in _NAMES[:300]])
    assert [message.fields["group_id"] for message in way.messages] == _NAMES[:300]


def test_the_gravest_goes_first_and_silence_before_all_that_is_as_grave() -> None:
    way = _Way(PEOPLE)
    info = [_decided(name, rule="rewound", severity="info") for name in _NAMES[:50]]
    warnings = [_decided(name, rule="imbalance", severity="warning") for name in _NAMES[:1_000]]
    _tell(way, [*info, *warnings, *map(_decided, _NAMES), _decided("", rule="silence")])
    assert [message.subject for message in way.messages] == [
        "silence: c (critical)",
        "drift: 5,000 alerts (critical)",
        "imbalance: 1,000 alerts (warning)",
        "rewound: 50 alerts (info)",
    ]


def test_grave_alerts_overtake_what_waits_already() -> None:
    way = _Way(RECORDS)
    way.goes_on.clear()
    made = _Queue(way)
    made.queue.offer([_decided(name, rule="imbalance", severity="warning") for name in _NAMES[:20]], fresh=True)
    made.queue.start()
    made.queue.offer(
        [_decided("", rule="silence"), _decided("g7", "resolved", rule="imbalance", severity="warning")], True
    )
    way.goes_on.set()
    made.drain()
    made.stop()
    told = [(message.state, message.subject.split(" ")[1]) for message in way.messages]
    assert told.index(("firing", "c")) <= 1
    assert told.index(("firing", "g7")) < told.index(("resolved", "g7"))
    assert len(told) == 22


def test_one_incident_of_a_rule_is_opened_and_closed_once_while_its_alerts_end_one_by_one() -> None:
    way = _Way(INCIDENTS)
    at_once = [_decided(name, "resolved") for name in _NAMES[:4_990]]
    one_by_one = [[_decided(name, "gone")] for name in _NAMES[4_990:]]
    rows = _tell(way, map(_decided, _NAMES), at_once, *one_by_one)
    assert {message.incident for message in way.messages} == {_DRIFT_KEY}
    assert [message.act for message in way.messages] == [OPENS, *[GOES_ON] * 10, CLOSES]
    assert Counter(row.outcome for row in rows) == {DELIVERED: _MANY + 1, SKIPPED: _MANY - 1}


def test_people_are_told_of_the_ends_of_many_as_one_and_of_the_rest_one_by_one() -> None:
    way = _Way(PEOPLE)
    _tell(way, map(_decided, _NAMES), (_decided(name, "resolved") for name in _NAMES[1:]), [_decided("g0", "resolved")])
    assert [message.title for message in way.messages] == [
        "[firing] drift: 5,000 alerts (critical)",
        "[resolved] drift: 4,999 alerts (critical)",
        "[resolved] drift: g0 (critical)",
    ]


def test_further_alerts_of_a_rule_join_its_incident_while_it_is_open_and_open_their_own_after() -> None:
    way = _Way(INCIDENTS)
    first = [_decided(name) for name in _NAMES[:20]]
    ends = [_decided(name, "resolved") for name in [*_NAMES[:20], "late"]]
    _tell(way, first, [_decided("late")], ends, [_decided("after")], [_decided("after", "resolved")])
    assert [(message.act, message.incident) for message in way.messages] == [
        (OPENS, _DRIFT_KEY),
        (OPENS, _DRIFT_KEY),
        (CLOSES, _DRIFT_KEY),
        (OPENS, "drift after"),
        (CLOSES, "drift after"),
    ]


def test_incidents_that_were_opened_one_by_one_are_closed_one_by_one() -> None:
    way = _Way(INCIDENTS)
    few = [[_decided(name) for name in _NAMES[n : n + 10]] for n in range(0, 30, 10)]
    _tell(way, *few, [_decided(name, "resolved") for name in _NAMES[:30]])
    assert [(m.act, m.incident) for m in way.messages[30:]] == [(CLOSES, f"drift {name}") for name in _NAMES[:30]]


def test_a_digest_that_is_refused_is_one_row_and_tried_again() -> None:
    way = _Way(PEOPLE, fails=1)
    rows = _tell(way, map(_decided, _NAMES))
    assert len(way.messages) == 2
    assert (rows[0].outcome, rows[0].reason) == (FAILED, "no (a digest of 5,000)")
    assert Counter((row.outcome, row.attempt) for row in rows[1:]) == {(DELIVERED, 2): _MANY}


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_whatever_comes_incidents_are_open_exactly_while_something_of_them_fires(data: st.DataObject) -> None:
    """Compared with a model that only knows whether each alert's newest transition is a firing."""
    reads = data.draw(st.sampled_from([PEOPLE, INCIDENTS, RECORDS]))
    looks: list[list[Transition]] = []
    firing: Counter[str] = Counter()
    for _ in range(data.draw(st.integers(1, 6))):
        look = []
        for name in data.draw(st.lists(st.sampled_from(_NAMES[:12]), unique=True, max_size=12)):
            rule = data.draw(st.sampled_from(["drift", "lag"]))
            number, ends = divmod(firing[f"{rule} {name}"], 2)
            firing[f"{rule} {name}"] += 1
            made = _decided(name, "resolved" if ends else "firing", rule=rule)
            alert = f"{made.alert_id} {number}"
            look.append(replace(made, alert_id=alert))
        looks.append(look)
    way = _Way(reads)
    rows = _Queue(way, digest_above=3).tell(*looks)

    asked = [(d.alert_id, d.state) for look in looks for d in look]
    told = [(row.decided.alert_id, row.decided.state) for row in rows]
    assert sorted(told) == sorted(asked)
    ended = {alert for alert, state in asked if state == "resolved"}
    assert all(told.index((alert, "firing")) < told.index((alert, "resolved")) for alert in ended)

    still = {alert for alert, _ in asked} - ended
    opened: set[str] = set()
    for message in way.messages:
        if message.act == OPENS:
            opened.add(message.incident)
        elif message.act == CLOSES:
            assert message.incident in opened or reads == PEOPLE
            opened.discard(message.incident)
    kept = {row.decided.alert_id: row.incident for row in rows if row.decided.state == "firing"}
    assert opened >= {str(kept[alert]) for alert in still}
    if reads != PEOPLE:
        assert opened == {str(kept[alert]) for alert in still}


@dataclass(frozen=True)
class _Asked(RetryPolicy):
    """A retry policy without pauses that remembers for how many failures in a row it was asked."""

    longest_pause_s: float = 0.0
    give_up_ms: int = 86_400_000
    failures: list[int] = field(default_factory=list)

    def pause_s(self, failures: int) -> float:
        self.failures.append(failures)
        return 0.0


def test_after_a_success_the_pauses_of_a_target_begin_again_with_the_first() -> None:
    way, asked = _Way(PEOPLE, fails=2), _Asked()
    made = _Queue(way, retry=asked)

    class FailsAgain(list[Message]):
        def append(self, message: Message) -> None:
            super().append(message)
            way.fails += message.fields["group_id"] == "b" and len(self) == 4

    way.messages = FailsAgain()
    rows = made.tell([_decided("a")], [_decided("b")])
    assert [(row.decided.group_id, row.outcome, row.attempt) for row in rows] == [
        ("a", FAILED, 1), ("a", FAILED, 2), ("a", DELIVERED, 3), ("b", FAILED, 1), ("b", DELIVERED, 2)
    ]  # fmt: skip
    # Once for the target and once for the message, for each failure.
    assert asked.failures == [1, 1, 2, 2, 1, 1]


def test_a_refused_message_lets_one_other_go_first_and_not_all_that_come_later() -> None:
    way = _Way(PEOPLE, fails=1)
    made = _Queue(way, retry=_Asked())

    class OffersAnother(list[Message]):
        def append(self, message: Message) -> None:
            super().append(message)
            if message.fields["group_id"] == "b":
                made.queue.offer([_decided("c")], fresh=True)

    way.messages = OffersAnother()
    made.tell([_decided("a"), _decided("b")])
    assert [message.fields["group_id"] for message in way.messages] == ["a", "b", "a", "c"]


def test_a_bug_in_a_sender_loses_no_message() -> None:
    class Broken(_Way):
        def send(self, message: Message) -> AttemptOutcome:
            if self.fails:
                self.fails -= 1
                raise KeyError
            return super().send(message)

    way = Broken(PEOPLE, fails=2)
    _Queue(way, retry=_Asked()).tell([_decided("g")])
    assert [message.fields["group_id"] for message in way.messages] == ["g"]
