"""The alerter, which reads only new rows, against the plain meaning of rules: their SQL over whole `_current` views."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streaming.alerts import Alerter
from streaming.alerts.rules.expressions import connect
from streaming.alerts.rules.rules import Rule
from streaming.config import AlertSettings, Settings
from streaming.tables import TABLES, VIEWS, LakeReader, table_named
from tests.alerts.build import BEHIND, DRIFT, INTERVAL, UNEVEN, Writer, rules, time_of

_ROUNDS = 30

_UNKNOWN_LAG = BEHIND.replace("behind\n", "known\n", 1).replace("severity", "for: 25s\n    severity")


_Story = list[dict[str, list[dict[str, Any]]]]


def _story(seed: int) -> _Story:
    """Rows as a job may write them: occasional changes, closing rows, and nothing after those."""
    chance = random.Random(seed)
    alive = {group: {0, 1} for group in "abcd"}
    story = []
    for number in range(_ROUNDS):
        tables: dict[str, list[dict[str, Any]]] = {"group_health": [], "lag": [], "drift": []}
        for group in list(alive):
            if number and chance.random() < 0.02:
                tables["group_health"].append({"group_id": group, "ended": True})
                tables["lag"] += [
                    {"group_id": group, "topic": "t", "partition": p, "ended": True} for p in alive[group]
                ]
                del alive[group]
                continue
            if number == 0 or chance.random() < 0.3:
                imbalance = chance.choice([0.0, 0.5, 2.0, 3.0, 3.0, None])
                tables["group_health"].append({"group_id": group, "imbalance": imbalance})
            if chance.random() < 0.2:
                verdict = chance.choice(["drifted", "drifted", "identical", "not_applicable"])
                tables["drift"].append({"group_id": group, "verdict": verdict, "decision": number})
            for partition in sorted(alive[group]):
                if number and chance.random() < 0.02:
                    tables["lag"].append({"group_id": group, "topic": "t", "partition": partition, "ended": True})
                    alive[group].discard(partition)
                elif number == 0 or chance.random() < 0.4:
                    lag = {"lag": chance.choice([0, 50, 500, 900, None]), "subscribed": chance.random() < 0.9}
                    tables["lag"].append({"group_id": group, "topic": "t", "partition": partition, **lag})
        story.append(tables)
    return story


def _by_views(root: str, made: tuple[Rule, ...]) -> list[tuple[int, str, tuple[Any, ...], str]]:
    """Every rule at every round over the whole view, as the documentation says, with one dict as state."""
    reader, plain = LakeReader(root), connect()
    for table in TABLES:
        rows = reader.rows(f"SELECT * FROM {table.name}")
        names = table.arrow_schema.names
        plain.register(
            f"all_{table.name}", pa.Table.from_pylist([{n: r[n] for n in names} for r in rows], table.arrow_schema)
        )
        if "round" in names:
            where = "WHERE round <= getvariable('now')"
            plain.execute(f"CREATE TEMP VIEW {table.name} AS SELECT * FROM all_{table.name} {where}")
        else:
            plain.execute(f"CREATE TEMP VIEW {table.name} AS SELECT * FROM all_{table.name}")
    plain.register("clusters", table_named("clusters").arrow_schema.empty_table())
    for name, sql in VIEWS.items():
        if name.removesuffix("_current") in {"clusters", *(table.name for table in TABLES)}:
            plain.execute(f"CREATE TEMP VIEW {name} AS {sql}")
    told: list[tuple[int, str, tuple[Any, ...], str]] = []
    held: dict[tuple[str, tuple[Any, ...]], int | None] = {}  # intervals, None when it fires
    was: dict[tuple[str, tuple[Any, ...]], bool | None] = {}
    for number in range(_ROUNDS):
        plain.execute(f"SET VARIABLE now = {number}")
        for rule in made:
            sql = f"SELECT ({rule.when.sql}), {', '.join(rule.key)} FROM {rule.table.name}_current"
            truths = {tuple(key): truth for truth, *key in plain.execute(sql).fetchall()}
            needed = rule.hold_rounds or -(-rule.hold_ms // INTERVAL)
            for key in {*truths, *(key for name, key in held if name == rule.name)}:
                place, truth = (rule.name, key), truths.get(key)
                known = place in held
                if key not in truths:
                    told.append((number, rule.name, key, "gone"))
                    del held[place]
                elif truth is False and known:
                    told.append((number, rule.name, key, "resolved"))
                    del held[place]
                elif truth and not known:
                    held[place] = 0 if needed else None
                    told.append((number, rule.name, key, "pending" if needed else "firing"))
                elif known and held[place] is not None:
                    before = was[place]
                    held[place] = (held[place] or 0) + (1 if truth and before else 0)
                    if truth and before and (held[place] or 0) >= needed:
                        told.append((number, rule.name, key, "firing"))
                        held[place] = None
                was[place] = truth
    return sorted(told, key=repr)


def _decided_by_an_alerter(
    folder: Path, made: tuple[Rule, ...], story: _Story, chance: random.Random | None
) -> list[dict[str, Any]]:
    """Transitions in the tables: of an alerter that chance stops and starts, or, without it, of one that polls once."""
    writer, clock = Writer(folder), [0.0]
    settings = Settings(cluster="c", lake=writer.root, alerts=AlertSettings(look_back_ms=86_400_000))
    alerter, number = None, 0
    while number < _ROUNDS:
        gulp = min(_ROUNDS - number, chance.randint(1, 6)) if chance else _ROUNDS
        writer.write(number, *story[number : number + gulp])
        number += gulp
        clock[0] = time_of(number) / 1000
        if alerter is None or (chance and chance.random() < 0.5):
            alerter = Alerter(settings, made, {}, lambda: clock[0], lambda: clock[0])
        if chance and chance.random() < 0.7:
            alerter.poll()
    alerter.poll()
    return writer.transitions()


def _same_anyhow(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("round", "entity", "state", "from_state", "transition_id", "since", "message"))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 10))])
def test_the_alerter_says_what_each_rule_says_of_the_whole_view_at_every_round(tmp_path: Path, seed: int) -> None:
    made = rules(tmp_path, UNEVEN, DRIFT, BEHIND, _UNKNOWN_LAG, hold="3 rounds")
    story = _story(seed)
    found = _decided_by_an_alerter(tmp_path / "restarts", made, story, random.Random(seed))
    expected = _by_views(Writer(tmp_path / "restarts").root, made)
    keys = {rule.name: rule.key for rule in made}
    places = [
        (r["round"], r["rule"], tuple(json.loads(r["entity"]).get(k) for k in keys[r["rule"]]), r["state"])
        for r in found
    ]
    assert sorted(places, key=repr) == expected
    assert {state for *_, state in expected} == {"pending", "firing", "resolved", "gone"}
    straight = _decided_by_an_alerter(tmp_path / "straight", made, story, None)
    assert sorted(map(_same_anyhow, found), key=repr) == sorted(map(_same_anyhow, straight), key=repr)
