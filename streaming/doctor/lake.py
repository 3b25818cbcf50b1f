"""The lake: its tables, how fresh they are, who works on it, the checkpoint; and the alerts over it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final

from streaming.alerts import check_settings, load_rules, open_targets
from streaming.catalog import contents, faults
from streaming.config import Settings, Thresholds, checkpoint_of
from streaming.doctor.machine import LookResult
from streaming.exceptions import SetupError
from streaming.probe import CheckResult, tried
from streaming.process import ALERTER, JOB, MAINTAINER, holder_of, try_store
from streaming.records import rest_interval_ms
from streaming.stores import on_object_store
from streaming.tables import LakeReader, table_named
from streaming.terminal import counted

# A batch may take a minute, so the newest round of a job that is well may be older than the alert rules' bound of
# silence (20 s at least): that one counts from when a round was read, this one from when it began.
_FRESH_S: Final = 120.0

# How far a round may be ahead of this machine's clock, s. Below the first nothing is wrong, beyond the second the page
# visibly is.
_AHEAD_S: Final = 2.0
_AHEAD_WRONG_S: Final = 60.0


def check_lake(settings: Settings) -> Iterator[CheckResult]:
    """All checks of the lake."""
    yield tried("lake", "checkpoint", lambda: ("ok", checkpoint_of(settings)))
    kind = "folder"
    if on_object_store(settings.lake):
        kind, fault = "store", try_store(settings.lake)
        if fault is not None:
            yield CheckResult("lake", "store", "wrong", fault)
            return  # (Each table would wait for it in vain.)
        yield CheckResult("lake", "store", "ok", "may be written, and honours conditional writes")
    found = contents(settings.lake)
    bad = [one for one in faults(found) if one.state == "unreadable"]
    # Where the store is away, all tables have the same reason.
    for reason in dict.fromkeys(one.reason for one in bad):
        names = ", ".join(one.table for one in bad if one.reason == reason)
        yield CheckResult("lake", "unreadable tables", "wrong", f"{names} cannot be read: {reason}.")
    there = [one for one in found if one.state == "ok"]
    if not there:
        if not bad:
            yield CheckResult("lake", "tables", "ok", f"none yet in the {kind} {settings.lake}: the job creates them")
        return
    size = sum(one.size_bytes or 0 for one in there) // 2**20
    yield CheckResult("lake", "tables", "ok", f"{len(there)} in the {kind} {settings.lake}, {size:,} MB")
    yield tried("lake", "release", lambda: _release({one.table: one.columns or () for one in there}))
    missing = [one.table for one in faults(found) if one.state == "missing"]
    if missing:
        text = f"{', '.join(missing)}: deleted, or of a release that has not run yet. The next start creates them."
        yield CheckResult("lake", "missing tables", "warn", text)
    if not bad:
        yield tried("lake", "newest round", lambda: _fresh(settings))
    for what, cluster in ((JOB, settings.cluster), (ALERTER, settings.cluster), (MAINTAINER, None)):
        yield tried("lake", f"lease of the {what}", partial(_worker, what, settings.lake, cluster))


def _release(columns: dict[str, tuple[str, ...]]) -> LookResult:
    """Whether there are columns that this release does not know."""
    known = {name: {column.name for column in table_named(name).columns} for name in columns}
    newer = [f"{name}.{column}" for name, names in columns.items() for column in names if column not in known[name]]
    if not newer:
        return "ok", "the tables are those of this release, or of an older one"
    text = (
        f"The lake has {len(newer)} columns that this release does not know ({', '.join(newer[:3])}): a newer one "
        "wrote it. Run that release, or newer; an older one must not write here."
    )
    return "wrong", text


def _fresh(settings: Settings) -> LookResult:
    """How old the newest round is: that with the highest number, because a clock may have been ahead at any other."""
    rows = LakeReader(settings.lake).rows(
        "SELECT round, round_time, interval_ms FROM rounds_current WHERE cluster = $cluster",
        {"cluster": settings.cluster},
    )
    if not rows:
        text = f"none of the cluster {settings.cluster} yet: start probe and job, or correct the setting cluster"
        return "warn", f"{text}."
    newest = rows[0]["round_time"]
    if newest is None:
        return "wrong", f"round {rows[0]['round']} has no time that anybody can show: check the clocks of the brokers."
    age = (datetime.now(UTC) - newest).total_seconds()
    at = f"{newest:%Y-%m-%d %H:%M:%S} UTC"
    if age < -_AHEAD_S:
        text = (
            f"{at}, {-age:,.0f} s ahead of this machine's clock, so it does not say whether rounds still come: check "
            "NTP here and on the brokers. Silence is noticed by page and alerter, which compare no clocks."
        )
        return "wrong" if age < -_AHEAD_WRONG_S else "warn", text
    said = f"{at}, {max(age, 0.0):,.0f} s ago"
    try:
        thresholds = Thresholds.load(settings.alerts.rules)
    except SetupError:
        thresholds = Thresholds()  # the check of the settings says what is wrong with the file
    if age > max(_FRESH_S, thresholds.silent_after_s(rows[0]["interval_ms"])):
        hours = max(0.0, settings.probe.retention_ms / 1000 - age) / 3600
        return "warn", f"{said}: probe or job do not run. See their logs; rounds are kept for another {hours:,.0f} h."
    if rows[0]["interval_ms"] > rest_interval_ms(settings.probe.interval_ms):
        every, wanted = (f"{ms / 1000:g} s" for ms in (rows[0]["interval_ms"], settings.probe.interval_ms))
        text = f"{said}: rounds come every {every}, not every {wanted}. Raise probe.interval_ms, or watch fewer groups."
        return "warn", text
    return "ok", said


def _worker(what: str, lake: str, cluster: str | None) -> LookResult:
    """Who holds the lease of job, alerter or maintainer."""
    holder = holder_of(what, lake, cluster)
    return "ok", "free: none runs" if holder is None else f"held by {holder}"


def check_alerts(settings: Settings) -> Iterator[CheckResult]:
    """The rules file, and whether each target's address is one that can be used. Nothing is sent."""
    told: list[str] = []
    try:
        check_settings(settings, told.append)
        rules = load_rules(settings.alerts.rules)
    except SetupError as error:
        yield CheckResult("alerts", "rules and targets", "wrong", str(error))
        return
    text = f"{counted(len(rules), 'rule')}: {', '.join(rule.name for rule in rules)}"
    none = "there are none, so nothing is ever alerted: write one (docs/alerts.md)."
    yield CheckResult("alerts", "rules", "ok" if rules else "warn", text if rules else none)
    for said in told:
        # The lists of rules and targets have lines of their own, the rest is about what no rule reads.
        if said.partition(": ")[0] not in {"rules", "targets"}:
            yield CheckResult("alerts", "rules", "warn", f"{said}.")
    targets = open_targets(settings)
    if not targets:
        text = "there are none, so no alert is delivered. Name one in alerts.targets_file (docs/alerts.md)."
        yield CheckResult("alerts", "targets", "warn", text)
    for name, target in targets.items():
        trouble = target.status()
        seen: LookResult = "ok", f"{target.looked_at}; `evenkeel alert --test` sends a message"
        if trouble is not None:
            seen = "wrong", f"{trouble}: start it, or correct its address (docs/alerts.md#alertmanager)"
        yield CheckResult("alerts", f"target {name}", *seen)
    if settings.alerts.heartbeat_url is None:
        text = "alerts.heartbeat_url is not set: nobody outside notices when the alerter stands still (docs/alerts.md)"
        yield CheckResult("alerts", "heartbeat", "ok", text)
