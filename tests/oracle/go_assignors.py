"""The balancers of clients in Go, asked in batches: kafka-go, sarama of two releases, franz-go.

The program in `go_assignors/` is built once per machine, from pinned modules.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, Any

from assignors import Assignment, Group
from streaming.places import cache_folder
from tests.oracle.java_assignors import Case

GO = shutil.which("go")

_FOLDER = Path(__file__).with_name("go_assignors")
_TIMEOUT_S = 600


def ask_go(library: str, cases: Sequence[Case]) -> list[Assignment | str]:
    """What a library's balancer makes of each case; its error as a text.

    Args:
        library: "kafka-go", "sarama", "sarama:1.27" or "franz-go".
        cases: Strategies and groups; racks are not passed on.
    """
    lines = "".join(f"{json.dumps(_question(library, case.strategy, case.group))}\n" for case in cases)
    process = _running()
    assert process.stdin is not None
    # In a thread, because otherwise both sides might wait for the other to read.
    writer = Thread(target=_write, args=(process.stdin, lines.encode()))
    writer.start()
    answers = [json.loads(process.stdout.readline()) for _ in cases]
    writer.join()
    return [answer["error"] if "error" in answer else answer["assignment"] or {} for answer in answers]


def _write(pipe: IO[bytes], lines: bytes) -> None:
    pipe.write(lines)
    pipe.flush()


@cache
def _running() -> subprocess.Popen[bytes]:
    """The program, which answers line by line and ends with this process."""
    target = cache_folder() / "go" / "assignors"
    command = ["go", "build", "-o", str(target), "."]
    subprocess.run(command, cwd=_FOLDER, check=True, capture_output=True, timeout=_TIMEOUT_S)
    return subprocess.Popen([target], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _question(library: str, strategy: str, group: Group) -> dict[str, Any]:
    return {
        "library": library,
        "strategy": strategy,
        "counts": dict(group.partitions_per_topic),
        "members": [
            {
                "id": member.member_id,
                "instance": member.group_instance_id,
                "topics": list(member.topics),
                "owned": [{"topic": topic, "partitions": list(of)} for topic, of in member.owned],
                "generation": -1 if member.generation is None else member.generation,
                "userData": None if member.user_data is None else member.user_data.hex(),
            }
            for member in group.members
        ],
    }
