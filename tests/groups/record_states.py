"""Golden states of the present version, and their shape.

python -m tests.groups.record_states           # writes data/state_v<version>.json and the shape of a new version

Each state is the life of a group up to the moment when it is packed. A recorded version is never written again (every
later release must be able to continue from it), except with `--again`, as long as no release has shipped it.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from streaming.groups import encode_state
from streaming.groups.state import STATE_VERSION, GroupState
from streaming.log_health import ClusterTopicState, RoundsState, UnreadableState
from tests.groups.state_lives import STATES

__all__ = ["GOLDEN", "KINDS", "SHAPES", "filled", "shape_of", "structs_of", "told"]

_DATA = Path(__file__).parent / "data"
GOLDEN: Final = _DATA / f"state_v{STATE_VERSION}.json"
SHAPES: Final = _DATA / "state_shapes.json"

KINDS: Final = (GroupState, RoundsState, UnreadableState, ClusterTopicState)
"""All packed state types: of a group, of the rounds, of a log partition, of a topic of the cluster."""


def told(value: Any) -> Any:
    """A value by the names of its fields, as JSON values, without defaults."""
    if isinstance(value, msgspec.Struct):
        return {name: told(held) for name, held in filled(value)}
    if isinstance(value, dict):
        return {str(key): told(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [told(held) for held in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def filled(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Fields with values other than the default."""
    for field in msgspec.structs.fields(struct):
        made = field.default_factory
        default = field.default if made is msgspec.NODEFAULT else made()  # type: ignore[operator]
        value = getattr(struct, field.name)
        if value != default:
            yield field.name, value


def shape_of(*kinds: type[msgspec.Struct]) -> dict[str, list[str]]:
    """The fields of each struct in these, in order, each with its type: the form of a packed state.

    Structs are identified by name only, with a ' for another of the same name: their modules do not matter.
    """
    shape: dict[str, list[str]] = {}
    for kind in structs_of(*kinds):
        name = kind.__qualname__
        while name in shape:
            name += "'"
        tag = kind.__struct_config__.tag
        fields = [f"{field.name}: {_text(field.type)}" for field in msgspec.structs.fields(kind)]
        shape[name] = fields if tag is None else [f"tag {tag}", *fields]
    return shape


def structs_of(*kinds: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """These and all structs in them, each once, in the order of their occurrence."""
    found = list(kinds)
    for kind in found:
        for field in msgspec.structs.fields(kind):
            found.extend([part for part in dict.fromkeys(_structs_in(field.type)) if part not in found])
    return found


def _text(kind: Any) -> str:
    """A type as text, the same in every Python release."""
    arguments = getattr(kind, "__args__", ())
    if not arguments:
        return "None" if kind is type(None) else str(getattr(kind, "__qualname__", kind))
    parts = ["..." if part is Ellipsis else _text(part) for part in arguments]
    if type(kind).__name__ in {"UnionType", "Union", "_UnionGenericAlias"}:
        return " | ".join(parts)
    return f"{_text(kind.__origin__)}[{', '.join(parts)}]"


def _structs_in(kind: Any) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not getattr(kind, "__args__", ()):
        yield kind
    for part in getattr(kind, "__args__", ()):
        yield from _structs_in(part)


def main(*, again: bool) -> None:
    """Write the golden states and the shape of the present version."""
    shapes = json.loads(SHAPES.read_text()) if SHAPES.exists() else {}
    if str(STATE_VERSION) in shapes and not again:
        sys.exit(
            f"version {STATE_VERSION} is recorded: a changed state is version {STATE_VERSION + 1}, with an upgrade"
        )
    states = {}
    for name, (about, lives) in STATES.items():
        state = lives().state
        assert state is not None
        version, payload = encode_state(state)
        states[name] = {
            "about": about,
            "version": version,
            "payload": base64.b64encode(payload).decode(),
            "holds": told(state),
        }
    note = (
        f"Packed states of version {STATE_VERSION}, and what they hold by the names of the fields that are not as by "
        "default. Every later release must be able to go on from them."
    )
    GOLDEN.write_text(json.dumps({"note": note, "states": states}, indent=1) + "\n", encoding="utf-8")
    shapes[str(STATE_VERSION)] = shape_of(*KINDS)
    SHAPES.write_text(json.dumps(shapes, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(again="--again" in sys.argv[1:])
