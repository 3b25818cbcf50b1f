"""`evenkeel mute`, `unmute`, `mutes` and `mark`: what people leave for the alerter and the page."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streaming.config import SEVERITIES, Owner, fits, span_ms
from streaming.exceptions import SetupError
from streaming.notes.book import (
    GROUP,
    LONGEST_MS,
    LONGEST_TEXT,
    OWNER,
    REPEATS_MS,
    RULE,
    SEVERITY,
    Mark,
    Mute,
    NoteBook,
    check_lake,
    new_id,
    whole,
    write_note,
    writer,
)
from streaming.tables import LakeReader
from streaming.terminal import age, printable, visible
from streaming.times import epoch_ms, utc_text

_LONGEST_REASON = 500

# The end of the year 9999 in UTC, ms. Tables write NULL for a later time, and for one before 1970
# (`streaming/tables/lake.py`), and nobody would see such a mark.
_END_MS: Final = 253_402_300_800_000


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names that a mute may mean, beside groups, which are looked up in the tables.

    Attributes:
        rules: Names of the rules.
        owners: The teams.
    """

    rules: Collection[str]
    owners: Sequence[Owner]


def mute(
    lake: str,
    cluster: str,
    name: str,
    given_span: str,
    reason: str,
    known: KnownNames,
    kind: str | None = None,
    *,
    begin: str | None = None,
    every: str | None = None,
) -> str:
    """Mute a group, a rule, a team's groups or a severity; returns a sentence.

    Args:
        lake: Folder or URI.
        cluster: Whose alerts.
        name: The group, rule, team or severity; for groups also a regular expression between slashes.
        given_span: For how long: 30m, 2h, 1d.
        reason: Why; everybody sees it.
        known: What the name may mean.
        kind: GROUP, RULE, OWNER or SEVERITY; None finds out which one the name is.
        begin: When it begins, as ISO 8601 with an offset; None for now.
        every: "day" or "week", after which it begins again; None for once.

    Raises:
        SetupError: The name, the span or the reason cannot be used, or there is no lake.
        LakeUnreadableError: The groups of the lake cannot be read.
        LakeUnwritableError: The store cannot be written.
    """
    span = _span(given_span)
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        message = f"Say why with --reason, in up to {_LONGEST_REASON} characters: others will want to know."
        raise SetupError(message)
    found = _kind_of(lake, cluster, name, known) if kind is None else kind
    now = _now()
    since = now if begin is None else _moment("--from", begin, now)
    repeat = None if every is None else REPEATS_MS[every]
    if repeat is not None and span >= repeat:
        message = f"A mute for {_for(span)} cannot begin again every {every}: it would never end."
        raise SetupError(message)
    made = Mute(new_id(), cluster, found, name, printable(reason.strip()), writer(), since, since + span, repeat)
    if made.over_at <= now:
        message = f"A mute from {utc_text(since)} until {utc_text(since + span)} would be over already: begin it later."
        raise SetupError(message)
    try:
        fits("", name)
    except ValueError:
        message = f"The regular expression {visible(name)} does not compile."
        raise SetupError(message) from None
    write_note(lake, made, now)
    first = "" if begin is None else f" from {utc_text(made.from_time)}"
    again = "" if every is None else f", and again every {every}"
    return (
        f"Muted {_whole(made)} on {visible(cluster)}{first} until {utc_text(made.until_time)} ({_for(span)}){again}. "
        "Transitions are still written; what still fires then is delivered then. To end it before: "
        f"evenkeel unmute {made.mute_id}"
    )


def unmute(lake: str, cluster: str, name: str) -> str:
    """End mutes before their time, by their id or by what they mute; returns a sentence.

    Raises:
        SetupError: There is no such mute, or no lake.
        LakeUnwritableError: The store cannot be written.
    """
    found = [one for one in _not_over(lake, cluster) if name in {one.mute_id, one.name}]
    if not found:
        message = f"There is no mute of {visible(name)} on {visible(cluster)}: `evenkeel mutes` lists those that are."
        raise SetupError(message)
    for one in found:
        write_note(lake, replace(one, made_by=writer()), _now(), ended=True)
    return f"Ended: {', '.join(_whole(one) for one in found)}. What still fires is delivered now."


def print_mutes(lake: str, cluster: str, console: Console) -> None:
    """Print the mutes that are not over.

    Raises:
        SetupError: There is no lake.
    """
    found = sorted(_not_over(lake, cluster), key=lambda one: one.until_time)
    if not found:
        console.print(f"No mute holds on {visible(cluster)}.", highlight=False, markup=False)
        return
    table = Table("id", "what", "from", "until", "left", "by", "reason", box=None, pad_edge=False)
    for one in found:
        cells = (one.mute_id, _whole(one), *_spans(one, _now()), visible(one.made_by, 60), visible(one.reason))
        table.add_row(*map(Text, cells))
    console.print(table)


