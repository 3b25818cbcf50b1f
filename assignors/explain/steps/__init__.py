"""The steps of an explanation."""

from __future__ import annotations

from assignors.explain.steps.changes import MOVES, WHYS, Given, GivenBack, HeldBack, Moved, Undone
from assignors.explain.steps.claims import Generations, GivenUp, Kept, NotBelieved, Shares
from assignors.explain.steps.dealing import CutIntoBlocks, DealtInRacks, DealtInTurn
from assignors.explain.steps.order import ORDERS, Ordered
from assignors.explain.steps.step import Result, Step

__all__ = [
    "MOVES",
    "ORDERS",
    "WHYS",
    "CutIntoBlocks",
    "DealtInRacks",
    "DealtInTurn",
    "Generations",
    "Given",
    "GivenBack",
    "GivenUp",
    "HeldBack",
    "Kept",
    "Moved",
    "NotBelieved",
    "Ordered",
    "Result",
    "Shares",
    "Step",
    "Undone",
]
