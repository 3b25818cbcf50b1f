"""Imports go one way: each room may use exactly the packages and rooms listed here."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Room:
    """The imports allowed to a room, beside the standard library and itself.

    Attributes:
        packages: Third-party packages.
        rooms: Other rooms; of a room that is a package only the names that its `__init__` exports.
        doors: Modules of this room that others may import in addition, because they load an engine, a web server or
            many clients: importing one means starting it.
    """

    packages: frozenset[str] = frozenset()
    rooms: frozenset[str] = frozenset()
    doors: frozenset[str] = frozenset()


def room(packages: str = "", rooms: str = "", doors: str = "") -> Room:
    return Room(*(frozenset(text.split()) for text in (packages, rooms, doors)))


# From the bottom to the top: each room uses only rooms above it in this table.
ROOMS = {
    "assignors": room(
        "msgspec numpy",
        doors="assignors.brokers assignors.connect assignors.rocketmq assignors.streams assignors.measures "
        "assignors.jsonl assignors.explain",
    ),
    "streaming.exceptions": room(),
    "streaming.examples": room(),
    "streaming.lifecycle": room("", "streaming.exceptions"),
    "streaming.health": room("", "streaming.exceptions"),
    "streaming.terminal": room("rich"),
    "streaming.stores": room(),
    "streaming.objects": room("obstore", "streaming.exceptions streaming.stores"),
    "streaming.places": room(),
    "streaming.times": room("msgspec"),
    "streaming.jars": room("jgo requests rich", "streaming.exceptions streaming.lifecycle streaming.places"),
    "streaming.logins": room("kafka", "streaming.exceptions"),
    "streaming.config": room(
        "pydantic pydantic_settings yaml",
        "assignors streaming.exceptions streaming.logins streaming.places streaming.stores streaming.terminal "
        "streaming.times",
    ),
    "streaming.process": room(
        "psutil",
        "streaming.exceptions streaming.lifecycle streaming.objects streaming.places streaming.stores streaming.times",
    ),
    "streaming.records": room("msgspec"),
    "streaming.rocketmq": room("msgspec"),
    "streaming.events": room("msgspec", "streaming.records streaming.terminal"),
    "streaming.offsets_log": room("msgspec numpy", "streaming.records streaming.terminal"),
    "streaming.share_state": room("", "streaming.offsets_log"),
    "streaming.record_batches": room("kafka numpy zstandard", "streaming.exceptions streaming.offsets_log"),
    "streaming.bus": room(
        "msgspec zstandard",
        "streaming.exceptions streaming.objects streaming.record_batches streaming.times",
    ),
    "streaming.groups": room(
        "msgspec numpy", "assignors streaming.exceptions streaming.records streaming.terminal streaming.times"
    ),
    "streaming.burrow": room("msgspec"),
    "streaming.log_health": room("msgspec", "streaming.groups streaming.records streaming.terminal streaming.times"),
    "streaming.judge": room(
        "msgspec pydantic",
        "assignors streaming.config streaming.groups streaming.log_health streaming.offsets_log streaming.records",
    ),
    "streaming.tables": room(
        "deltalake duckdb pyarrow",
        "streaming.exceptions streaming.lifecycle streaming.stores streaming.times",
    ),
    "streaming.probe": room(
        "kafka msgspec",
        "streaming.bus streaming.config streaming.events streaming.exceptions streaming.health streaming.lifecycle "
        "streaming.offsets_log streaming.record_batches streaming.records streaming.rocketmq streaming.share_state "
        "streaming.stores streaming.terminal streaming.times",
    ),
    "streaming.history": room("pyarrow", "streaming.tables"),
    "streaming.advice": room("duckdb msgspec pyarrow rich", "streaming.tables streaming.terminal"),
    "streaming.explain": room(
        "rich", "assignors streaming.exceptions streaming.groups streaming.tables streaming.terminal"
    ),
    "streaming.spark": room(
        "pyspark",
        "streaming.exceptions streaming.jars streaming.places streaming.process",
    ),
    "streaming.catalog": room(
        "deltalake pyarrow rich",
        "streaming.exceptions streaming.stores streaming.tables streaming.terminal streaming.times",
    ),
    "streaming.maintain": room(
        "deltalake duckdb py4j pyarrow pyspark rich",
        "streaming.advice streaming.catalog streaming.config streaming.exceptions streaming.history "
        "streaming.process streaming.spark streaming.stores streaming.tables streaming.times streaming.terminal",
    ),
    "streaming.job": room(
        # py4j is pyspark's bridge: its errors show that the JVM is gone.
        "deltalake kafka msgspec numpy py4j pyarrow pydantic pyspark",
        "streaming.bus streaming.catalog streaming.config streaming.events streaming.exceptions "
        "streaming.groups streaming.health streaming.lifecycle streaming.log_health streaming.maintain "
        "streaming.offsets_log streaming.process streaming.record_batches streaming.records streaming.spark "
        "streaming.stores streaming.tables streaming.terminal streaming.times",
        "streaming.job.__main__ streaming.job.fleet streaming.job.log streaming.job.run streaming.job.session",
    ),
    "streaming.notes": room(
        "deltalake rich",
        "streaming.config streaming.exceptions streaming.tables streaming.terminal streaming.times",
    ),
    "streaming.alerts": room(
        "apprise deltalake duckdb pyarrow pydantic requests",
        "streaming.catalog streaming.config streaming.exceptions streaming.lifecycle streaming.notes "
        "streaming.process streaming.records streaming.stores streaming.tables streaming.terminal streaming.times",
    ),
    "streaming.backtest": room(
        "rich",
        "streaming.alerts streaming.config streaming.exceptions streaming.tables streaming.terminal streaming.times",
    ),
    "dashboards": room(
        "jinja2 markupsafe pyarrow",
        "streaming.catalog streaming.config streaming.exceptions streaming.explain streaming.notes "
        "streaming.tables streaming.terminal streaming.times",
        "dashboards.export",
    ),
    "streaming.serve": room(
        # opentelemetry is an extra: only the push of metrics needs it.
        "msgspec opentelemetry pyarrow pydantic starlette uvicorn",
        "dashboards streaming.alerts streaming.burrow streaming.config streaming.exceptions streaming.explain "
        "streaming.health streaming.lifecycle streaming.notes streaming.times",
    ),
    "streaming.cluster": room(
        "",
        "streaming.config streaming.exceptions streaming.job streaming.places streaming.process",
    ),
    "streaming.up": room(
        "rich",
        "streaming.config streaming.exceptions streaming.lifecycle streaming.probe streaming.process "
        "streaming.stores streaming.terminal",
    ),
    "streaming.doctor": room(
        "rich",
        "streaming.alerts streaming.catalog streaming.config streaming.exceptions streaming.jars streaming.places "
        "streaming.probe streaming.process streaming.tables streaming.terminal",
    ),
    "streaming.demo": room(
        "confluent_kafka kafka rich",
        "streaming.config streaming.exceptions streaming.jars "
        "streaming.lifecycle streaming.offsets_log streaming.process streaming.tables "
        "streaming.terminal streaming.up",
        "streaming.demo.run",
    ),
    "streaming.pipes": room("msgspec", "streaming.groups streaming.terminal"),
    "streaming.cli": room(
        "rich typer",
        "assignors dashboards streaming.advice streaming.alerts streaming.backtest streaming.burrow "
        "streaming.catalog streaming.cluster streaming.config streaming.demo streaming.doctor streaming.examples "
        "streaming.exceptions streaming.explain streaming.groups streaming.job streaming.judge streaming.maintain "
        "streaming.notes streaming.offsets_log streaming.pipes streaming.probe streaming.rocketmq "
        "streaming.serve streaming.terminal streaming.up",
    ),
}

PURE = (
    "assignors",
    "streaming.burrow",
    "streaming.records",
    "streaming.groups",
    "streaming.judge",
    "streaming.log_health",
    "streaming.offsets_log",
    "streaming.rocketmq",
    "streaming.share_state",
)
FOREIGN = ("pyspark", "pandas", "kafka", "confluent_kafka", "deltalake", "duckdb", "py4j")


def modules() -> list[Path]:
    found = [path for top in ("assignors", "streaming", "dashboards") for path in (ROOT / top).rglob("*.py")]
    assert found
    return sorted(found)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str | None:
    """The room that a module belongs to; None for `streaming` itself."""
    return next((name for name in ROOMS if module == name or module.startswith(name + ".")), None)


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of every import, including those inside functions."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                assert ROOT / "tests" in path.parents, f"{path}:{node.lineno} imports by dots: give the full name"
                continue
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def allowed(name: str, inside: str) -> bool:
    top = name.split(".", maxsplit=1)[0]
    if top in sys.stdlib_module_names or name == inside or name.startswith(inside + "."):
        return True
    rule = ROOMS[inside]
    return top in rule.packages or any(name == other or name.startswith(other + ".") for other in rule.rooms)


def test_every_room_of_the_table_is_there_and_imports_what_it_may() -> None:
    used: dict[str, set[str]] = {}
    for path in modules():
        if (inside := room_of(name_of(path))) is not None:
            used.setdefault(inside, set()).update(name for _, name in imports(path))
    assert sorted(ROOMS.keys() - used.keys()) == []
    idle = [
        f"{name} need not import {may}"
        for name, rule in ROOMS.items()
        for may in sorted(rule.packages | rule.rooms)
        if not any(found == may or found.startswith(may + ".") for found in used[name])
    ]
    assert idle == []


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    given = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]
    declared = {re.split(r"[^A-Za-z0-9_.-]", line)[0].lower() for line in given}
    ours = {"assignors", "dashboards", "streaming", "tests", *(path.name for path in (ROOT / "tests").iterdir())}
    ours |= {path.stem for path in (ROOT / "tests").rglob("*.py")}
    owners = packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in [*modules(), *(ROOT / "tests").rglob("*.py"), ROOT / "setup.py"]
        for line, name in imports(path)
        if (top := name.split(".", maxsplit=1)[0]) not in sys.stdlib_module_names | ours
        and declared.isdisjoint(owner.lower() for owner in owners.get(top, ()))
    }
    assert undeclared == set()


def test_every_module_lies_in_a_room_of_the_table() -> None:
    homeless = [name for path in modules() if (name := name_of(path)) != "streaming" and room_of(name) is None]
    assert homeless == []


def test_no_module_imports_more_than_its_room_may() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules()
        if (inside := room_of(name_of(path))) is not None
        for line, name in imports(path)
        if not allowed(name, inside)
    ]
    assert found == []


def test_the_table_goes_one_way() -> None:
    order = list(ROOMS)
    upwards = [
        f"{name} uses {other}"
        for name, rule in ROOMS.items()
        for other in rule.rooms
        if order.index(other) >= order.index(name)
    ]
    assert upwards == []


def exported(package: str) -> set[str]:
    """Names that a package's `__init__` declares in `__all__`."""
    tree = ast.parse((ROOT.joinpath(*package.split(".")) / "__init__.py").read_text(encoding="utf-8"))
    lists = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return {name for found in lists for name in ast.literal_eval(found)}


