"""Many simultaneous alerts are a few messages; an interruption loses none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.alerts.build import DRIFT, rules
from tests.alerts.delivery.delivered import Lake, until_idle
from tests.alerts.services import Services

pytestmark = pytest.mark.turn(6)

_CHAT = f"discord://{'4' * 24}/{'t' * 64}"


def _chat(services: Services) -> list[str]:
    return [request.json["content"].split("\r\n")[0] for request in services.requests if request.host == "discord.com"]


def _rows(lake: Lake, target: str) -> Counter[tuple[str, str]]:
    return Counter((outcome, state) for outcome, state, *_ in lake.deliveries(target))


def test_a_restart_in_the_middle_of_a_storm_sends_only_what_has_no_row(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.rules = rules(tmp_path, DRIFT, DRIFT.replace("name: drift", "name: seen").replace("critical", "warning"))
    lake.write(**dict.fromkeys((f"g{n}" for n in range(500)), "drifted"))
    # The first message is taken, the second refused; then the process ends.
    with Services(204, 500) as services, lake.alerter(chat=_CHAT) as alerter:
        alerter.poll()
        while len(services.requests) < 2:
            assert alerter.wake.wait(60)
            alerter.wake.clear()
            alerter.poll()
    assert _chat(services)[0] == "[firing] drift: 500 alerts (critical)"
    assert _rows(lake, "chat") == {("delivered", "firing"): 500, ("failed", "firing"): 1}
    with Services() as services, lake.alerter(chat=_CHAT) as alerter:
        alerter.poll()
        until_idle(alerter)
    assert _chat(services) == ["[firing] seen: 500 alerts (warning)"]
    assert _rows(lake, "chat") == {("delivered", "firing"): 1_000, ("failed", "firing"): 1}
