"""A server over a made lake, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards import Site
from streaming.config import load_settings
from streaming.serve.app import application
from streaming.serve.metrics.scrapes import Scrapes
from streaming.serve.model import Model
from tests.dashboards.made_events import add_events, add_load
from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake, stories
from tests.serve.client import Served


def add_note(lake: MadeLake, number: int) -> None:
    """A mark, and a mute that holds for an hour."""
    now = int(lake.end.timestamp() * 1000)
    written = {"cluster": CLUSTER, "made_by": "ann@host", "written_time": now, "event_date": now // 86_400_000}
    until = now + 3_600_000 + number
    lake.add(
        "marks", written | {"mark_id": f"k{number}", "text": f"deploy {number}", "mark_time": now - number * 1_000}
    )
    lake.add("mutes", written | {"mute_id": f"m{number}", "kind": "group", "name": f"g{number}", "reason": "a test",
                                 "from_time": now - 60_000, "until_time": until, "ended": False})  # fmt: skip


@pytest.fixture(scope="session")
def serve_over() -> Callable[..., Served]:
    def make(root: Path, lake: MadeLake, *, polled: bool = True, **settings: Any) -> Served:
        loaded = load_settings(lake=str(root), serve=settings)
        model = Model(loaded, steady=lambda: served.steady_s)
        serve = loaded.serve
        site = Site(model.lake, str(root), loaded.owners, rules=loaded.alerts.rules)
        scrapes = Scrapes(model, serve, site.alerters_live)
        served = Served(lake, model, scrapes, application(model, scrapes, serve, site), {})
        # Time stands still, unless a test says how long a cluster has been quiet: on a busy machine half a minute can
        # pass between the poll and the question.
        model.lake.quiet_s = lambda cluster: served.quiet_s.get(cluster, 0.0)  # type: ignore[method-assign]
        if polled:
            served.poll()
        return served

    return make


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Iterator[Served]:
    """A lake with every story and hostile names; tests only read, and put `quiet_s` back."""
    root = tmp_path_factory.mktemp("serve") / "lake"
    groups = [*stories(), *(MadeGroup(name, topics={name[:200]: 2}) for name in HOSTILE)]
    lake = MadeLake(root, groups, rounds=130)
    for number in range(9):
        add_note(lake, number)
    found = serve_over(root, lake, partition_series=True, burrow_minutes=30)
    yield found
    found.quiet_s.clear()


@pytest.fixture(scope="session")
def boards(tmp_path_factory: pytest.TempPathFactory, serve_over: Callable[..., Served]) -> Served:
    """A lake with stories, hostile names, events, load and topics; tests only read, and put `quiet_s` back."""
    root = tmp_path_factory.mktemp("boards") / "lake"
    lake = MadeLake(root, [*stories(), *(MadeGroup(name, topics={name[:200]: 2}) for name in HOSTILE)], rounds=130)
    add_events(lake)
    add_load(lake)
    return serve_over(root, lake)
