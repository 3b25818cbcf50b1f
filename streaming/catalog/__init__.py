"""What a lake holds, which clusters it is of, and its tables in the catalogs of other engines."""

from __future__ import annotations

from streaming.catalog.contents import (
    Contents,
    Dialect,
    LakeIncompleteError,
    behind,
    contents,
    faults,
    list_tables,
    print_ddl,
    statements,
)
from streaming.catalog.fleet_log import (
    FleetLog,
    RecordedCluster,
    WatchedCluster,
    forget_record,
    record_fleet,
    recorded_clusters,
    rename_problem,
)

__all__ = [
    "Contents",
    "Dialect",
    "FleetLog",
    "LakeIncompleteError",
    "RecordedCluster",
    "WatchedCluster",
    "behind",
    "contents",
    "faults",
    "forget_record",
    "list_tables",
    "print_ddl",
    "record_fleet",
    "recorded_clusters",
    "rename_problem",
    "statements",
]
