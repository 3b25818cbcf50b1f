"""Rows of choices: each is a link to the same address with one parameter changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dashboards.page.board import View

__all__ = ["chips", "cluster_chips", "owner_chips"]


def chips(
    view: View, name: str, values: Iterable[str], chosen: str, counts: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """Values of the macro `chosen`; a chosen value that is none of them is among them, so that it can be removed.

    Args:
        view: The rendering.
        name: The parameter.
        values: What it can be.
        chosen: What it is; "" for nothing.
        counts: How many rows each value has.
    """
    listed = dict.fromkeys([*values, *([chosen] if chosen else [])])
    return [
        {
            "word": value,
            "chosen": value == chosen,
            "href": view.address.here(**{name: None if value == chosen else value}),
            **({"n": counts.get(value, 0)} if counts is not None else {}),
        }
        for value in listed
    ]


def cluster_chips(view: View) -> list[dict[str, Any]]:
    """The watched clusters; nothing where there is only one to choose."""
    clusters = [row["cluster"] for row in view.ask("rounds")]
    return chips(view, "cluster", clusters, view.cluster or "") if len(clusters) > 1 or view.cluster else []


def owner_chips(view: View, groups: Iterable[str]) -> list[dict[str, Any]]:
    """The teams of some groups, by their ids, with how many each has; nothing where no team is configured."""
    if not view.owners:
        return []
    counts = Counter(view.owner(group) for group in groups)
    return chips(view, "owner", sorted(name for name in counts if name), view.address.text("owner"), counts)
