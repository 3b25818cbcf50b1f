"""A lake without rows, for tests that are about what is then written to it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from streaming.tables import ALL_TABLES, DeltaLake, Table


def empty_lake(root: Path | str, tables: Iterable[Table] = ALL_TABLES) -> DeltaLake:
    """A lake in a folder or at a URI with its tables, as `DeltaLake.create` leaves it, with those that are there.

    In folders, the same table of two lakes has the same id: a test that puts one in place of the other creates it.
    """
    lake = DeltaLake(str(root))
    to_create = []
    for table in tables:
        path = Path(lake.path(table.name))
        if "://" in lake.root or path.exists():
            to_create.append(table)
        else:
            shutil.copytree(_made() / table.name, path)
    lake.create(to_create)
    return lake


@cache
def _made() -> Path:
    """Made once in a process: creating tables takes some thirty times as long as copying them."""
    folder = Path(tempfile.mkdtemp(prefix="evenkeel-empty-lake-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    DeltaLake(str(folder / "lake")).create()
    return folder / "lake"
