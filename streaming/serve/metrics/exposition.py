"""Prometheus' text format 0.0.4.

Written here by columns and not by prometheus_client, which makes an object for every sample: a scrape of 100,000 groups
has half a million. The tests read them back with its parsers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
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


# What `escaped` changes.
_SPECIAL = r'["\\\n]'


class Labels:
    """The labels of each row of some families: made when somebody asks, once for all that share them."""

    def __init__(self, columns: Callable[[], Mapping[str, pa.Array]], rows: int) -> None:
        """Prepare.

        Args:
            columns: Gives by label the values of each row, as text; NULL is "".
            rows: Number of rows.
        """
        self._columns, self._rows = columns, rows

    @cached_property
    def values(self) -> Mapping[str, pa.Array]:
        """By label the value of each row, none longer than `cut` leaves it."""
        found = {name: values.fill_null("") for name, values in self._columns().items()}
        return {
            name: _changed(cut, pc.greater(pc.utf8_length(values), _LONGEST_VALUE), values)
            for name, values in found.items()
        }

    @cached_property
    def texts(self) -> pa.Array:
        """Each row's labels in their brackets; "" without any."""
        if not self.values:
            return pa.repeat("", self._rows)
        parts: list[pa.Array | str] = []
        for name, values in self.values.items():
            special = pc.match_substring_regex(values, _SPECIAL)
            parts += [f'{"," if parts else "{"}{name}="', _changed(escaped, special, values), '"']
        return pc.binary_join_element_wise(*parts, "}", "")


@dataclass(frozen=True, slots=True)
class Family:
    """One metric, a gauge, with its samples.

    Attributes:
        name: Its name.
        help: What it means, in one line.
        labels: Those of each row; not asked for where the metric is left out.
        values: Of each row, as text; NULL where there is no series.
        level: What it has a series for.
    """

    name: str
    help: str
    labels: Labels
    values: pa.Array
    level: Level = Level.GROUP

    @property
    def series(self) -> int:
        """Number of its samples."""
        return len(self.values) - int(self.values.null_count)


def few(name: str, told: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Family:
    """A gauge of the server or of clusters.

    Args:
        name: Its name.
        told: What it means, in one line.
        samples: Labels, the same ones in each, and values.
    """
    rows = list(samples)
    labels = {
        label: pa.array([cut(each[label]) for each, _ in rows], pa.string()) for label in (rows[0][0] if rows else ())
    }
    values = numbers(pa.array([value for _, value in rows]))
    return Family(name, told, Labels(lambda: labels, len(rows)), values, Level.CLUSTER)


def _changed(change: Callable[[str], str], which: pa.Array, values: pa.Array) -> pa.Array:
    """The values, some of them changed: none, as a rule."""
    found = values.filter(which).to_pylist()
    if found:
        return pc.replace_with_mask(values, which, pa.array(map(change, found), pa.string()))
    return values


def cut(value: str) -> str:
    """A value that is longer than 256 characters, cut, with "…" and twelve digits of the SHA-256 of the whole.

    Half of a surrogate pair has no UTF-8, and becomes "?".
    """
    if len(value) > _LONGEST_VALUE:
        digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        value = f"{value[: _LONGEST_VALUE - _DIGEST - 1]}…{digest}"
    return value.encode("utf-8", "replace").decode()


def escaped(value: str) -> str:
    """A label's value as it stands between its quotes."""
    return value.translate(_ESCAPES)


def numbers(values: pa.Array) -> pa.Array:
    """Numbers and truth values as the format has them; NULL stays."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    texts = values.cast(pa.string())
    if pa.types.is_floating(values.type):
        endless = pc.if_else(pc.greater(values, 0), "+Inf", "-Inf")
        texts = pc.if_else(pc.is_finite(values), texts, pc.if_else(pc.is_nan(values), "NaN", endless))
    return texts


def written(families: Iterable[Family], static: Mapping[str, str] | None = None) -> bytes:
    """Families as bytes; those without samples are left out.

    Args:
        families: The families.
        static: Labels that every sample has beside its own.
    """
    first = ",".join(f'{name}="{escaped(cut(value))}"' for name, value in (static or {}).items())
    parts: list[bytes] = []
    for family in families:
        if not family.series:
            continue
        told = family.help.replace("\\", "\\\\").replace("\n", "\\n")
        parts.append(f"# HELP {family.name} {told}\n# TYPE {family.name} gauge\n".encode())
        labels = family.labels.texts
        if first:
            more = pc.utf8_replace_slice(labels, start=0, stop=1, replacement=f"{{{first},")
            labels = pc.if_else(pc.equal(labels, ""), f"{{{first}}}", more)
        # A row without a value has no line.
        lines = pc.binary_join_element_wise(family.name, labels, " ", family.values, "\n", "").drop_null()
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
