"""Everything on one machine: probe and job as supervised processes, and the tables in the terminal."""

from __future__ import annotations

from streaming.up.processes import Program, Programs
from streaming.up.run import up

__all__ = ["Program", "Programs", "up"]
