"""The first start on an estate that is old: one summary, and alerts once somebody has accepted it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.alerts import accept
from streaming.alerts.delivery.outcome import INCIDENTS
from streaming.exceptions import SetupError
from tests.alerts.build import DRIFT, SILENCE, UNEVEN, time_of
from tests.alerts.living import Living, drifted

pytestmark = pytest.mark.turn(3)


@pytest.fixture
def living(tmp_path: Path) -> Iterator[Living]:
    made = Living(
        tmp_path, DRIFT, UNEVEN, SILENCE, targets=("chat", "pager"), reads={"pager": INCIDENTS}, first_start="summary"
    )
    yield made
    made.stop()


def _told(living: Living) -> list[str]:
    """What the chat was sent, but for the silence."""
    return [title for _, title in living.inboxes["chat"].told if "silence" not in title]


def _uneven(*groups: str) -> list[dict[str, object]]:
    return [{"group_id": group, "imbalance": 3.0} for group in groups]


def test_one_summary_comes_once_everything_has_had_its_time_and_nothing_else_until_it_is_accepted(
    living: Living,
) -> None:
    living.round(0, drift=drifted("a", "b"), group_health=_uneven("a"))
    for number in range(1, 5):
        living.round(number)
    chat, pager = living.inboxes["chat"], living.inboxes["pager"]
    assert chat.told == []
    living.round(5)
    assert chat.told == [(0.8, "[summary] first start on c: 3 alerts would fire")]
    assert chat.last.body.splitlines()[2:4] == ["drift (critical): 2 firing", "uneven (warning): 1 firing"]
    living.round(6, drift=drifted("c"))
    living.start()
    living.round(7)
    assert (len(chat.told), pager.told) == (1, [])
    living.wall_ms += 24 * 3_600_000
    for _ in range(3):
        living.look()
    assert len(_told(living)) == 1, "rounds that are a day old say nothing of now"
    living.writer.shift_ms = 24 * 3_600_000
    living.writer.write(8, {}, {}, {}, {})
    living.look(time_of(11) + 24 * 3_600_000 + 1_000)
    assert _told(living)[1:] == ["[summary] first start on c: still nothing is sent"]
    (reminder,) = (message.body for _, message in chat.messages if "still nothing" in message.title)
    assert "drift (critical): 3 firing" in reminder

    said = accept(living.writer.root, "c")
    assert said.startswith("Accepted: alerts of the cluster c that fire from now on are sent.")
    for number, verdicts in ((12, drifted("d")), (13, drifted("a", verdict="identical")), (14, drifted("a"))):
        living.writer.write(number, {"drift": verdicts})
        living.look(time_of(number) + 24 * 3_600_000 + 1_000)
    assert _told(living)[2:] == [f"[firing] drift: {group} (critical)" for group in "cda"]
    assert accept(living.writer.root, "c").endswith("was accepted before: alerts are sent.")


def test_what_is_about_evenkeel_itself_is_sent_before_anything_is_accepted(living: Living) -> None:
    living.round(0, drift=drifted("a"))
    for seconds in (10, 20, 30, 40):
        living.look(living.wall_ms + seconds * 1_000)
    assert [title for _, title in living.inboxes["pager"].told] == ["[firing] silence: c (critical)"]


def test_where_nothing_fires_there_is_nothing_to_accept(living: Living) -> None:
    for number in range(6):
        living.round(number)
    living.round(6, drift=drifted("a"))
    assert [title for _, title in living.inboxes["chat"].told] == ["[firing] drift: a (critical)"]


def test_an_estate_whose_alerts_were_delivered_by_an_earlier_release_goes_on(tmp_path: Path) -> None:
    living = Living(tmp_path, DRIFT)
    living.round(0, drift=drifted("a"))
    living.settings = living.settings.model_copy(
        update={"alerts": living.settings.alerts.model_copy(update={"first_start": "summary"})}
    )
    living.start()
    living.round(1, drift=drifted("b"))
    living.stop()
    assert [title for _, title in living.inboxes["ops"].told] == [
        "[firing] drift: a (critical)",
        "[firing] drift: b (critical)",
    ]


def test_there_is_nothing_to_accept_where_no_alerter_ran(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No alerter has run on the lake"):
        accept(str(tmp_path), "c")
