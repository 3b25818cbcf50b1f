"""Rounds with the rows that rules judge at them; among these the rows whose truth changes with time alone.

Two measures of a group move with the time: how far it is behind, and in how long it loses data.

`group_health` says how far behind a group was at the round of its row, and has no new row while nothing moves. A rule
about it is judged at every round, over the row with the time added that has passed since. It is known as bounds as
well: the elapsed time stands still while no round closes, and the rounds' own times jump with a wrong clock. The
lower bound grows by the smaller of the two, the upper bound by the larger; what counts down does so the other way
round, to 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from streaming.alerts.rules.expressions import fetched
from streaming.tables import in_memory

AT: Final = "_at"
"""Number of the round at which a row is judged."""

AT_LEAST: Final = "_at_least"
AT_MOST: Final = "_at_most"
"""How far the group is behind at that round, s: NULL if that is not known, infinite if it has no upper bound."""

LOSES_AT_LEAST: Final = "_loses_at_least"
LOSES_AT_MOST: Final = "_loses_at_most"
"""In how long the group loses data at that round, s: NULL if neither bound is known, infinite if never."""

COLUMNS: Final = frozenset(
    {
        "time_behind_seconds_min",
        "time_behind_seconds_max",
        "time_behind_topic",
        "time_behind_reason",
        "loses_data_in_seconds_min",
        "loses_data_in_seconds_max",
        "loses_data_reason",
    }
)
"""Columns of `group_health` that are needed, beside key, round and `ended`."""

_ELAPSED = "_elapsed"

# Reasons for which nothing will be lost.
_SAFE = "coalesce(loses_data_reason IN ('keeps_up', 'no_retention'), false)"

_LOSES = f"(NOT {_SAFE} AND coalesce(loses_data_in_seconds_min, loses_data_in_seconds_max) IS NOT NULL)"

_BEHIND = (
    "NOT ended AND time_behind_seconds_min IS NOT NULL "
    "AND (time_behind_topic IS NOT NULL OR time_behind_reason IS NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class FeedRound:
    """One closed round.

    Attributes:
        number: Its number.
        time: Its time, ms; only displayed.
        interval_ms: The probe's interval.
        elapsed: Elapsed time over all rounds, ms; None in rows of older releases.
    """

    number: int
    time: int
    interval_ms: int
    elapsed: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rounds in order, with what the rules judge at them.

    Attributes:
        rounds: The rounds.
        rows: By table the rows that they changed (columns of `Feed`, unordered).
        standing: Rows of `group_health` as `Standing.at` gives them; None if no rule needs them.
    """

    rounds: tuple[FeedRound, ...]
    rows: Mapping[str, pa.Table] = field(default_factory=dict)
    standing: pa.Table | None = None


