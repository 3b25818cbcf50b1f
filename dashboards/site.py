"""The page: an address in, bytes out. Each board is rendered once per round and address, however many look at it."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from dashboards import format as words
from dashboards.boards import BOARDS
from dashboards.boards.alerts import marks
from dashboards.boards.itself import MOST_ROUNDS, alerter, silent, status
from dashboards.lake import PageLake
from dashboards.page.address import Address, RefusedError, WrongAddressError
from dashboards.page.archive import Archive
from dashboards.page.board import Board, View
from dashboards.page.markup import asset, render
from streaming.config import Owner
from streaming.exceptions import EvenkeelError

_log = logging.getLogger(__name__)

PART: Final = "part"
"""Parameter that asks for a board without the frame around it, as a refresh does."""

# Rendered boards that are kept; what nobody asked for the longest is forgotten first. The largest take half a megabyte.
_MOST_KEPT = 100

# Ages in sentences ("for at least 3 min") grow without new rounds; they are minutes, so this is exact enough.
_GOOD_S = 30

# Boards of these parameters are of the same kind, so everybody has them.
_EVERYBODYS = frozenset({"cluster", PART})


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """What is sent.

    Attributes:
        status: HTTP status.
        body: HTML.
        tag: ETag of the body, with quotes.
    """

    status: int
    body: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class _Key:
    path: tuple[str, ...]
    given: tuple[tuple[str, str], ...]
    whole: bool


class Site:
    """All boards over one lake. Any thread may ask."""

    def __init__(
        self,
        lake: PageLake,
        root: str,
        owners: Sequence[Owner] = (),
        *,
        refresh_ms: int = 3_000,
        rules: Path | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare.

        Args:
            lake: What is held in memory.
            root: Folder or URI of the lake, for what is not.
            owners: Teams and their groups.
            refresh_ms: From one refresh of a page that is looked at to the next.
            rules: The alert rules; None finds them as the alerter does.
            now: The time.
        """
        self._lake = lake
        self._archive = Archive(root)
        self._owners = owners
        self._rules = rules
        self._refresh_ms = refresh_ms
        self._now = now
        self._made: OrderedDict[_Key, tuple[Any, Future[RenderedPage]]] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, path: tuple[str, ...], parameters: Iterable[tuple[str, str]]) -> RenderedPage | None:
        """The board at an address, from its decoded segments and its query; None if no board is there."""
        board = next((board for board in BOARDS if board.fits(path)), None)
        if board is None:
            return None
        given = list(parameters)
        try:
            address = Address.of(path, given, board.parameters | _EVERYBODYS, board.span)
        except WrongAddressError as error:
            return self._refused(Address(path, {}), board, 400, str(error))
        whole = address.text(PART) != "main"
        address = replace(address, given={name: value for name, value in address.given.items() if name != PART})
        key = _Key(path, tuple(address.given.items()), whole)
        now = self._now()
        state = (self._lake.version, self._lake.problem, silent(self._lake), int(now.timestamp()) // _GOOD_S)
        with self._lock:
            known = self._made.get(key)
            mine = known is None or known[0] != state
            if mine:
                known = self._made[key] = (state, Future())
            self._made.move_to_end(key)
            if len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
        assert known is not None  # noqa: S101 - for mypy: it was set where it was None
        if mine:
            self._make(key, known[1], board, View(self._lake, self._archive, now, address, self._owners, self._rules))
        return known[1].result()

    def missing(self, path: tuple[str, ...], sentence: str) -> RenderedPage:
        """The page that says that nothing is at an address."""
        return self._refused(Address(path, {}), None, 404, sentence)

    def verdicts(
        self, group: str, cluster: str | None, generation: int | None, decision: int | None
    ) -> list[dict[str, Any]] | None:
        """The newest verdict of each cluster on a group, or on one of its decisions; None while they are being read.

        Raises:
            EvenkeelError: The lake cannot be read.
        """
        return self._archive.ask("explained", cluster=cluster, group_id=group, generation=generation, decision=decision)

    def alerters_live(self, clusters: Sequence[str]) -> Mapping[str, bool | None] | None:
        """By cluster whether its alerter judges rounds, as the board "Evenkeel" says it; None while it is being read.

        A value of None: it is not known, because there are no rounds, or no alerter has written anything yet.

        Raises:
            EvenkeelError: The lake cannot be read.
        """
        signs = self._archive.signs(clusters)
        if signs is None:
            return None
        since = self._now().replace(second=0, microsecond=0) - timedelta(hours=1)
        found: dict[str, bool | None] = {}
        for cluster in clusters:
            rounds = self._lake.ask("rounds_past", {"cluster": cluster, "since": since, "most": MOST_ROUNDS})
            style, _ = alerter(signs.judged.get(cluster), rounds)
            found[cluster] = {"": True, "bad": False}.get(style)
        return found

    def stop(self) -> None:
        """Take no more questions about older rows."""
        self._archive.stop()

    def _make(self, key: _Key, into: Future[RenderedPage], board: Board, view: View) -> None:
        """Render for everybody who waits; a failure is not kept."""
        try:
            into.set_result(self._board(key, board, view))
        except Exception as error:  # noqa: BLE001 - those who wait get it
            with self._lock:
                self._made.pop(key, None)
            if isinstance(error, RefusedError | EvenkeelError):
                status = error.status if isinstance(error, RefusedError) else 503
                into.set_result(self._refused(view.address, board, status, str(error), whole=key.whole))
            else:
                into.set_exception(error)

    def _board(self, key: _Key, board: Board, view: View) -> RenderedPage:
        shown = status(view)
        values = board.fill(view) if shown["there"] else {}
        template = board.template if shown["there"] else "empty.html.j2"
        content = render(template, status=shown, address=view.address, view=view, **values)
        if shown["there"] and "range" in board.parameters:
            content += render("marks.html.j2", marks=marks(view), view=view)
        names = {
            own.strip("{}"): words.cut(given, 120) for own, given in zip(board.path, view.address.path, strict=True)
        }
        return self._framed(view.address, board, content, board.title.format(**names), whole=key.whole, status=200)

    def _refused(
        self, address: Address, board: Board | None, code: int, sentence: str, *, whole: bool = True
    ) -> RenderedPage:
        content = render("refused.html.j2", sentence=sentence, address=address)
        return self._framed(address, board, content, "Evenkeel", whole=whole, status=code)

    def _framed(
        self, address: Address, board: Board | None, content: str, title: str, *, whole: bool, status: int
    ) -> RenderedPage:
        text = content
        if whole:
            text = render(
                "frame.html.j2",
                content=content,
                title=title,
                address=address,
                asset=asset,
                boards=[
                    {
                        "word": one.word,
                        "href": address.link(*one.path, cluster=address.text("cluster")),
                        "here": one is board,
                    }
                    for one in BOARDS
                    if one.word
                ],
                refresh_ms=self._refresh_ms,
            )
        body = text.encode("utf-8", "replace")
        return RenderedPage(status, body, f'"{hashlib.sha256(body).hexdigest()[:24]}"')
