"""Drift over time: verdicts, groups that drifted, other strategies than configured, what was not recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dashboards import format as words
from dashboards.boards.parts.chips import chips, cluster_chips, owner_chips
from dashboards.boards.parts.past import ranges, within
from dashboards.charts.measures import count_plot, step_of
from dashboards.format import Row
from dashboards.page.board import Board, View
from dashboards.spans import RANGES

__all__ = ["BOARD", "drifted_groups", "libraries", "mismatches", "reasons"]

# Verdicts that are read for the list; those that an owner's filter leaves of them are shown.
_MOST: Final = 2_000

# Rows of a table; the newest and the worst are what people look for, the rest is counted.
_SHOWN: Final = 100
_SHOWN_REASONS: Final = 20

_VERDICTS: Final = ("drifted", "unverified", "identical", "not_applicable")

_WORDS: Final[Mapping[str, str]] = {
    "drifted": "drifted",
    "unverified": "not recomputed",
    "identical": "as expected",
    "not_applicable": "not applicable",
}

_STYLES: Final[Mapping[str, str]] = {"drifted": "bad", "unverified": "unsure"}


def drifted_groups(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Groups with a drifted decision, those with most of them first.

    Args:
        rows: Rows of verdict_groups.sql.

    Returns:
        Dicts with cluster, group_id, drifted, verdicts (of all kinds but not_applicable), drifted_most, first_time and
        last_time of drifted decisions, last_decision, strategies.
    """
    judged: Counter[tuple[str, str]] = Counter()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        key = row["cluster"], row["group_id"]
        if row["verdict"] != "not_applicable":
            judged[key] += row["verdicts"]
        if row["verdict"] != "drifted":
            continue
        one = found.setdefault(
            key,
            {"cluster": key[0], "group_id": key[1], "drifted": 0, "drifted_most": 0, "first_time": row["first_time"],
             "last_time": row["last_time"], "last_decision": row["last_decision"], "strategies": []},
        )  # fmt: skip
        one["drifted"] += row["verdicts"]
        one["drifted_most"] = max(one["drifted_most"], row["drifted_most"] or 0)
        one["first_time"] = min(one["first_time"], row["first_time"])
        if row["last_time"] >= one["last_time"]:
            one["last_time"], one["last_decision"] = row["last_time"], row["last_decision"]
        if row["strategy"] and row["strategy"] not in one["strategies"]:
            one["strategies"].append(row["strategy"])
    for key, one in found.items():
        one["verdicts"] = judged[key]
    return sorted(found.values(), key=lambda one: (-one["drifted"], -one["drifted_most"], one["group_id"]))


