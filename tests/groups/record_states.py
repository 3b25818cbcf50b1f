"""Golden states: one of each kind, in which no field has its default. They are written again after a change of a state.

python -m tests.groups.record_states           # writes data/states.json
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from streaming.groups import encode_state
from streaming.groups.state import GroupState
from streaming.log_health import ClusterTopicState, RoundsState, UnreadableState

GOLDEN: Final = Path(__file__).parent / "data" / "states.json"

KINDS: Final[tuple[type[msgspec.Struct], ...]] = (GroupState, RoundsState, UnreadableState, ClusterTopicState)
"""All packed state types: of a group, of the rounds, of a log partition, of a topic of the cluster."""

_PLAIN: Final[dict[type, Callable[[int], Any]]] = {
    bool: lambda _: True,
    int: int,
    float: lambda number: number + 0.5,
    str: lambda number: f"s{number}",
    bytes: lambda number: b"b%d" % number,
}


def filled(kind: type[msgspec.Struct], last: bool) -> Any:
    """A struct with a value of its own in each field; of a union the first kind of value or the last."""
    return _filled(kind, count(1_001), last)


def _filled(kind: Any, numbers: Iterator[int], last: bool) -> Any:
    if make := _PLAIN.get(kind):
        return make(next(numbers))
    of, parts = get_origin(kind), get_args(kind)
    if of in {Union, UnionType}:
        return _filled([part for part in parts if part is not type(None)][-1 if last else 0], numbers, last)
    if of is tuple and parts[-1] is not ...:
        return tuple(_filled(part, numbers, last) for part in parts)
    if of in (tuple, list):
        return of([_filled(parts[0], numbers, last)])
    if of is dict:
        return {_filled(parts[0], numbers, last): parts[1] and _filled(parts[1], numbers, last)}
    values = {
        field.name: field.default is not True if field.type is bool else _filled(field.type, numbers, last)
        for field in msgspec.structs.fields(kind)
    }
    return kind(**values)


def by_name(value: Any) -> Any:
    """A value by the names of its fields, as JSON values."""
    if isinstance(value, msgspec.Struct):
        return {name: by_name(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {str(key): by_name(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [by_name(held) for held in value]
    return value.decode() if isinstance(value, bytes) else value


def packed() -> dict[str, dict[str, Any]]:
    """Each golden state by its name: its packed bytes, and what they hold."""
    states = {}
    for kind in KINDS:
        for last in (False, True):
            state = filled(kind, last)
            payload = base64.b64encode(encode_state(state)[1]).decode()
            states[f"{kind.__name__} {'last' if last else 'first'}"] = {"payload": payload, "holds": by_name(state)}
    return states


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(packed(), indent=1) + "\n", encoding="utf-8")
