"""What no assignment can mend: too many members, a hot partition, offsets that expire, unknown clients, no members."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from streaming.advice.period import Advice, Period

BEYOND_LEAST: Final = 3
"""Days with too many members for most of the time, from which on there is advice."""

HOT_LEAST: Final = 24
"""Hours in which the partition got records, from which on there is advice."""

ABANDONED_LEAST: Final = 7
"""Days without members and commits, from which on there is advice."""

EMPTY_LEAST: Final = 12
"""Hours without members, from which on there is advice about the offsets."""

UNEXPLAINED_LEAST: Final = 3
"""Decisions that no known client gives, from which on there is advice: one may be a moment's metadata."""

# Below this, shares are chance; and a partition with a little more than a fair share does no harm.
_HOT_RECORDS = 10_000
_HOT_FACTOR = 1.5

_HALF_A_DAY_S = 43_200

_SHARE, _STREAMS = "share", "streams"
_TOOLS: Final = {_SHARE: "kafka-share-groups", _STREAMS: "kafka-streams-groups"}
"""What deletes a group, by its type, where it is another tool than for consumer groups."""


def too_many_members(period: Period) -> Advice | None:
    """Members beyond the partitions, on most days for most of the time.

    Members of a share group share partitions, and those of a streams group may have standby tasks.
    """
    if period.group_type in (_SHARE, _STREAMS):
        return None
    most = [one for one in period.days if one.beyond is not None and one.observed and one.beyond > one.observed / 2]
    if len(most) < BEYOND_LEAST or 2 * len(most) <= len(period.days):
        return None
    hours = sum(one.beyond or 0 for one in most) / 3600
    observed = sum(one.observed for one in most) / 3600
    beyond = max(one.beyond_max or 0 for one in most)
    has = "" if period.partitions is None else f" It reads {period.partitions} partitions now."
    return Advice(
        "too_many_members",
        len(most),
        "Run no more members than partitions, or add partitions.",
        f"On {len(most)} of {len(period.days)} days the group had more members than partitions for {hours:.1f} of "
        f"{observed:.1f} observed hours, up to {beyond} too many: these had nothing to read.{has}",
        "None, unless the extra members are a reserve: they take over when others fail. More partitions "
        "change which partition a key goes to.",
        float(beyond),
        "members",
        (("days", str(len(most))), ("members_beyond", str(beyond)), ("hours", f"{hours:.3f}")),
    )


def hot_partition(period: Period) -> Advice | None:
    """One partition that got far more than one member's fair share of what was produced.

    Members of a share group share it.
    """
    if period.group_type == _SHARE:
        return None
    produced = period.produced
    known = sum(one.members_known for one in period.days if one.members_mean is not None)
    if produced is None or not known or produced.hours < HOT_LEAST or produced.total < _HOT_RECORDS:
        return None
    members = sum((one.members_mean or 0) * one.members_known for one in period.days) / known
    # More members than partitions share nothing more.
    sharing = members if period.partitions is None else min(members, period.partitions)
    if sharing < 2 or produced.most * sharing <= produced.total * _HOT_FACTOR:
        return None
    fair, share = 100 / sharing, 100 * produced.most / produced.total
    broker = f"@{produced.broker}" if produced.broker else ""
    name = f"{produced.topic}{broker}-{produced.partition}"
    return Advice(
        "hot_partition",
        produced.hours,
        f"Spread the records of {name}: another key, or more partitions if many keys share it. No strategy can "
        "divide one partition.",
        f"{name} got {produced.most:,} of {produced.total:,} records in {produced.hours} hours, {share:.1f} %. With "
        f"{sharing:.1f} members that share the partitions, a fair share is {fair:.1f} %: its owner has more, even if "
        "it owns nothing else.",
        "Another key changes which records stay in order. More partitions help only if the records of this one have "
        "different keys, which offsets do not show.",
        None,
        None,
        (
            ("topic", produced.topic), *([("broker", produced.broker)] if produced.broker else []),
            ("partition", str(produced.partition)), ("records", str(produced.most)),
            ("records_of_all", str(produced.total)), ("members", f"{sharing:.3f}"),
        ),
    )  # fmt: skip