class Standing:
    """The current rows of groups that are behind. Call `begin` first, then `at` with successive rounds."""

    def __init__(self, schema: pa.Schema, *, only_losing: bool = False) -> None:
        """Prepare.

        Args:
            schema: Columns of the rows of `group_health`.
            only_losing: No rule reads how far a group is behind: then only those that lose data change with time.
        """
        self._schema = schema
        self._moves = f"{_BEHIND} AND {_LOSES}" if only_losing else _BEHIND
        self._rows = schema.append(pa.field(_ELAPSED, pa.int64())).empty_table()
        self._elapsed: dict[int, int | None] = {}

    def begin(self, elapsed: Mapping[int, int | None]) -> None:
        """Forget all rows.

        Args:
            elapsed: Elapsed time of rounds before the first one that will be judged, ms, by number.
        """
        self._rows = self._rows.slice(0, 0)
        self._elapsed = dict(elapsed)

    def at(self, rounds: Sequence[FeedRound], rows: pa.Table) -> pa.Table:
        """The rows to judge at each of these rounds.

        Args:
            rounds: Rounds in order, at least one.
            rows: The new rows of these rounds, and of rounds that were passed over.

        Returns:
            Each new row at the first round that has it, and those of groups that are behind at each later round until
            another row takes their place; with the columns `AT`, `AT_LEAST`, `AT_MOST`, `LOSES_AT_LEAST` and
            `LOSES_AT_MOST`.
        """
        known = {**self._elapsed, **{r.number: r.elapsed for r in rounds}}
        self._elapsed = {rounds[-1].number: rounds[-1].elapsed}
        names = ", ".join(f'"{name}"' for name in self._schema.names)
        # A row of a round that nobody has seen is taken to be of the first of these, and stays so.
        first = "NULL" if rounds[0].elapsed is None else f"{int(rounds[0].elapsed)}::BIGINT"
        with in_memory() as connection:
            connection.register("standing", self._rows)
            connection.register("news", rows.select(self._schema.names))
            connection.register("known", _table(known))
            connection.register("rounds", _rounds(rounds))
            connection.execute(
                f"""
                CREATE OR REPLACE TEMP TABLE candidates AS
                SELECT *, lead("round") OVER (PARTITION BY group_id ORDER BY "round") AS next FROM (
                  SELECT {names}, {_ELAPSED} FROM standing
                  UNION ALL
                  SELECT {names}, coalesce(known.elapsed, {first})
                  FROM news LEFT JOIN known ON known.number = news."round"
                )
                """  # noqa: S608 - names of our own columns
            )
            judged = fetched(
                connection,
                f"""
                WITH aged AS (
                  SELECT {", ".join(f'c."{name}"' for name in self._schema.names)}, r.number AS "{AT}",
                    r.time - epoch_ms(c.round_time) AS by_time,
                    coalesce(r.elapsed - c.{_ELAPSED}, by_time) AS by_elapsed,
                    {_BEHIND} AS behind, {self._moves} AS moves,
                    row_number() OVER (PARTITION BY c.group_id, c."round" ORDER BY r.number) = 1 AS is_new
                  FROM candidates AS c JOIN rounds AS r
                    ON r.number >= c."round" AND (c.next IS NULL OR r.number < c.next)
                )
                SELECT {names}, "{AT}",
                  time_behind_seconds_min
                    + CASE WHEN behind THEN greatest(0, least(by_time, by_elapsed)) / 1000 ELSE 0 END AS "{AT_LEAST}",
                  CASE WHEN time_behind_seconds_min IS NULL THEN NULL WHEN NOT behind THEN time_behind_seconds_max
                    WHEN time_behind_seconds_max IS NULL OR by_time < 0 THEN 'infinity'::DOUBLE
                    ELSE time_behind_seconds_max + greatest(by_time, by_elapsed) / 1000 END AS "{AT_MOST}",
                  CASE WHEN {_SAFE} THEN 'infinity'::DOUBLE
                    WHEN loses_data_in_seconds_min IS NULL AND loses_data_in_seconds_max IS NULL THEN NULL
                    WHEN loses_data_in_seconds_min IS NULL OR by_time < 0 THEN 0
                    ELSE greatest(0, loses_data_in_seconds_min - greatest(by_time, by_elapsed) / 1000)
                    END AS "{LOSES_AT_LEAST}",
                  CASE WHEN {_SAFE} THEN 'infinity'::DOUBLE
                    WHEN loses_data_in_seconds_min IS NULL AND loses_data_in_seconds_max IS NULL THEN NULL
                    WHEN loses_data_in_seconds_max IS NULL THEN 'infinity'::DOUBLE
                    ELSE greatest(0, loses_data_in_seconds_max - greatest(0, least(by_time, by_elapsed)) / 1000)
                    END AS "{LOSES_AT_MOST}"
                FROM aged WHERE moves OR is_new
                """,  # noqa: S608
            )
            left = f"SELECT {names}, {_ELAPSED} FROM candidates WHERE next IS NULL AND {self._moves}"  # noqa: S608
            self._rows = fetched(connection, left).cast(self._rows.schema)
        return judged


def _table(elapsed: Mapping[int, int | None]) -> pa.Table:
    columns = [pa.array(elapsed.keys(), pa.int64()), pa.array(elapsed.values(), pa.int64())]
    return pa.table(columns, names=["number", "elapsed"])


def _rounds(rounds: Sequence[FeedRound]) -> pa.Table:
    columns = [[r.number for r in rounds], [r.time for r in rounds], [r.elapsed for r in rounds]]
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=["number", "time", "elapsed"])
