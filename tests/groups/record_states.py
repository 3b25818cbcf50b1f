"""Golden states, and what they hold. They are written again after a change of the state.

python -m tests.groups.record_states           # writes data/states.json

Each state is the life of a group up to the moment when it is packed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from streaming.groups import encode_state
from streaming.groups.state import GroupState
from streaming.log_health import ClusterTopicState, RoundsState, UnreadableState
from tests.groups.state_lives import STATES

GOLDEN: Final = Path(__file__).parent / "data" / "states.json"

KINDS: Final = (GroupState, RoundsState, UnreadableState, ClusterTopicState)
"""All packed state types: of a group, of the rounds, of a log partition, of a topic of the cluster."""


def by_name(value: Any) -> Any:
    """A value by the names of its fields, as JSON values, without defaults."""
    if isinstance(value, msgspec.Struct):
        return {name: by_name(held) for name, held in filled(value)}
    if isinstance(value, dict):
        return {str(key): by_name(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [by_name(held) for held in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def filled(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Fields with values other than the default."""
    for field in msgspec.structs.fields(struct):
        made = field.default_factory
        default = field.default if made is msgspec.NODEFAULT else made()  # type: ignore[operator]
        value = getattr(struct, field.name)
        if value != default:
            yield field.name, value


def structs_of(*kinds: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """These and all structs in them, each once, in the order of their occurrence."""
    found = list(kinds)
    for kind in found:
        for field in msgspec.structs.fields(kind):
            found.extend([part for part in dict.fromkeys(_structs_in(field.type)) if part not in found])
    return found


def _structs_in(kind: Any) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not getattr(kind, "__args__", ()):
        yield kind
    for part in getattr(kind, "__args__", ()):
        yield from _structs_in(part)


def packed() -> dict[str, dict[str, Any]]:
    """What each life leads to: what it is about, its packed state, and what that holds."""
    states = {}
    for name, (about, lives) in STATES.items():
        state = lives().state
        assert state is not None
        _, payload = encode_state(state)
        states[name] = {"about": about, "payload": base64.b64encode(payload).decode(), "holds": by_name(state)}
    return states


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(packed(), indent=1) + "\n", encoding="utf-8")
