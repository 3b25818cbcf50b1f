"""What lives, as the tables say it, and whether they can say it.

A group lives when its newest row in `group_health` has not ended, and such a row is never deleted. So a group without
one has ended long ago, unless the table was lost: then the groups of a cluster are known again once its job has filled
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from streaming.maintain.exceptions import GroupsUnknownError
from streaming.maintain.present import living_groups
from streaming.maintain.table.delta_table import MaintainedTable
from streaming.maintain.table.plan import day_of_clock
from streaming.stores import cause_of, on_s3
from streaming.tables import ALL_TABLES, VIEWS, file_system, limited, table_named

NEEDS_GROUPS = tuple(table.name for table in ALL_TABLES if table.retention.with_group)
"""Tables whose present is that of the groups that live."""

_HEALTH = "group_health"

# The plan of a rebuild of the job's state, in its checkpoint (`streaming/job/rebuild/plan.py`).
_PLAN = "rebuild.json"

_RESTORE = "restore that table, or stop the job and run evenkeel run --rebuild-state, which fills it again"


class LivingInLake:
    """What lives in one lake. Not thread-safe."""

    def __init__(
        self,
        lake: str,
        opened: Callable[[str], MaintainedTable | None],
        today: Callable[[], date],
        keep_days: Mapping[str, int],
        checkpoints: Mapping[str, str],
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            lake: Folder or URI.
            opened: Opens a table by name; None when it is not there.
            today: The newest day of the lake (`today_of`).
            keep_days: Days that each table keeps.
            checkpoints: By cluster, where its checkpoint is, if not in its usual place in the lake.
        """
        self._lake = lake
        self._opened = opened
        self._today = today
        self._keep = keep_days
        self._checkpoints = checkpoints

    def groups(self, wanted: pa.Table) -> pa.Table:
        """Those of some groups (`cluster`, `group_id`) that live.

        Raises:
            GroupsUnknownError: The table that tells it is not there, or not filled again yet.
        """
        if not wanted.num_rows:
            return wanted
        health = self._opened(_HEALTH)
        if health is None:
            raise _unknown(None, f"the table {_HEALTH} is not there", _RESTORE)
        clusters = set(pc.unique(wanted["cluster"]).drop_null().to_pylist())
        for cluster in sorted(clusters):
            self._refuse_rebuild(cluster)
        living = living_groups(wanted, health.table, health.files(), health.folder)
        for cluster in sorted(clusters - set(living["cluster"].to_pylist())):
            if not _has_rows(health.rows(), cluster) and not self._is_known_without(cluster):
                raise _unknown(cluster, f"the table {_HEALTH} has no row of them", _RESTORE)
        return living

    def alerts(self) -> pa.Table:
        """Ids of the alerts that are pending or firing: `alert_id`."""
        alerts = self._opened("alerts")
        with limited() as connection:
            connection.register("alerts", alerts.rows() if alerts else table_named("alerts").arrow_schema.empty_table())
            return connection.sql(f"SELECT alert_id FROM ({VIEWS['alerts_current']})").to_arrow_table()  # noqa: S608

    def _refuse_rebuild(self, cluster: str) -> None:
        beside = None if "://" in self._lake else f"{self._lake}/_checkpoints/{cluster}"
        place = self._checkpoints.get(cluster, beside)
        if place is None:
            return
        try:
            is_under_way = _is_under_way(place)
        except (OSError, ValueError) as error:
            why = f"{place}/{_PLAN} cannot be read ({cause_of(error)})"
            raise _unknown(cluster, why, "give this user the right to read the checkpoint") from None
        if is_under_way:
            why = f"the state of its job is being rebuilt ({place}/{_PLAN})"
            what_to_do = "wait until that is done, or delete the checkpoint if no job will ever do it"
            raise _unknown(cluster, why, what_to_do)

    def _is_known_without(self, cluster: str) -> bool:
        """Whether no group of a cluster lives although `group_health` has no row of it.

        None does if the cluster has had rounds on a day after that on which the table was created: a group that lives
        would have got a row. None does either if the cluster is gone: it has had no round for as long as the table
        keeps rows, so nobody will fill it.
        """
        rounds = self._opened("rounds")
        if rounds is None:
            return False
        one_day, today = timedelta(days=1), self._today()
        created = DeltaTable(f"{self._lake}/{_HEALTH}").metadata().created_time
        if created is not None and _has_rows(rounds.rows_of(day_of_clock(created) + one_day, today), cluster):
            return True
        first = today - timedelta(days=self._keep[_HEALTH])
        recent, older = rounds.rows_of(first, date.max), rounds.rows_of(date.min, first - one_day)
        return not _has_rows(recent, cluster) and _has_rows(older, cluster)


def _unknown(cluster: str | None, why: str, what_to_do: str) -> GroupsUnknownError:
    of = "" if cluster is None else f" of {cluster}"
    message = (
        f"Retention of {', '.join(NEEDS_GROUPS)} waits, because it cannot tell which groups{of} live ({why}): "
        f"{what_to_do}."
    )
    return GroupsUnknownError(message)


def _has_rows(rows: ds.Dataset, cluster: str) -> bool:
    return bool(rows.head(1, columns=["cluster"], filter=pc.field("cluster") == cluster).num_rows)


def _is_under_way(checkpoint: str) -> bool:
    """Whether a checkpoint has the plan of a rebuild that is not done.

    Raises:
        OSError: It cannot be read.
    """
    try:
        with file_system(checkpoint).open_input_stream(_PLAN) as stream:
            text = stream.read()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        if "://" not in checkpoint or on_s3(checkpoint):
            raise
        return False  # (a store that Spark reaches and we do not, so no plan can have been written there)
    try:
        return not msgspec.json.decode(text, type=_Plan).done
    except msgspec.DecodeError:
        return True  # (a broken plan: no job starts before the rebuild is begun again)


class _Plan(msgspec.Struct, frozen=True):
    """What maintenance reads of a plan."""

    done: bool = False
