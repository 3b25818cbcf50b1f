"""What a rebuilt state takes from the tables because a compacted log no longer tells it, and what it must end there."""

from __future__ import annotations

from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.dataset as ds

from streaming.groups import Incarnations
from streaming.tables import KnownRows, limited, named_to_arrow, table_named


def incarnations_of(lake: str, cluster: str) -> Incarnations:
    """The incarnations of all groups, as `rebalance_churn` has them.

    Without them a group whose first decisions were compacted away would begin a new one, and its verdict would be taken
    for that of an earlier group of the same name.
    """
    churn = KnownRows(lake, table_named("rebalance_churn"), cluster)
    found = churn.rows(("group_id", "incarnation", "decision")).group_by(["group_id", "incarnation"])
    by_group: dict[str, list[tuple[int, int]]] = {}
    for row in found.aggregate([("decision", "max")]).to_pylist():
        by_group.setdefault(row["group_id"], []).append((row["incarnation"], row["decision_max"]))
    return Incarnations(by_group)


# A decision shows all members of its group, so a member whose newest row is older than the newest decision has left,
# if that decision's rows are complete. (A static member that comes back has a newer row than the decision.)
_GONE = """
    WITH newest AS (
        SELECT group_id, arg_max_null(members, decision) AS members, max(decision) AS decision,
               arg_max_null(record_time, decision) AS record_time, arg_max(event_date, decision) AS event_date
        FROM churn GROUP BY group_id
    ), shown AS (
        SELECT n.group_id, count(DISTINCT m.member_id) AS members FROM newest AS n LEFT JOIN members AS m
        ON m.group_id = n.group_id AND m.decision = n.decision AND NOT m.ended GROUP BY n.group_id
    ), living AS (
        SELECT group_id, member_id, max(decision) AS decision, bool_or(ended) AS ended FROM (
            SELECT *, rank() OVER (PARTITION BY group_id, member_id ORDER BY decision DESC) AS age FROM members
        ) WHERE age = 1 GROUP BY group_id, member_id
    )
    SELECT l.group_id, l.member_id, l.decision AS last, n.decision, n.record_time, n.event_date
    FROM living AS l JOIN newest AS n USING (group_id) JOIN shown AS s USING (group_id)
    WHERE NOT l.ended AND l.decision < n.decision AND s.members = n.members
"""


# Columns that name a member's newest row, and what `_GONE` calls them.
_OF_LAST = {"group_id": "group_id", "member_id": "member_id", "decision": "last"}


def gone_members(lake: str, cluster: str) -> pa.Table:
    """Closing rows of `members` for those of whom compaction has removed the record that shows that they have left."""
    table = table_named("members")
    members = KnownRows(lake, table, cluster)
    churn = KnownRows(lake, table_named("rebalance_churn"), cluster)
    with limited() as connection:
        connection.register("members", members.rows(("group_id", "member_id", "decision", "ended")))
        connection.register("churn", churn.rows(("group_id", "decision", "members", "record_time", "event_date")))
        gone = connection.sql(_GONE).to_arrow_table().to_pylist()
    if not gone:
        return named_to_arrow(table, [])
    names = [column.name for column in table.columns]
    of_gone = reduce(and_, (ds.field(n).isin(list({one[k] for one in gone})) for n, k in _OF_LAST.items()))
    found = members.rows(names, of_gone)
    places = zip(*(found[name].to_pylist() for name in _OF_LAST), strict=True)
    place_of = {place: at for at, place in enumerate(places)}
    last = found.take([place_of[tuple(one[key] for key in _OF_LAST.values())] for one in gone])
    ends = {name: [one[name] for one in gone] for name in ("decision", "record_time", "event_date")}
    for name, value in (("ended", True), ("partition_count", 0), ("partitions", []), ("repeat", None)):
        ends[name] = [value] * len(gone)
    for name, values in ends.items():
        last = last.set_column(names.index(name), name, pa.array(values, table.arrow_schema.field(name).type))
    return last