def _not_over(lake: str, cluster: str) -> list[Mute]:
    check_lake(lake)
    now = _now()
    return [one for one in NoteBook(lake, cluster).mutes() if one.over_at > now]


def mark(lake: str, cluster: str, text: str, group: str | None = None, at: str | None = None) -> str:
    """Write a mark; returns a sentence.

    Args:
        lake: Folder or URI.
        cluster: The cluster.
        text: What was done.
        group: The group that it concerns; None for the whole cluster.
        at: When it was done, as ISO 8601 with an offset, or a span ago (10m); None for now.

    Raises:
        SetupError: The text or the time cannot be used, or there is no lake.
        LakeUnwritableError: The store cannot be written.
    """
    now = _now()
    made = checked_mark(cluster, text, group, now if at is None else _moment("--at", at, now), writer())
    write_note(lake, made, now)
    return f"Marked on {visible(cluster)} at {utc_text(made.mark_time)}: {made.text}"


def checked_mark(
    cluster: str, text: str, group: str | None, time_ms: int, made_by: str, mark_id: str | None = None
) -> Mark:
    """A mark that charts and messages can show.

    Args:
        cluster: The cluster.
        text: What was done.
        group: The group that it concerns; None for the whole cluster.
        time_ms: When, ms.
        made_by: Who wrote it.
        mark_id: Its id, where a writer may send it twice; None makes one.

    Raises:
        SetupError: The text is empty or too long.
    """
    shown = printable(text.strip())
    if not shown or len(shown) > LONGEST_TEXT:
        message = f"A mark is a text of 1 to {LONGEST_TEXT} characters; this one has {len(shown)}."
        raise SetupError(message)
    return Mark(new_id() if mark_id is None else mark_id, cluster, shown, group, made_by, time_ms)


def _kind_of(lake: str, cluster: str, name: str, known: KnownNames) -> str:
    if len(name) > 2 and name[0] == name[-1] == "/":
        return GROUP
    teams = [one.team for one in known.owners]
    named = ((RULE, known.rules), (OWNER, teams), (SEVERITY, SEVERITIES), (GROUP, _groups(lake, cluster)))
    kinds = [kind for kind, names in named if name in names]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        message = f"{visible(name)} is the name of several: add --kind {' or --kind '.join(kinds)}."
        raise SetupError(message)
    message = (
        f"There is no rule, team or living group {visible(name)} on {visible(cluster)}. For a group that does not "
        "exist yet, add --kind group; for many, write a regular expression between slashes."
    )
    raise SetupError(message)


def _groups(lake: str, cluster: str) -> list[str]:
    check_lake(lake)
    rows = LakeReader(lake).rows("SELECT group_id FROM group_health_current WHERE cluster = ?", [cluster])
    return [row["group_id"] for row in rows]


def _span(given: str) -> int:
    try:
        span = span_ms(given)
    except ValueError as error:
        message = f"--for is wrong: {error}."
        raise SetupError(message) from None
    if span > LONGEST_MS:
        message = "A mute lasts a year at most: to stop a rule for longer, set enabled: false in the rules."
        raise SetupError(message)
    return span


_WRITE_IT = "write it like 2026-12-01T14:30+01:00, or as a span ago, like 10m."


def _moment(option: str, given: str, now: int) -> int:
    with suppress(ValueError):
        return now - span_ms(given)
    moment = None
    with suppress(ValueError):
        moment = datetime.fromisoformat(given)
    if moment is None or moment.tzinfo is None:
        message = f"{option} {visible(given)} is not a time: {_WRITE_IT}"
        raise SetupError(message)
    found = epoch_ms(moment)
    if not 0 <= found < _END_MS:
        message = f"{option} {visible(given)} lies outside of the years 1970 to 9999: {_WRITE_IT}"
        raise SetupError(message)
    return found


def _spans(one: Mute, now: int) -> tuple[str, str, str]:
    """Beginning and end of a mute's present or next time, and how long it still holds."""
    until = one.holds_until(now)
    length = one.until_time - one.from_time
    begin = one.from_time if until is None else until - length
    again = f", every {next(word for word, ms in REPEATS_MS.items() if ms == one.repeat_ms)}" if one.repeat_ms else ""
    left = "over" if one.over_at <= now else "-" if until is None else _for(until - now)
    return utc_text(begin), f"{utc_text(begin + length)}{again}", left


def _whole(one: Mute) -> str:
    return visible(whole(one))


def _for(ms: int) -> str:
    return age(timedelta(milliseconds=ms))


def _now() -> int:
    return round(time.time() * 1000)
