"""Many alerts that are repeated at once: each stays in the incident that it opened, and that is closed with it.

A round is ten seconds; the first repetitions are due after five minutes, thirty rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from streaming.alerts.delivery.items import rule_incident
from streaming.alerts.delivery.messages import CLOSES, GOES_ON, INCIDENTS, OPENS, PEOPLE, AttemptOutcome, Message
from tests.alerts.build import DRIFT
from tests.alerts.living import Inbox, Living, drifted

pytestmark = pytest.mark.turn(3)

Make: TypeAlias = Callable[[str], Living]

_GROUPS = tuple(f"g{number}" for number in range(12))
"""More than a digest needs (`digest_above`)."""

_DRIFT_KEY = rule_incident("c", "drift")


class _Pager(Inbox):
    """A target that sends nothing while an incident goes on."""

    def send(self, message: Message) -> AttemptOutcome:
        if message.act == GOES_ON:
            return AttemptOutcome("other alerts of its incident are still firing", 0, unsent=True)
        return super().send(message)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Living] = []

    def one(reads: str) -> Living:
        living = Living(tmp_path, DRIFT, routes=[{"targets": ["ops"], "repeat_after": "5m"}])
        made.append(living)
        living.inboxes["ops"] = _Pager(living, reads)
        living.start()
        return living

    yield one
    for living in made:
        living.stop()


def _fire_one_by_one(living: Living) -> None:
    """One alert in each of rounds 1 to 12."""
    for number, group in enumerate(_GROUPS, start=1):
        living.round(number, drift=drifted(group))


def _wait_for_repetitions(living: Living) -> list[Message]:
    """Rounds 100 and 101, when all of them are due; the messages of these rounds."""
    before = len(living.inboxes["ops"].messages)
    for number in (100, 101):
        living.round(number)
    return [message for _, message in living.inboxes["ops"].messages[before:]]


def _end_one_by_one(living: Living) -> list[Message]:
    """The end of one alert in each of rounds 102 to 113; the messages of these rounds."""
    before = len(living.inboxes["ops"].messages)
    for number, group in enumerate(_GROUPS, start=102):
        living.round(number, drift=drifted(group, verdict="identical"))
    return [message for _, message in living.inboxes["ops"].messages[before:]]


def _incidents(messages: list[Message], act: str) -> list[str | None]:
    return [message.incident for message in messages if message.act == act]


@pytest.mark.nightly
@pytest.mark.parametrize("restarts", [False, True])
def test_each_incident_is_closed_after_its_alert_was_repeated_together_with_others(make: Make, restarts: bool) -> None:
    living = make(INCIDENTS)
    _fire_one_by_one(living)
    opened = _incidents([message for _, message in living.inboxes["ops"].messages], OPENS)
    assert len(set(opened)) == 12
    if restarts:
        living.start()
    repeated = _wait_for_repetitions(living)
    assert sorted(_incidents(repeated, OPENS), key=str) == sorted(opened, key=str), "each again, in its own incident"
    if restarts:
        living.start()
    assert _incidents(_end_one_by_one(living), CLOSES) == opened


def _incident_of_rows(living: Living) -> set[tuple[Any, ...]]:
    return {
        (row[0], row[1]) for row in living.deliveries("ops", "alert_id", "incident", "outcome") if row[2] == "delivered"
    }


@pytest.mark.parametrize("reads", [INCIDENTS, PEOPLE])
def test_the_row_of_a_repetition_has_the_incident_that_its_alert_opened(make: Make, reads: str) -> None:
    living = make(reads)
    _fire_one_by_one(living)
    before = _incident_of_rows(living)
    assert all(alert == incident for alert, incident in before)
    _wait_for_repetitions(living)
    assert _incident_of_rows(living) == before
    assert [row[0] for row in living.deliveries("ops", "repeat")].count(1) == 12


@pytest.mark.nightly
@pytest.mark.parametrize("restarts", [False, True])
def test_alerts_that_share_an_incident_are_repeated_as_one_and_close_it_with_the_last(
    make: Make, restarts: bool
) -> None:
    living = make(INCIDENTS)
    living.round(1, drift=drifted(*_GROUPS))
    (repeated,) = _wait_for_repetitions(living)
    assert (repeated.act, repeated.incident) == (OPENS, _DRIFT_KEY)
    assert repeated.body.startswith("12 alerts of the rule drift are still firing.")
    if restarts:
        living.start()
    assert [(message.act, message.incident) for message in _end_one_by_one(living)] == [(CLOSES, _DRIFT_KEY)]


@pytest.mark.nightly
def test_people_are_told_of_many_repetitions_in_one_message_and_of_each_end_where_it_began(make: Make) -> None:
    living = make(PEOPLE)
    _fire_one_by_one(living)
    began = [message.incident for _, message in living.inboxes["ops"].messages]
    assert [message.title for message in _wait_for_repetitions(living)] == ["[firing] drift: 12 alerts (critical)"]
    assert [message.incident for message in _end_one_by_one(living)] == began