def test_nobody_reaches_behind_the_face_of_another_room() -> None:
    packages = {name for name in ROOMS if ROOT.joinpath(*name.split(".")).is_dir()}
    faces = {
        face: exported(face)
        for face in packages
        | {door for room in ROOMS.values() for door in room.doors if ROOT.joinpath(*door.split(".")).is_dir()}
    }
    behind = []
    for path in modules():
        inside = room_of(name_of(path))
        for line, name in imports(path):
            other = room_of(name)
            if other is None or other == inside or other not in packages:
                continue
            module, _, what = name.rpartition(".")
            if module in ROOMS[other].doors and module not in faces:
                continue
            if module not in faces or what not in faces[module]:
                behind.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert behind == []


# A group's state is made of these rooms' states, and they work on the whole of it: an `__init__` that exported both
# would import itself. So their faces are modules, and others import no other module of theirs.
FACES_OF_THE_CORE = {
    "lag": {"oldest_unread", "partitions", "rows", "state", "totals"},
    "rocketmq": {"kind", "state"},
    "seen": {"take_in"},
}


def test_the_core_imports_of_its_rooms_their_faces_alone() -> None:
    used: dict[str, set[str]] = {room: set() for room in FACES_OF_THE_CORE}
    for path in modules():
        for _, name in imports(path):
            parts = name.split(".")
            inside = name_of(path).split(".")[:3] == parts[:3]
            if parts[:2] == ["streaming", "groups"] and parts[2] in used and not inside:
                used[parts[2]].add(parts[3])
    assert used == FACES_OF_THE_CORE


