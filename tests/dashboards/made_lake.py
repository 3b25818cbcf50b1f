"""Lakes for the page's tests: groups with different problems, written row by row like the job's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import sin
from pathlib import Path
from typing import Any

from assignors import Group, Library, Subscription
from streaming.groups.verdict_inputs import ClientInputs, pack_inputs
from streaming.tables import ALL_TABLES, table_named
from tests.empty_lake import empty_lake

CLUSTER = "demo"
INTERVAL_S = 10
_FIRST_ROUND = 5_000

HOSTILE = (
    '<img src=x onerror="alert(1)"><b>bold</b>',
    'quote\'d "group"; DROP TABLE lag; --',
    "two\nlines\r\nand\ttabs",
    "\u202eright to left\u202c \x00\x1b[31m",
    "{{ 7 * 7 }} {% raw %} $x^2$ :material/home:",
    "javascript:alert(1)//" + "x" * 32_000,
)


@dataclass
class MadeGroup:
    """One group.

    Attributes:
        name: Its name.
        members: Client ids; member ids are derived from them.
        topics: Partitions by topic.
        strategy: Its strategy.
        verdict: Verdict on its newest decision; "drifted" applies from the round `drifted_after` on.
        moved: Partitions with a wrong owner: (topic, partition, index of the actual owner).
        all_on_first: Whether the first member owns everything.
        lag: Lag of one partition at a round.
        status: lag_status at a round.
        findings: Its present findings.
        rate: Records produced per second in one partition; as many are consumed.
        decisions: Rounds of its decisions, counted back from the last, the newest last.
    """

    name: str
    members: tuple[str, ...] = ("worker-1", "worker-2")
    topics: Mapping[str, int] = field(default_factory=lambda: {"orders": 6})
    strategy: str | None = "range"
    verdict: str = "identical"
    reason: str | None = None
    moved: tuple[tuple[str, int, int], ...] = ()
    all_on_first: bool = False
    lag: Any = lambda at, partition: 6 + round(3 * sin(at / 23 + partition) + 2 * sin(at * 1.7 + 5 * partition))
    status: Any = lambda ago: "ok"  # noqa: ARG005
    findings: tuple[tuple[str, str], ...] = ()
    decisions: tuple[int, ...] = (300, 120)
    drifted_since: int = 120
    unowned: tuple[float | None, float | None] = (0.4, 3.1)
    rate: Any = lambda partition: 4.0 + partition % 3
    """Produced per second in one partition."""

    def member_id(self, place: int) -> str:
        return f"{self.members[place]}-0c1f{place:02d}e7-6a1b-4d2c-9e8f-{place:012d}"

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(topic, partition) for topic, count in sorted(self.topics.items()) for partition in range(count)]

    def expected(self) -> dict[tuple[str, int], int]:
        """Owners according to range."""
        owners = {}
        for topic, count in self.topics.items():
            size, extra = divmod(count, len(self.members))
            at = 0
            for place in range(len(self.members)):
                for _ in range(size + (place < extra)):
                    owners[topic, at] = place
                    at += 1
        return owners

    def actual(self, *, drifted: bool) -> dict[tuple[str, int], int]:
        owners = self.expected()
        if drifted and self.all_on_first:
            return dict.fromkeys(owners, 0)
        if drifted:
            owners |= {(topic, partition): place for topic, partition, place in self.moved}
        return owners


class MadeLake:
    """A lake that grows by rounds."""

    def __init__(
        self,
        root: Path | str,
        groups: Sequence[MadeGroup],
        *,
        end: datetime | None = None,
        rounds: int = 1,
        cluster: str = CLUSTER,
    ) -> None:
        """Write `rounds` rounds, the last one at `end` (None: now), in one batch."""
        self.cluster = cluster
        self.lake = empty_lake(root, ALL_TABLES)
        self.groups = groups
        self.batch = 0
        self._decided: dict[str, tuple[int, int]] = {}
        """Time and generation of the newest decision, by group."""
        self.end = end or datetime.now(UTC)
        self.first_end = self.end
        """The end that it was made with; `end` moves on with each `next_round`."""
        self.last = _FIRST_ROUND + rounds - 1
        tables: dict[str, list[list[Any]]] = {}
        for ago in range(rounds - 1, -1, -1):
            self._round(tables, self.last - ago, self._ms(ago), ago)
        self._append(tables)

    def next_round(self) -> None:
        """Write one more round of now, in a later second than the previous one: pages show seconds."""
        self.last += 1
        tables: dict[str, list[list[Any]]] = {}
        self.end = max(datetime.now(UTC), self.end + timedelta(seconds=1))
        self._round(tables, self.last, self._ms(0), 0)
        self._append(tables)

    def add(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Write rows of any table, with columns by name."""
        self._append({table: [_row(table, row) for row in rows]})

    def _ms(self, ago: int) -> int:
        return int(self.end.timestamp() * 1000) - ago * INTERVAL_S * 1000

    def _append(self, tables: dict[str, list[list[Any]]]) -> None:
        for table, rows in tables.items():
            self.lake.append(table, rows, f"made {self.cluster}", self.batch)
        self.batch += 1

    def _round(self, tables: dict[str, list[list[Any]]], number: int, ms: int, ago: int) -> None:
        def put(table: str, **values: Any) -> None:
            day = values.get("record_time", ms) // 86_400_000
            tables.setdefault(table, []).append(_row(table, {"cluster": self.cluster, "event_date": day, **values}))

        seen = {"round": number, "round_time": ms, "ended": False}
        for at, group in enumerate(self.groups):
            drifted = group.verdict == "drifted" and ago <= group.drifted_since
            verdict = group.verdict if drifted or group.verdict != "drifted" else "identical"
            actual = group.actual(drifted=drifted) if group.members else {}
            if ago in group.decisions or (number == _FIRST_ROUND and max(group.decisions, default=ago) >= ago):
                self._decision(put, group, at, number, ms, actual, verdict)
            counts = [sum(place == p for p in actual.values()) for place in range(len(group.members))]
            mean = sum(counts) / len(counts) if counts else 0
            least = -(-len(actual) // len(counts)) / mean - 1 if mean else None
            lags = [group.lag(number, partition) for _, partition in group.places]
            decided, generation = self._decided.get(group.name, (ms, 0))
            put(
                "group_health", **seen, group_id=group.name, source="log", log_partition=at % 50, cluster_id="uWx",
                state="Stable" if group.members else "Empty", group_type="classic",
                protocol_type="consumer" if group.members else None, strategy=group.strategy,
                generation=generation if group.members else None, incarnation=1,
                last_decision_time=decided if group.members else None, members=len(group.members), verdict=verdict,
                verdict_reason=group.reason, drifted_count=len(self._wrong(group, actual)) if drifted else 0,
                findings=[[name, ms - 180_000, detail] for name, detail in group.findings], topics=len(group.topics),
                partitions=len(group.places), assigned_partitions=len(actual), lag_total=sum(lags), lag_max=max(lags),
                lag_read_committed_total=sum(lags), lag_unknown=0, lag_status=group.status(ago), commits=len(lags),
                imbalance=max(counts) / mean - 1 if mean else None, imbalance_optimal=least, **_load(group, actual),
            )  # fmt: skip
            if ago > 30:
                continue  # the page shows only the newest rows of partitions
            for (topic, partition), lag in zip(group.places, lags, strict=True):
                owner = actual.get((topic, partition))
                put(
                    "lag", **seen, group_id=group.name, topic=topic, partition=partition, source="log",
                    committed_offset=80_000 + number, high_watermark=80_000 + number + lag, lag=lag,
                    lag_read_committed=lag,
                    ahead_by=0, lag_status=group.status(ago), commits=1, last_commit_time=ms - 2_000, rewound_by=0,
                    offset_deleted=False, subscribed=True,
                    member_id=None if owner is None else group.member_id(owner),
                    client_id=None if owner is None else group.members[owner], client_host="/10.0.3.17",
                    produced_per_second=group.rate(partition),
                    consumed_per_second=group.rate(partition),
                )  # fmt: skip
        put(
            "rounds", cluster_id="uWx", round=number, round_time=ms, closed_time=ms + 40, interval_ms=INTERVAL_S * 1000,
            probe="probe-1", groups=len(self.groups), events=len(self.groups), log_partitions=50, held_partitions=0,
            log_records=100, elapsed_ms=(number - _FIRST_ROUND) * INTERVAL_S * 1000,
        )  # fmt: skip
        put(
            "batches", query_id="7e0b2f6a-0c1e-4f55-9c1b-6d2f4a3e9b10", batch=number - _FIRST_ROUND,
            started_time=ms + 1_000, duration_ms=400 + number % 50, latest_offset_ms=12, query_planning_ms=9,
            get_batch_ms=1, wal_commit_ms=25, add_batch_ms=330 + number % 50, commit_offsets_ms=21, rounds=1,
            rounds_behind=2 if ago == 5 else 0, input_rows=4 + len(self.groups), written_rows=3 * len(self.groups),
            state_rows=60 + len(self.groups), state_bytes=1_048_576,
        )  # fmt: skip

    @staticmethod
    def _wrong(group: MadeGroup, actual: Mapping[tuple[str, int], int]) -> list[list[Any]]:
        return [
            [topic, partition, "misplaced", group.member_id(place), [group.member_id(actual[topic, partition])], None]
            for (topic, partition), place in sorted(group.expected().items())
            if actual[topic, partition] != place
        ]

    def _decision(
        self, put: Any, group: MadeGroup, at: int, number: int, ms: int, actual: Mapping[Any, int], verdict: str
    ) -> None:
        if not group.members:
            return
        generation = self._decided.get(group.name, (0, 11))[1] + 1
        head = {
            "group_id": group.name, "decision": number * 100, "source": "log", "log_partition": at % 50,
            "record_time": ms - 1_500, "incarnation": 1, "generation": generation,
        }  # fmt: skip
        moved = len(actual) // len(group.members)
        self._decided[group.name] = ms - 1_500, generation
        low, high = group.unowned
        put(
            "rebalance_churn", **head, revision=2, kind="rebalance", previous_generation=generation - 1,
            generations_skipped=0, protocol_type="consumer", strategy=group.strategy, leader=group.member_id(0),
            members=len(group.members), partitions=len(actual),
            joined=[group.member_id(len(group.members) - 1)] if number % 20 < 10 else [],
            left=[] if number % 30 < 20 else [group.member_id(0)], replaced=[],
            partitions_moved=moved, partitions_moved_optimal=min(moved, 2),
            partitions_pending_handover=0, unassigned_partition_seconds_min=low, unassigned_partition_seconds_max=high,
            causes=[["member_joined", "not in the generation before", 1, [group.member_id(0)], None, None, None]],
            rebalance_protocol="eager", partitions_stopped_unmoved=len(actual) - moved,
        )  # fmt: skip
        put(
            "drift", **head, round=number, round_time=ms, strategy=group.strategy, verdict=verdict, reason=group.reason,
            matching_library="java:3.5" if verdict == "identical" else None, candidates=4,
            drifted_count=len(self._wrong(group, actual)) if verdict == "drifted" else 0,
            drifted_partitions=self._wrong(group, actual) if verdict == "drifted" else [],
            inputs=self._inputs(group) if verdict in {"identical", "drifted"} and group.strategy == "range" else None,
        )  # fmt: skip
        self._what_if(put, group, head, {"round": number, "round_time": ms}, moved)
        for place, client in enumerate(group.members):
            given = [
                [topic, [p for (t, p), owner in sorted(actual.items()) if t == topic and owner == place], None]
                for topic in group.topics
            ]
            put(
                "members", **head, member_id=group.member_id(place), ended=False, client_id=client,
                client_host=f"/10.0.3.{17 + place}", leader=place == 0, subscription=list(group.topics),
                partition_count=sum(len(partitions) for _, partitions, _ in given),
                partitions=[item for item in given if item[1]],
            )  # fmt: skip

    @staticmethod
    def _inputs(group: MadeGroup) -> bytes | None:
        members = (Subscription(group.member_id(place), tuple(group.topics)) for place in range(len(group.members)))
        made = Group(tuple(sorted(members, key=lambda member: member.member_id)), group.topics)
        return pack_inputs(ClientInputs("range", made, Library("java", (3, 5))))

    @staticmethod
    def _what_if(put: Any, group: MadeGroup, head: dict[str, Any], seen: dict[str, Any], moved: int) -> None:
        """Sticky strategies move the least, roundrobin twice as much as range; other ones have a reason instead."""
        known = {"range": moved, "roundrobin": 2 * moved, "sticky": min(moved, 2), "cooperative-sticky": min(moved, 2)}
        even = -(-len(group.places) // len(group.members)) * len(group.members) / len(group.places) - 1
        best = {"partitions_moved_optimal": min(moved, 2), "imbalance_optimal": even}
        library = {"range": "java:3.5", "roundrobin": "java:2.4"}
        for strategy in dict.fromkeys((*known, group.strategy)):
            values: dict[str, Any] = {"reason": group.reason}
            if strategy in known:
                values = {"partitions_moved": known[strategy], "imbalance": even}
                values["library"] = library.get(strategy, "java:3.7.1")
            put("what_if", **head, **seen, **best, **values, strategy=strategy, runs=strategy == group.strategy)


def _load(group: MadeGroup, actual: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    """The columns of load in group_health: rates and how evenly they lie on the members."""
    rates = {place: group.rate(place[1]) for place in group.places}
    total, members = sum(rates.values()), len(group.members)
    rated = {"produced_per_second": total, "consumed_per_second": total}
    if not members:
        return rated
    carried, best = [0.0] * members, [0.0] * members
    for place, owner in actual.items():
        carried[owner] += rates[place]
    for rate in sorted(rates.values(), reverse=True):
        best[best.index(min(best))] += rate
    mean = total / members
    fair = total / min(members, len(rates))
    return rated | {
        "load_imbalance": max(carried) / mean - 1,
        "load_imbalance_optimal_min": max(max(rates.values()) / mean - 1, 0.0),
        "load_imbalance_optimal_max": max(best) / mean - 1,
        "hot_partitions": [[topic, p, rate] for (topic, p), rate in rates.items() if rate > 1.1 * fair],
    }


def _row(table: str, values: Mapping[str, Any]) -> list[Any]:
    columns = [column.name for column in table_named(table).columns]
    unknown = values.keys() - set(columns)
    assert not unknown, f"{table} has no {unknown}"
    return [values.get(column) for column in columns]


def stories() -> Iterator[MadeGroup]:
    """Groups as on a platform: most are well, a few are not."""
    yield MadeGroup(
        "payments-audit",
        members=tuple(f"audit-{n}" for n in range(1, 7)),
        topics={"payments": 18, "refunds": 12},
        verdict="drifted",
        moved=(("payments", 4, 4), ("refunds", 9, 0)),
        drifted_since=120,
        decisions=(390, 300, 210, 120),
    )
    yield MadeGroup(
        "clicks-pile-up",
        members=("clicks-1", "clicks-2", "clicks-3"),
        topics={"clicks": 12},
        rate=lambda partition: 180.0 + 7 * partition,
        verdict="drifted",
        all_on_first=True,
        drifted_since=45,
        decisions=(330, 45),
        lag=lambda at, partition: 300 + round(180 * sin(at / 31) + 90 * sin(at * 1.3 + partition)),
    )
    yield MadeGroup(
        "billing-stuck",
        members=("billing-1", "billing-2"),
        topics={"invoices": 4},
        rate=lambda partition: 2.4 if partition else 31.0,
        lag=lambda at, partition: 20 + max(0, at - 5_000 - 330) * (60 if partition == 2 else 0) + partition,
        status=lambda ago: "stopped" if ago < 45 else "ok",
        decisions=(350, 200),
    )
    yield MadeGroup(
        "search-indexer",
        members=tuple(f"indexer-{n}" for n in range(1, 5)),
        topics={"catalogue-changes": 16},
        strategy="cooperative-sticky",
        verdict="unverified",
        reason="strategy 'cooperative-sticky' is not known",
        lag=lambda at, partition: max(0, (at - 5_200)) * 9 + partition * 5 + (at * 13) % 60,
        status=lambda ago: "falling_behind" if ago < 90 else "ok",
    )
    yield MadeGroup(
        "signups-growing",
        topics={"signups": 8},
        findings=(("stale_metadata", "new partitions that the leader has not seen: signups (8 to 12 partitions)"),),
    )
    yield MadeGroup("orders-pinned", strategy="pinned", verdict="unverified", reason="strategy 'pinned' is not known")
    yield MadeGroup(
        "orders-mirror",
        members=(),
        strategy=None,
        verdict="not_applicable",
        reason="no membership: offsets are committed without joining the group (assign and commit)",
    )
    for name, members in (
        ("checkout", 3), ("fraud-scoring", 4), ("inventory-sync", 2), ("ledger-export", 1), ("mailer", 2),
        ("notifications-push-eu-central-1-production-blue", 3), ("orders-range", 3), ("pricing", 2),
        ("recommendations", 6), ("shipping-labels", 2), ("tills-static", 4), ("transfers-exactly-once", 2),
    ):  # fmt: skip
        yield MadeGroup(
            name,
            members=tuple(f"{name[:12]}-{n}" for n in range(1, members + 1)),
            topics={f"{name.split('-')[0]}-events": 12},
            decisions=(300 - len(name) * 3, 100 - len(name)),
        )
