"""A lake as it is after a day of a busy cluster: a batch every ten seconds, a file per batch and table.

Without any maintenance: 8,640 files in each of `lag`, `group_health` and `rounds`, hundreds to thousands in the others.
The files are Parquet as delta-rs writes them, with the statistics that readers prune by. They are added to Delta's log
an hour at a time, while the job would commit each separately; a reader opens the table from a checkpoint, which is the
same list in both cases.

Seven groups in ten commit all the time, so each of their partitions has a row in every round; two in ten commit every
five minutes; one in ten never commits and has only its heartbeats. A group rebalances once an hour. Two in a hundred
have drifted for the last hour, one has stopped, one falls behind.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from streaming.tables import DeltaLake, Table, table_named

CLUSTER = "bench"
_MEMBERS = 2
_OCCASIONAL_ROUNDS = 30
_HEARTBEAT_ROUNDS = 60
_REBALANCE_ROUNDS = 360
_FIRST_ROUND = 1_000
_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")

_DRIFTED_OF_100, _STOPPED_OF_100, _BEHIND_OF_100 = (0, 1), (2,), (3,)


@dataclass(frozen=True, slots=True)
class DaySize:
    """Size of the lake.

    Attributes:
        groups: Groups of two members each.
        partitions: Partitions per group, all of one topic.
        hours: Length of the day.
        interval_s: Interval of rounds and batches.
        busy: Share of groups that commit all the time.
        occasional: Share of groups that commit every five minutes; those that are left never commit.
        with_members: Share of groups that have members.
    """

    groups: int = 1_000
    partitions: int = 10
    hours: float = 24
    interval_s: int = 10
    busy: float = 0.7
    occasional: float = 0.2
    with_members: float = 1.0

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.hours * 3600 / self.interval_s)


class MadeDay:
    """A generated day.

    Attributes:
        files: Number of files per table.
    """

    def __init__(self, lake: DeltaLake, made: _Made, rounds: int) -> None:
        self.files: dict[str, int] = {}
        self._lake = lake
        self._made = made
        self._rounds = rounds

    def next_round(self) -> None:
        """Write one more round as one batch, with one commit per table."""
        _commit(self._lake, _by_table([self._made.round(self._rounds)]))
        self._rounds += 1


def write_day(root: Path, size: DaySize, say: Callable[[str], None], end: datetime | None = None) -> MadeDay:
    """Generate the lake.

    Args:
        root: New folder of the lake.
        size: Size of the lake.
        say: Shows the progress.
        end: Time of the last round; None for now.
    """
    lake = DeltaLake(str(root))
    lake.create()
    made = _Made(root, size, end or datetime.now(UTC))
    day = MadeDay(lake, made, size.rounds)
    an_hour = max(1, 3600 // size.interval_s)
    with ThreadPoolExecutor(2) as pool:
        for first in range(0, size.rounds, an_hour):
            say(f"writing a day of rounds: hour {first // an_hour + 1} of {size.hours:.0f}")
            rounds = range(first, min(first + an_hour, size.rounds))
            written = _by_table(pool.map(made.round, rounds))
            _commit(lake, written)
            for name, actions in written.items():
                day.files[name] = day.files.get(name, 0) + len(actions)
    for name in day.files:
        DeltaTable(lake.path(name)).create_checkpoint()
    return day


def _commit(lake: DeltaLake, written: dict[str, list[AddAction | RemoveAction]]) -> None:
    for name, actions in written.items():
        table = DeltaTable(lake.path(name))
        table.create_write_transaction(actions, "append", table.schema(), ["event_date"])


def _by_table(rounds: Iterable[list[tuple[str, AddAction]]]) -> dict[str, list[AddAction | RemoveAction]]:
    found: dict[str, list[AddAction | RemoveAction]] = {}
    for actions in rounds:
        for name, action in actions:
            found.setdefault(name, []).append(action)
    return found


class _Made:
    """The columns of each round."""

    def __init__(self, root: Path, size: DaySize, end: datetime) -> None:
        self._root = root
        self._size = size
        self._begin = end - timedelta(seconds=size.interval_s * (size.rounds - 1))
        number = np.arange(size.groups)
        kind = np.random.default_rng(7).random(size.groups)
        self._busy = kind < size.busy
        self._occasional = (kind >= size.busy) & (kind < size.busy + size.occasional)
        self._moves = self._busy | self._occasional
        self._has_members = number < size.with_members * size.groups
        self._number = number
        self._group = pa.array([f"checkout-service-{n:04d}" for n in range(size.groups)])
        self._topic = pa.array([f"orders-{n // 10:03d}" for n in range(size.groups)])
        self._member = [
            f"consumer-checkout-service-{n:04d}-{m}-{uuid.UUID(int=n * 7 + m)}"
            for n in range(size.groups)
            for m in range(_MEMBERS)
        ]
        self._members = pa.array(self._member)
        self._clients = pa.array([f"checkout-{m}" for m in range(_MEMBERS)])
        self._hosts = pa.array([f"/10.0.{n // 250}.{n % 250}" for n in range(size.groups)])

    def round(self, at: int) -> list[tuple[str, AddAction]]:
        """Write the files of one round."""
        time = self._begin + timedelta(seconds=self._size.interval_s * at)
        made = {
            "lag": self._lag(at, time),
            "group_health": self._health(at, time),
            **self._decisions(at, time),
            "what_if": self._what_if(at, time),
            "rounds": self._round(at, time),
        }
        return [(name, self._write(table_named(name), columns, time)) for name, columns in made.items() if columns]

    def _active(self, at: int) -> Any:
        return (
            self._busy
            | (self._occasional & ((at + self._number) % _OCCASIONAL_ROUNDS == 0))
            | ((at + self._number) % _HEARTBEAT_ROUNDS == 0)
        )

    def _is(self, which: tuple[int, ...], groups: Any) -> Any:
        return np.isin(groups % 100, which)

    def _behind(self, groups: Any, at: int) -> Any:
        """Lag in records of each partition of each group."""
        noise = np.where(self._moves[groups], np.random.default_rng(at).integers(0, 200, len(groups)), 0)
        late = np.maximum(0, at - (self._size.rounds - 360))
        return noise + np.where(self._is(_STOPPED_OF_100 + _BEHIND_OF_100, groups), 40 * late, 0)

    def _status(self, groups: Any, at: int) -> pa.Array:
        late = at > self._size.rounds - 360
        names = pa.array(["ok", "stopped", "falling_behind"])
        code = np.where(self._is(_STOPPED_OF_100, groups), 1, np.where(self._is(_BEHIND_OF_100, groups), 2, 0))
        return names.take(pa.array(code if late else np.zeros_like(code)))

    def _lag(self, at: int, time: datetime) -> dict[str, Any]:
        groups = self._number[self._active(at)].repeat(self._size.partitions)
        partition = np.tile(np.arange(self._size.partitions, dtype=np.int32), len(groups) // self._size.partitions)
        owner, owned = groups * _MEMBERS + partition % _MEMBERS, self._has_members[groups]
        moves = self._moves[groups]
        committed = 1_000_000 + 37 * at * moves + 1000 * partition
        lag = self._behind(groups, at)
        return {
            "group_id": self._group.take(groups),
            "topic": self._topic.take(groups),
            "partition": partition,
            "source": _same("log", len(groups)),
            "round": _same(_FIRST_ROUND + at, len(groups)),
            "round_time": _same(time, len(groups)),
            "ended": _same(False, len(groups)),
            "committed_offset": committed,
            "high_watermark": committed + lag,
            "last_stable_offset": committed + lag,
            "log_start_offset": np.zeros_like(lag),
            "lag": lag,
            "lag_read_committed": lag,
            "ahead_by": np.zeros_like(lag),
            "lag_status": self._status(groups, at),
            "commits": np.where(moves, 2, 0),
            "last_commit_time": pa.array([self._begin, time], pa.timestamp("us", "UTC")).take(pa.array(1 * moves)),
            "rewound_by": np.zeros_like(lag),
            "offset_deleted": _same(False, len(groups)),
            "subscribed": _same(True, len(groups)),
            "member_id": self._members.take(_or_null(owner, owned)),
            "client_id": self._clients.take(_or_null(owner % _MEMBERS, owned)),
            "client_host": self._hosts.take(_or_null(groups, owned)),
        }

    def _health(self, at: int, time: datetime) -> dict[str, Any]:
        groups = self._number[self._active(at)]
        n, each = len(groups), self._size.partitions
        lag = self._behind(groups, at) * each
        drifted, owned = self._drifted(groups, at), self._has_members[groups]
        return {
            "cluster_id": _same("bench", n),
            "group_id": self._group.take(groups),
            "source": _same("log", n),
            "log_partition": (groups % 50).astype(np.int32),
            "round": _same(_FIRST_ROUND + at, n),
            "round_time": _same(time, n),
            "ended": _same(False, n),
            "state": pa.array(["Empty", "Stable"]).take(pa.array(owned.astype(np.int8))),
            "group_type": _same("classic", n),
            "protocol_type": _same("consumer", n),
            "strategy": pa.array(["range"]).take(_or_null(0 * groups, owned)),
            "incarnation": _same(1, n, pa.int32()),
            "generation": self._generation(groups, at),
            "last_decision_time": _same(time, n),
            "members": np.where(owned, _MEMBERS, 0).astype(np.int32),
            "verdict": pa.array(["identical", "drifted"]).take(pa.array(drifted.astype(np.int8))),
            "drifted_count": drifted.astype(np.int32),
            "findings": pa.array([[]] * n, table_named("group_health").arrow_schema.field("findings").type),
            "topics": _same(1, n, pa.int32()),
            "partitions": _same(each, n, pa.int32()),
            "assigned_partitions": np.where(owned, each, 0).astype(np.int32),
            "lag_total": lag,
            "lag_read_committed_total": lag,
            "lag_max": lag // each + 1,
            "lag_unknown": _same(0, n, pa.int32()),
            "lag_status": self._status(groups, at),
            "commits": np.full_like(lag, 2 * each),
            "imbalance": _same(0.0, n),
            "imbalance_optimal": _same(0.0, n),
        }

    def _deciding(self, at: int) -> Any:
        deciding = self._has_members if not at else self._has_members & ((at + self._number) % _REBALANCE_ROUNDS == 0)
        return self._number[deciding]

    def _what_if(self, at: int, time: datetime) -> dict[str, Any]:
        groups = self._deciding(at).repeat(len(_STRATEGIES))
        n, each = len(groups), self._size.partitions
        if not n:
            return {}
        strategies = np.tile(np.array(_STRATEGIES), n // len(_STRATEGIES))
        return {
            "group_id": self._group.take(groups),
            "source": _same("log", n),
            "log_partition": (groups % 50).astype(np.int32),
            "decision": _same(_FIRST_ROUND + 5 * at, n),
            "record_time": _same(time, n),
            "incarnation": _same(1, n, pa.int32()),
            "generation": self._generation(groups, at),
            "round": _same(_FIRST_ROUND + at, n),
            "round_time": _same(time, n),
            "strategy": pa.array(strategies),
            "runs": strategies == _STRATEGIES[0],
            "library": _same("java:3.7.1", n),
            "partitions_moved": _same(each // 2, n, pa.int32()),
            "partitions_moved_optimal": _same(each // 2, n, pa.int32()),
            "imbalance": _same(0.0, n),
            "imbalance_optimal": _same(0.0, n),
        }

    def _decisions(self, at: int, time: datetime) -> dict[str, dict[str, Any]]:
        groups = self._deciding(at)
        if not len(groups):
            return {}
        n, each = len(groups), self._size.partitions
        drifted = self._drifted(groups, at)
        generation = self._generation(groups, at)
        head = {
            "group_id": self._group.take(groups),
            "source": _same("log", n),
            "log_partition": (groups % 50).astype(np.int32),
            "decision": _same(_FIRST_ROUND + 5 * at, n),
            "record_time": _same(time, n),
        }
        members = groups.repeat(_MEMBERS) * _MEMBERS + np.tile(np.arange(_MEMBERS), n)
        ids = [[self._member[g * _MEMBERS]] for g in groups]
        wrong = [
            [(f"orders-{g // 10:03d}", 0, "misplaced", self._member[g * 2 + 1], [self._member[g * 2]], None)]
            if d
            else []
            for g, d in zip(groups, drifted, strict=True)
        ]
        given = [
            [(f"orders-{m // 20:03d}", [p for p in range(each) if p % _MEMBERS == m % _MEMBERS], None)] for m in members
        ]
        return {
            "rebalance_churn": head
            | {
                "revision": _same(1, n, pa.int32()),
                "kind": _same("rebalance", n),
                "incarnation": _same(1, n, pa.int32()),
                "generation": generation,
                "previous_generation": generation - 1,
                "generations_skipped": _same(0, n, pa.int32()),
                "protocol_type": _same("consumer", n),
                "strategy": _same("range", n),
                "leader": self._members.take(groups * _MEMBERS),
                "members": _same(_MEMBERS, n, pa.int32()),
                "partitions": _same(each, n, pa.int32()),
                "joined": ids,
                "left": ids,
                "replaced": [[]] * n,
                "partitions_moved": _same(each // 2, n, pa.int32()),
                "partitions_moved_optimal": _same(each // 2, n, pa.int32()),
                "partitions_pending_handover": _same(0, n, pa.int32()),
                "unassigned_partition_seconds_min": _same(0.1, n),
                "unassigned_partition_seconds_max": _same(3.5, n),
            },
            "drift": head
            | {
                "incarnation": _same(1, n, pa.int32()),
                "generation": generation,
                "round": _same(_FIRST_ROUND + at, n),
                "round_time": _same(time, n),
                "strategy": _same("range", n),
                "verdict": pa.array(["identical", "drifted"]).take(pa.array(drifted.astype(np.int8))),
                "matching_library": _same("java 3.7", n),
                "candidates": _same(4, n, pa.int32()),
                "drifted_count": drifted.astype(np.int32),
                "drifted_partitions": wrong,
            },
            "members": {
                "group_id": self._group.take(members // _MEMBERS),
                "member_id": self._members.take(members),
                "source": _same("log", len(members)),
                "log_partition": (members // _MEMBERS % 50).astype(np.int32),
                "decision": _same(_FIRST_ROUND + 5 * at, len(members)),
                "record_time": _same(time, len(members)),
                "ended": _same(False, len(members)),
                "incarnation": _same(1, len(members), pa.int32()),
                "generation": generation.repeat(_MEMBERS),
                "client_id": self._clients.take(members % _MEMBERS),
                "client_host": self._hosts.take(members // _MEMBERS),
                "leader": members % _MEMBERS == 0,
                "subscription": [[f"orders-{m // 20:03d}"] for m in members],
                "partition_count": _same(each // _MEMBERS, len(members), pa.int32()),
                "partitions": given,
            },
        }

    def _round(self, at: int, time: datetime) -> dict[str, Any]:
        return {
            "cluster_id": ["bench"],
            "round": [_FIRST_ROUND + at],
            "round_time": [time],
            "closed_time": [time],
            "interval_ms": [self._size.interval_s * 1000],
            "probe": ["bench"],
            "groups": [self._size.groups],
            "events": [self._size.groups],
            "log_partitions": [50],
            "held_partitions": [0],
            "log_records": [20_000],
        }

    def _drifted(self, groups: Any, at: int) -> Any:
        late = at > self._size.rounds - 2 * _REBALANCE_ROUNDS
        return self._is(_DRIFTED_OF_100, groups) & self._has_members[groups] & late

    def _generation(self, groups: Any, at: int) -> Any:
        return ((at + groups) // _REBALANCE_ROUNDS + 1).astype(np.int32)

    def _write(self, table: Table, columns: dict[str, Any], time: datetime) -> AddAction:
        rows = len(next(iter(columns.values())))
        whole = {"cluster": _same(CLUSTER, rows)} | columns
        schema = pa.schema([f.remove_metadata() for f in table.arrow_schema if f.name not in table.partition_by])
        arrays = [_array(whole.get(f.name), f.type, rows) for f in schema]
        day = time.date().isoformat()
        path = f"event_date={day}/part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        target = self._root / table.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), target, compression="snappy")
        seen = time.isoformat(timespec="microseconds").replace("+00:00", "Z")
        bounds: dict[str, str] = {"cluster": CLUSTER, **{c: seen for c in ("round_time", "record_time") if c in whole}}
        stats = {"numRecords": rows, "minValues": bounds, "maxValues": bounds, "nullCount": dict.fromkeys(bounds, 0)}
        written = int(time.timestamp() * 1000)
        return AddAction(path, target.stat().st_size, {"event_date": day}, written, True, json.dumps(stats))


def _same(value: Any, rows: int, kind: pa.DataType | None = None) -> pa.Array:
    if isinstance(value, datetime):
        return pa.repeat(pa.scalar(value, pa.timestamp("us", "UTC")), rows)
    return pa.repeat(pa.scalar(value, kind), rows)


def _or_null(places: Any, known: Any) -> pa.Array:
    return pa.array(places, mask=~known)


def _array(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows, kind)
    made = value if isinstance(value, pa.Array) else pa.array(value, kind if isinstance(value, list) else None)
    return made if made.type == kind else made.cast(kind)
