"""Prometheus' text format 0.0.4.

Written here by columns and not by prometheus_client, which makes an object for every sample: a scrape of 100,000 groups
has half a million. The tests read them back with its parsers.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"

# Kafka's topics have at most 249 characters, so none is cut; group and client ids may have 32,767.
_LONGEST_VALUE = 256
# Digits of a digest behind a name that was cut: names with the same beginning stay apart.
_DIGEST = 12

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Level(IntEnum):
    """What a metric has a series for; the last are the first to be left out."""

    CLUSTER = 0
    GROUP = 1
    TOPIC = 2
    PARTITION = 3


# What a label's value needs `label_value` for.
_SPECIAL = r'["\\\n]'


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, a gauge, with its samples.

    Attributes:
        name: Its name.
        help: What it means, in one line.
        labels: Makes those of each row, as `label_texts` does; not asked for where the metric is left out.
        values: Of each row, as text; NULL where there is no series.
        level: What it has a series for.
    """

    name: str
    help: str
    labels: Callable[[], pa.Array]
    values: pa.Array
    level: Level = Level.GROUP

    @property
    def series(self) -> int:
        """Number of its samples."""
        return len(self.values) - int(self.values.null_count)


def few(name: str, told: str, samples: Iterable[tuple[str, float]]) -> Family:
    """A gauge of the server or of clusters.

    Args:
        name: Its name.
        told: What it means, in one line.
        samples: Labels as they are written, and values.
    """
    rows = list(samples)
    labels = pa.array([f"{{{at}}}" if at else "" for at, _ in rows], pa.string())
    values = pa.array([number(value) for _, value in rows], pa.string())
    return Family(name, told, lambda: labels, values, Level.CLUSTER)


def label_texts(labels: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Each row's labels in their brackets.

    Args:
        labels: By name the values of each row, as text; NULL is "".
        rows: Number of rows.
    """
    if not labels:
        return pa.repeat("", rows)
    parts: list[pa.Array | str] = []
    for name, values in labels.items():
        parts += [f'{"," if parts else "{"}{name}="', _escaped(values), '"']
    return pc.binary_join_element_wise(*parts, "}", "")


def _escaped(values: pa.Array) -> pa.Array:
    """The same label values as they are written."""
    values = values.fill_null("")
    special = pc.or_(pc.greater(pc.utf8_length(values), _LONGEST_VALUE), pc.match_substring_regex(values, _SPECIAL))
    found = values.filter(special).to_pylist()
    if found:
        return pc.replace_with_mask(values, special, pa.array(map(label_value, found), pa.string()))
    return values


def label_value(value: str) -> str:
    """A label's value between its quotes.

    Longer than 256 characters, it ends in "…" and twelve digits of the SHA-256 of the whole.
    """
    if len(value) > _LONGEST_VALUE:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        value = f"{value[: _LONGEST_VALUE - _DIGEST - 1]}…{digest}"
    # Half of a surrogate pair has no UTF-8.
    return value.encode("utf-8", "replace").decode().translate(_ESCAPES)


def number(value: float) -> str:
    """A number as the format has it."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return "NaN"
        return "+Inf" if value > 0 else "-Inf"
    if not isinstance(value, bool):
        return repr(value)
    return str(int(value))


def numbers(values: pa.Array) -> pa.Array:
    """Numbers and truth values as the format has them; NULL stays."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    texts = values.cast(pa.string())
    if pa.types.is_floating(values.type):
        endless = pc.if_else(pc.greater(values, 0), "+Inf", "-Inf")
        texts = pc.if_else(pc.is_finite(values), texts, pc.if_else(pc.is_nan(values), "NaN", endless))
    return texts


def written(families: Iterable[Family]) -> bytes:
    """Families as bytes; those without samples are left out."""
    parts: list[bytes] = []
    for family in families:
        if not family.series:
            continue
        told = family.help.replace("\\", "\\\\").replace("\n", "\\n")
        parts.append(f"# HELP {family.name} {told}\n# TYPE {family.name} gauge\n".encode())
        # (A row without a value has no line.)
        lines = pc.binary_join_element_wise(family.name, family.labels(), " ", family.values, "\n", "").drop_null()
        parts.append(_joined(lines))
    return b"".join(parts)


def _joined(texts: pa.Array) -> bytes:
    """Texts one after the other, which is how an array holds them."""
    _, places, data = texts.buffers()
    ends = memoryview(places).cast("i")
    return bytes(data[ends[texts.offset] : ends[texts.offset + len(texts)]])


def within(families: Sequence[Family], most: int) -> tuple[list[Family], list[Family]]:
    """Families that fit into a number of series, in their order, and those that do not.

    A family is whole or left out: a sum over half of the partitions would look like a value. Clusters come first, then
    groups, topics, partitions.
    """
    kept: set[str] = set()
    used = 0
    for family in sorted(families, key=lambda f: f.level):
        if used + family.series <= most:
            used += family.series
            kept.add(family.name)
    return [f for f in families if f.name in kept], [f for f in families if f.name not in kept]
