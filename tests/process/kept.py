"""Small programs that run under real guards, and the messages about them."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

from streaming.process import GuardedProcess, Program, Programs
from tests.patience import until

__all__ = ["FORKED_MODULE", "PARENT", "REST_S", "WAITS", "Kept", "forked", "program_of", "until"]

WAITS = ("-c", "import time; print('here, 100%', flush=True); time.sleep(600)")
REST_S = 4.0

# A process like the job: one child in a separate process group that holds its parent's output (unlike Spark's JVM), and
# one in the parent's group (like the JVM). Neither ends with its parent by itself.
PARENT = """
import os, subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(sys.argv[1]).write_text(str(child.pid))
time.sleep(600)
"""


FORKED_MODULE = "tests.process.forked_program"


def forked(program: Program) -> Program:
    """The same program as a fork of a server."""
    runs = {"RUNS": json.dumps(program.arguments)}
    return replace(program, arguments=("-m", FORKED_MODULE), environment=runs, is_forked=True)


def program_of(name: str, code: str, *arguments: str, grace_s: float = 5) -> Program:
    return Program(name, ("-c", textwrap.dedent(code), *arguments), grace_s)


@dataclass
class Kept:
    """Running programs, and the messages about them."""

    programs: Programs
    said: list[str]
    logs: Path

    def until_said(self, sentence: str) -> None:
        until(lambda: any(sentence in line for line in self.said))

    def pid(self, program: Program) -> int:
        until(lambda: self._runs(program))
        return self._runs(program)[0].pid

    def _runs(self, program: Program) -> list[GuardedProcess]:
        kept = [one.process for one in self.programs._kept if one.program == program]
        return [process for process in kept if process is not None]