def mismatches(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Groups that ran another strategy than the configured one, those that did so last first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if not row["mismatches"]:
            continue
        key = row["cluster"], row["group_id"], row["strategy"], row["expected_strategy"]
        one = found.setdefault(key, {**row, "mismatches": 0})
        one["mismatches"] += row["mismatches"]
        one["first_time"] = min(one["first_time"], row["first_time"])
        if row["last_time"] >= one["last_time"]:
            one["last_time"], one["last_decision"] = row["last_time"], row["last_decision"]
    return sorted(found.values(), key=lambda one: one["last_time"], reverse=True)


def reasons(rows: Iterable[Row], verdict: str) -> list[dict[str, Any]]:
    """Why decisions had a verdict: for each reason how many, in how many groups, and the last of them."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["verdict"] != verdict:
            continue
        one = found.setdefault(row["reason"] or "", {"reason": row["reason"] or "", "verdicts": 0, "groups": set()})
        one["verdicts"] += row["verdicts"]
        one["groups"].add((row["cluster"], row["group_id"]))
        if "last" not in one or row["last_time"] > one["last"]["last_time"]:
            one["last"] = row
    return sorted(found.values(), key=lambda one: (-one["verdicts"], one["reason"]))


def libraries(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """As what assignments were recomputed: for each client library, or broker, how many and in how many groups."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["verdict"] != "identical":
            continue
        name = row["matching_library"] or ""
        one = found.setdefault(name, {"library": name, "verdicts": 0, "groups": set(), "candidates": 0})
        one["verdicts"] += row["verdicts"]
        one["groups"].add((row["cluster"], row["group_id"]))
        one["candidates"] = max(one["candidates"], row["candidates_most"] or 0)
    return sorted(found.values(), key=lambda one: (-one["verdicts"], one["library"]))


def _fill(view: View) -> Mapping[str, Any]:
    address = view.address
    span = address.range(view.now)
    verdict = address.one_of("verdict", _VERDICTS)
    owner = address.text("owner")
    compared = address.one_of("compare", ("before",)) == "before"
    rows = within(view, span, "verdict_groups", cluster=view.cluster)
    before = within(view, span.before, "verdict_groups", cluster=view.cluster) if compared else None
    step = step_of(span)
    steps = within(view, span, "verdict_steps", cluster=view.cluster, step=step, each="yes" if owner else "no")
    listed = within(view, span, "verdicts", cluster=view.cluster, verdict=verdict or "drifted", most=_MOST)

    def owned(found: Sequence[Row] | None) -> list[Row]:
        return [row for row in found or () if not owner or view.owner(row["group_id"]) == owner]

    mine = owned(rows)
    drifted = drifted_groups(mine)
    wrong = mismatches(mine)
    now = {(group["cluster"], group["group_id"]): group for group in view.groups(view.cluster)}
    since = {(row["cluster"], row["group_id"]): row for row in view.ask("since", since=view.since)}
    of_list = owned(listed)
    counts: Counter[str] = Counter()
    for row in mine:
        counts[row["verdict"]] += row["verdicts"]
    return {
        "ranges": ranges(view, span, RANGES),
        "clusters": cluster_chips(view),
        "owners": owner_chips(view, {row["group_id"] for row in rows or ()}),
        "verdicts": [
            {**chip, "word": _WORDS[chip["word"]]} for chip in chips(view, "verdict", _VERDICTS, verdict, counts)
        ],
        "reading": rows is None or steps is None or listed is None or (compared and before is None),
        "sums": _sums(mine, owned(before) if before is not None else None, known=rows is not None),
        "compare": address.here(compare=None if compared else "before"),
        "compared": compared,
        "plot": None if steps is None else count_plot(owned(steps), span, step, _WORDS, "verdict"),
        "step": step,
        "groups": [_group(one, view, now, since) for one in drifted[:_SHOWN]],
        "number_of_groups": len(drifted),
        "mismatches": [_mismatch(one, view) for one in wrong[:_SHOWN]],
        "number_of_mismatches": len(wrong),
        "reasons": _reasons(reasons(mine, "unverified"), view),
        "not_applicable": _reasons(reasons(mine, "not_applicable"), view),
        "libraries": [{**one, "groups": len(one["groups"])} for one in libraries(mine)[:_SHOWN_REASONS]],
        "list_word": _WORDS[verdict or "drifted"],
        "list": [_verdict(row, view) for row in of_list[:_SHOWN]],
        "left_out": _left_out(listed or (), of_list, view),
    }


def _left_out(listed: Sequence[Row], of_list: Sequence[Row], view: View) -> str:
    said = []
    if len(of_list) > _SHOWN:
        said.append(f"{words.number(len(of_list) - _SHOWN)} older ones are not shown.")
    if len(listed) >= _MOST:
        oldest = view.clock.time(listed[-1]["record_time"])
        said.append(f"Any before {oldest} are not looked for: choose a shorter time.")
    return " ".join(said)


def _sums(rows: Sequence[Row], before: Sequence[Row] | None, *, known: bool) -> list[dict[str, str]]:
    def verdicts(found: Sequence[Row], *names: str) -> int:
        return sum(row["verdicts"] for row in found if not names or row["verdict"] in names)

    def groups(found: Sequence[Row], column: str, value: Any) -> int:
        return len({(row["cluster"], row["group_id"]) for row in found if row[column] == value})

    figures = (
        ("judged", verdicts, "decisions with a verdict"),
        (
            "drifted",
            lambda found: verdicts(found, "drifted"),
            "two owners, a broken promise, another strategy than configured, or other clients than declared",
        ),
        ("groups that drifted", lambda found: groups(found, "verdict", "drifted"), ""),
        ("not recomputed", lambda found: verdicts(found, "unverified"), "an exact recomputation is not possible"),
        ("as expected", lambda found: verdicts(found, "identical"), "recomputed, and equal"),
        (
            "other strategy",
            lambda found: sum(row["mismatches"] for row in found),
            "decisions with another strategy than the configured one",
        ),
    )
    return [
        {
            "word": word,
            "title": title,
            "value": words.number(of(rows)) if known else words.DASH,
            # (Without a row it is not known whether nothing was decided, or nothing was kept.)
            "before": "" if before is None else words.number(of(before)) if before else words.DASH,
        }
        for word, of, title in figures
    ]


def _group(
    one: Mapping[str, Any], view: View, now: Mapping[tuple[str, str], Row], since: Mapping[tuple[str, str], Row]
) -> dict[str, Any]:
    key = one["cluster"], one["group_id"]
    present = now.get(key)
    still = present is not None and present["verdict"] == "drifted"
    began = since.get(key, {}).get("drifted_since") or (present["last_decision_time"] if present else None)
    return {
        "key": f"{key[0]}/{words.key_of(key[1])}",
        "group": key[1],
        "cluster": key[0],
        "owner": view.owner(key[1]),
        "href": view.address.link("groups", key[1], cluster=key[0]) if present else "",
        "still": still,
        "state": f"drifted{view.clock.since(began)}"
        if still
        else "the group is gone"
        if present is None
        else _WORDS.get(present["verdict"], "pending"),
        "drifted": one["drifted"],
        "verdicts": one["verdicts"],
        "share": one["drifted"] / one["verdicts"] if one["verdicts"] else None,
        "most": one["drifted_most"],
        "first": view.clock.time(one["first_time"], exact=False),
        "last": view.clock.time(one["last_time"], exact=False),
        "decision": view.address.link("groups", key[1], "decisions", str(one["last_decision"]), cluster=key[0]),
        "strategy": ", ".join(words.cut(name, 24) for name in one["strategies"][:3]),
    }


def _mismatch(one: Mapping[str, Any], view: View) -> dict[str, Any]:
    group, cluster = one["group_id"], one["cluster"]
    return {
        "group": group,
        "cluster": cluster,
        "owner": view.owner(group),
        "href": view.address.link("groups", group, cluster=cluster),
        "runs": one["strategy"] or "",
        "expected": one["expected_strategy"] or "",
        "decisions": one["mismatches"],
        "first": view.clock.time(one["first_time"], exact=False),
        "last": view.clock.time(one["last_time"], exact=False),
        "decision": view.address.link("groups", group, "decisions", str(one["last_decision"]), cluster=cluster),
    }


def _reasons(found: Sequence[Mapping[str, Any]], view: View) -> list[dict[str, Any]]:
    return [
        {
            "reason": one["reason"] or "no reason was given",
            "verdicts": one["verdicts"],
            "groups": len(one["groups"]),
            "group": one["last"]["group_id"],
            "time": view.clock.time(one["last"]["last_time"], exact=False),
            "href": view.address.link(
                "groups",
                one["last"]["group_id"],
                "decisions",
                str(one["last"]["last_decision"]),
                cluster=one["last"]["cluster"],
            ),
        }
        for one in found[:_SHOWN_REASONS]
    ]


def _verdict(row: Row, view: View) -> dict[str, Any]:
    group, cluster = row["group_id"], row["cluster"]
    return {
        "key": f"{cluster}/{words.key_of(group)}/{row['decision']}",
        "href": view.address.link("groups", group, "decisions", str(row["decision"]), cluster=cluster),
        "time": view.clock.time(row["record_time"]),
        "group": group,
        "group_href": view.address.link("groups", group, cluster=cluster),
        "owner": view.owner(group),
        "generation": row["generation"],
        "strategy": row["strategy"] or "",
        "expected": row["expected_strategy"] if row["strategy_mismatch"] else "",
        "style": _STYLES.get(row["verdict"], ""),
        "drifted": row["drifted_count"],
        "candidates": row["candidates"],
        "says": _says(row),
    }


def _says(row: Row) -> str:
    """What a verdict rests on."""
    if row["verdict"] == "identical":
        return f"recomputed as {row['matching_library'] or 'an unknown library'}"
    said = f"{row['basis']}: {row['reason']}" if row["basis"] else str(row["reason"] or "")
    if row["basis"] == "configured" and row["own_verdict"] != "identical":
        said += f" (by {words.cut(row['strategy'], 30)} it is {row['own_verdict']})"
    if row["nearest_library"] and not row["basis"]:
        differing = words.counted(row["nearest_differing"], "partition")
        said += f"; {row['nearest_library']} differs in {differing}"
    return said


BOARD = Board(
    path=("drift",),
    template="drift.html.j2",
    fill=_fill,
    title="Drift · Evenkeel",
    word="Drift",
    parameters=frozenset({"range", "from", "to", "verdict", "owner", "compare"}),
    span="24h",
)