def test_no_module_imports_itself_by_a_detour() -> None:
    names = {name_of(path) for path in modules()}
    uses: dict[str, set[str]] = {}
    for path in modules():
        found = {name if name in names else name.rpartition(".")[0] for _, name in imports(path)}
        uses[name_of(path)] = (found & names) - {name_of(path)}
    while leaves := {name for name, used in uses.items() if not used & uses.keys()}:
        uses = {name: used for name, used in uses.items() if name not in leaves}
    assert sorted(uses) == []


# Names that two modules define for one thing, seen from two sides.
ONE_THING = {
    # Kafka's and RocketMQ's own names for a topic and a number, in the shape that each room is given.
    *("MessageQueue", "PartitionId", "TopicPartitions"),
}


def test_no_class_and_no_alias_stands_for_two_things() -> None:
    defined: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.ClassDef(name=name):
                    pass
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    pass
                case _:
                    continue
            if name[0].isupper() and not name.isupper():
                defined.setdefault(name, []).append(name_of(path))
    several = {name: where for name, where in defined.items() if len(where) > 1}
    assert {name: where for name, where in several.items() if name not in ONE_THING} == {}
    assert sorted(ONE_THING - several.keys()) == []


def test_the_pure_rooms_load_no_engine_and_no_client() -> None:
    names = [name for path in modules() if (name := name_of(path)).startswith(PURE)]
    assert {room_of(name) for name in names} == {*PURE}
    code = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "importlib" in loaded
    assert loaded.isdisjoint(FOREIGN)


def test_no_test_folder_stands_for_a_package_that_is_not_there() -> None:
    packages = {path.parent.name for path in modules()} | {path.stem for path in modules()}
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    # Named after their subject: files that deploy, whole runs, real classes, real groups' members; and benchmarks.
    assert folders <= packages | {"benchmarks", "deploy", "e2e", "mutants", "oracle", "real_groups"}


def test_no_test_counts_on_another_modules_tests_for_its_helpers() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in (ROOT / "tests").rglob("*.py")
        for line, name in imports(path)
        if re.match(r"tests\.(\w+\.)*test_", name)
    ]
    assert not found, "\n".join(found)