def declare_clients(period: Period) -> Advice | None:
    """Decisions that stay unverified because nobody knows which clients run."""
    if period.unexplained < UNEXPLAINED_LEAST:
        return None
    nearest = f" {period.nearest} came nearest to the last one." if period.nearest else ""
    return Advice(
        "declare_clients",
        period.unexplained,
        "Declare the libraries that the group's members run (`clients` in [[strategies]]): then such a decision is "
        "drifted if none of them gives it, and identical if one does.",
        f"{period.unexplained:,} of {period.judged:,} decisions are unverified, because no known client gives their "
        f"assignment.{nearest}",
        "A wrong declaration calls healthy decisions drifted: name every library that may lead the group.",
        details=(("decisions", str(period.unexplained)), ("judged", str(period.judged))),
    )


def abandoned(period: Period) -> Advice | None:
    """A group that nobody was in, and that committed nothing, for the whole period."""
    days = period.days
    if len(days) < ABANDONED_LEAST or any(
        one.members_max != 0 or one.commits != 0 or one.observed < _HALF_A_DAY_S for one in days
    ):
        return None
    tool = _TOOLS.get(period.group_type or "", "kafka-consumer-groups")
    begins = "share.auto.offset.reset" if period.group_type == _SHARE else "auto.offset.reset"
    first, last = days[0].lag_total_max, days[-1].lag_total_max
    if first is None or last is None:
        lag = "Its lag is not known"
    elif last > first:
        lag = f"Its lag grew from {first:,} to {last:,} records"
    else:
        lag = f"Its lag is {last:,} records"
    return Advice(
        "abandoned",
        len(days),
        f"Find out who owns the group. If nobody needs it, delete it (`{tool} --delete`) and end "
        "its alerts; if somebody does, its consumers are down.",
        f"No members and no commit on any of {len(days)} days ({days[0].day} to {days[-1].day}). {lag}.",
        f"Its offsets are deleted with it: a consumer that comes back begins where `{begins}` says.",
        details=(("lag_first", "" if first is None else str(first)), ("lag_last", "" if last is None else str(last))),
    )


def offsets_expire(period: Period) -> Advice | None:
    """A group without members for at least half of the time after which brokers delete its offsets.

    The time counts from when the last member was gone (KIP-211, brokers since 2.1; earlier ones count from the commit,
    so they delete sooner). With the consumer protocol (KIP-848) it counts from each commit, so nothing is said there.
    """
    since, kept = period.empty_since_ms, period.offsets_retention_minutes
    if since is None or kept is None:
        return None
    if period.group_type not in {None, "classic"} or period.protocol_type != "consumer":
        return None
    begin = datetime.fromtimestamp(since / 1000, UTC)
    end_of_day = datetime(period.day.year, period.day.month, period.day.day, tzinfo=UTC) + timedelta(days=1)
    empty, retention = end_of_day - begin, timedelta(minutes=kept)
    hours = int(empty / timedelta(hours=1))
    if hours < EMPTY_LEAST or 2 * empty < retention or empty >= retention:
        return None
    expires = begin + retention
    lag = period.days[-1].lag_total_max
    unread = "Its lag is not known" if lag is None else f"Its lag was up to {lag:,} records on that day"
    return Advice(
        "offsets_expire",
        hours,
        f"Start a consumer of the group before {expires:%Y-%m-%d %H:%M} UTC, or note its offsets down: brokers delete "
        "them then. A commit from outside does not keep them.",
        f"The last member was gone at {begin:%Y-%m-%d %H:%M} UTC, {hours} hours before the end of the day. Brokers "
        f"keep the offsets of a group without members for {kept / 60:g} hours (`offsets.retention.minutes` = {kept}). "
        f"{unread}.",
        "None. Without its offsets a consumer begins where `auto.offset.reset` says: it reads everything again, or "
        "skips what it has not read.",
        details=(
            ("empty_since", f"{begin:%Y-%m-%dT%H:%M:%SZ}"), ("expires", f"{expires:%Y-%m-%dT%H:%M:%SZ}"),
            ("retention_minutes", str(kept)),
        ),
    )  # fmt: skip
