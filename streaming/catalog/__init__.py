"""What a lake holds, and its tables in the catalogs of other engines."""

from __future__ import annotations

from streaming.catalog.contents import Contents, LakeIncompleteError, behind, contents, faults
from streaming.catalog.run import list_tables, print_ddl
from streaming.catalog.statements import Dialect, statements

__all__ = [
    "Contents",
    "Dialect",
    "LakeIncompleteError",
    "behind",
    "contents",
    "faults",
    "list_tables",
    "print_ddl",
    "statements",
]
