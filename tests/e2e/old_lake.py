"""Lakes with their checkpoints, as releases wrote them, stored as text."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.e2e.packed import RELEASES, read_packed

__all__ = ["OLD_LAKE", "files_of", "unpack_lake"]

OLD_LAKE = "old_lake.txt"


def files_of(lake: Path) -> list[list[str]]:
    """Every file of a lake, by its relative path."""
    return [
        [str(path.relative_to(lake)), base64.b64encode(path.read_bytes()).decode()]
        for path in sorted(lake.rglob("*"))
        if path.is_file()
    ]


def unpack_lake(lake: Path, release: str = RELEASES[-1]) -> None:
    """Unpack the lake of a release into a folder; its checkpoint no longer names its cluster and topics.

    Tests restore the recorded topics on a cluster of their own, which the job would otherwise refuse.
    """
    for name, content in read_packed(OLD_LAKE, release):
        path = lake / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))
    for path in lake.glob("_checkpoints/*/offsets/*"):
        if not path.name.isdecimal():
            path.unlink()  # (Spark's checksum of each file)
            continue
        *head, offsets = path.read_text("utf-8").splitlines()
        kept = {name: value for name, value in json.loads(offsets).items() if name not in {"cluster_id", "topics"}}
        path.write_text("\n".join([*head, json.dumps(kept)]), encoding="utf-8")
