"""Column types, in Spark SQL's words and in Arrow's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

__all__ = [
    "ASSIGNED",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "DRIFTED",
    "FINDINGS",
    "INT",
    "LABELS",
    "LONG",
    "REPLACED",
    "STRING",
    "STRINGS",
    "TIMESTAMP",
    "Type",
]


@dataclass(frozen=True, slots=True)
class Type:
    """A column type in Spark SQL's words and in Arrow's."""

    sql: str
    arrow: pa.DataType


STRING: Final = Type("STRING", pa.string())
INT: Final = Type("INT", pa.int32())
LONG: Final = Type("BIGINT", pa.int64())
DOUBLE: Final = Type("DOUBLE", pa.float64())
BOOLEAN: Final = Type("BOOLEAN", pa.bool_())
BINARY: Final = Type("BINARY", pa.binary())
TIMESTAMP: Final = Type("TIMESTAMP", pa.timestamp("us", "UTC"))
DATE: Final = Type("DATE", pa.date32())
STRINGS: Final = Type("ARRAY<STRING>", pa.list_(pa.string()))
DRIFTED: Final = Type(
    "ARRAY<STRUCT<topic: STRING, partition: INT, kind: STRING, expected: STRING, actual: ARRAY<STRING>, broker: STRING>>",
    pa.list_(
        pa.struct(
            [
                ("topic", pa.string()),
                ("partition", pa.int32()),
                ("kind", pa.string()),
                ("expected", pa.string()),
                ("actual", pa.list_(pa.string())),
                ("broker", pa.string()),
            ]
        )
    ),
)
FINDINGS: Final = Type(
    "ARRAY<STRUCT<finding: STRING, since: TIMESTAMP, detail: STRING>>",
    pa.list_(pa.struct([("finding", pa.string()), ("since", pa.timestamp("us", "UTC")), ("detail", pa.string())])),
)
REPLACED: Final = Type(
    "ARRAY<STRUCT<group_instance_id: STRING, old_member_id: STRING, new_member_id: STRING>>",
    pa.list_(
        pa.struct([("group_instance_id", pa.string()), ("old_member_id", pa.string()), ("new_member_id", pa.string())])
    ),
)
ASSIGNED: Final = Type(
    "ARRAY<STRUCT<topic: STRING, partitions: ARRAY<INT>, broker: STRING>>",
    pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32())), ("broker", pa.string())])),
)
LABELS: Final = Type(
    "ARRAY<STRUCT<name: STRING, value: STRING>>",
    pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())])),
)
