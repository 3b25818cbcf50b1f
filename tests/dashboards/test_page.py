"""The page in a real browser, over a lake with known rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, WebSocketRoute, expect

from tests.dashboards.made_lake import CLUSTER, HOSTILE, MadeGroup, MadeLake, stories
from tests.dashboards.served_page import served

pytestmark = [pytest.mark.timeout(400), pytest.mark.turn(2)]

# Long enough for a machine that runs other tests at the same time.
expect.set_options(timeout=90_000)

Look = Callable[..., Page]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> MadeLake:
    groups = [*stories(), *(MadeGroup(name, topics={name[:200]: 2}) for name in HOSTILE)]
    return MadeLake(tmp_path_factory.mktemp("page") / "lake", groups, rounds=130)


@pytest.fixture(scope="module")
def address(lake: MadeLake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(Path(lake.lake.root), tmp_path_factory.mktemp("log") / "page.log") as address:
        yield address


def _texts(page: Page | Locator, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def _deep(address: str, group: str) -> str:
    return f"{address}?cluster={CLUSTER}&group={quote(group, safe='')}"


def test_the_overview_shows_the_worst_groups_first_each_with_its_reason(
    lake: MadeLake, address: str, look: Look
) -> None:
    page = look(address)
    assert _texts(page, ".groups td.group .name")[:5] == [
        "clicks-pile-up",
        "payments-audit",
        "billing-stuck",
        "search-indexer",
        "signups-growing",
    ]
    since = (lake.end - timedelta(seconds=45 * 10 + 1.5)).astimezone(ZoneInfo("Europe/Berlin"))
    why = _texts(page, ".groups td.why .main")
    assert re.fullmatch(rf"8 of 12 partitions misplaced since (\d+ \w+ )?{since:%H:%M}", why[0])
    assert why[1].startswith("2 of 30 partitions misplaced since ")
    assert re.fullmatch(r"lag [\d,]+ and nothing committed for at least \d+ min", why[2])
    assert why[4].startswith("new partitions that the leader has not seen: signups (8 to 12 partitions)")
    critical = page.locator(".count.h3")
    expect(critical).to_have_text(re.compile(r"3\s*critical"))
    # Besides the colour there is a sign, with its word for screen readers.
    assert page.locator(".groups tr.h3 .sign").first.get_attribute("aria-label") == "critical"
    expect(page.locator(".fresh")).to_contain_text("updated")


def test_an_address_leads_to_a_group_and_the_matrix_shows_where_it_drifted(address: str, look: Look) -> None:
    page = look(_deep(address, "payments-audit"), ready=".matrix")
    expect(page.locator(".title .name")).to_have_text("payments-audit")
    drifted = page.locator(".matrix tr.drift")
    expect(drifted).to_have_count(2)
    row = drifted.first
    assert row.locator("td").first.inner_text() == "4"
    marks = [cell.get_attribute("class") for cell in row.locator("td.cell").all()]
    assert len(marks) == 6
    inner = [cell.locator(".mark").get_attribute("class") if cell.locator(".mark").count() else "" for cell in
             row.locator("td.cell").all()]  # fmt: skip
    # range assigns payments 3, 4 and 5 to the second of six members; the fifth has 4.
    assert inner == ["", "mark expected", "", "", "mark wrong", ""]
    expect(row.locator("td.say")).to_have_text("misplaced, is with audit-5, should be with audit-2")
    assert page.locator(".matrix .mark.ok").count() >= 28
    assert page.locator(".lag-chart path.total").get_attribute("d")
    expect(page.locator(".rebalances tbody tr").first).to_be_visible()
    expect(page.locator(".mark.unjudged")).to_have_count(0)


def test_a_group_shows_what_matched_and_what_other_strategies_would_have_done(address: str, look: Look) -> None:
    page = look(_deep(address, "fraud-scoring"), ready=".what-if")
    expect(page.locator(".facts")).to_be_visible()
    facts = _texts(page, ".facts .word")
    assert facts[facts.index("verdict") + 1] == "recomputed as"
    assert _texts(page, ".facts .value")[facts.index("recomputed as")] == "java:3.5"
    cells = [_texts(row, "td") for row in page.locator(".what-if tbody tr").all()]
    assert cells == [
        ["range ● runs", "3", "0", "java:3.5", ""],
        ["roundrobin", "6", "0", "java:2.4", ""],
        ["sticky", "2", "0", "java:3.7.1", ""],
        ["cooperative-sticky", "2", "0", "java:3.7.1", ""],
        ["at best, by any assignment", "2", "0", "", ""],
    ]
    expect(page.locator(".what-if-sentence")).to_have_text(
        "sticky or cooperative-sticky would have moved 2 partitions instead of 3."
    )


def test_a_group_that_cannot_be_recomputed_shows_owners_and_claims_nothing(address: str, look: Look) -> None:
    page = look(_deep(address, "orders-pinned"), ready=".matrix")
    expect(page.get_by_text("Who should own it cannot be recomputed: strategy 'pinned' is not known.")).to_be_visible()
    assert page.locator("td .mark.unjudged").count() == 6
    assert page.locator("td .mark.ok, td .mark.wrong").count() == 0
    expect(page.locator(".what-if tr.runs")).to_contain_text("strategy 'pinned' is not known")
    expect(page.locator(".what-if-sentence")).to_have_count(0)


def test_a_click_leads_to_a_group_without_loading_the_page_again_and_back_leads_back(address: str, look: Look) -> None:
    page = look(address)
    page.evaluate("window.loadedOnce = true")
    page.get_by_text("billing-stuck").first.click()
    expect(page.locator(".title .name")).to_have_text("billing-stuck")
    expect(page).to_have_url(re.compile("group=billing-stuck"))
    page.locator(".crumb").click()
    page.wait_for_selector(".groups")
    expect(page).not_to_have_url(re.compile("group="))
    page.go_back()
    expect(page.locator(".title .name")).to_have_text("billing-stuck")
    page.go_back()
    page.wait_for_selector(".groups")
    assert page.evaluate("window.loadedOnce") is True


def test_a_link_that_was_not_heard_is_asked_for_again(address: str, look: Look) -> None:
    asked: list[bool] = []
    """For each message that requests the group: whether it was passed on."""

    def lose_the_first(page: Page) -> None:
        def through(route: WebSocketRoute) -> None:
            server = route.connect_to_server()

            def pass_on(message: str | bytes) -> None:
                told = message if isinstance(message, bytes) else message.encode()
                if b"billing-stuck" in told:
                    asked.append(bool(asked))
                    if not asked[-1]:
                        return
                server.send(message)

            route.on_message(pass_on)

        page.route_web_socket(re.compile("/_stcore/stream"), through)

    page = look(address, before=lose_the_first)
    page.get_by_text("billing-stuck").first.click()
    expect(page.locator(".title .name")).to_have_text("billing-stuck")
    assert asked[:2] == [False, True]


def test_counts_choose_which_groups_are_shown_and_a_name_finds_one(address: str, look: Look) -> None:
    page = look(address)
    page.locator(".count.h2").click()
    expect(page.locator(".groups td.group .name")).to_have_text(["search-indexer"])
    page.locator(".count.h2").click()
    expect(page.locator(".groups tbody tr")).not_to_have_count(1)
    page.get_by_placeholder("Find a group").fill("TILLS")
    page.keyboard.press("Enter")
    expect(page.locator(".groups td.group .name")).to_have_text(["tills-static"])


def test_no_refresh_draws_again_what_was_left_by_a_link(address: str, look: Look) -> None:
    page = look(address)
    every = page.locator(".groups tbody tr").count()
    # Record each frame of any board: the first board may be replaced while the page loads.
    page.evaluate(
        """() => {
            window.drawn = [];
            const watch = () => {
                const roots = [...document.querySelectorAll("*")].map((node) => node.shadowRoot);
                const board = roots.find((root) => root?.querySelector(".groups"));
                const rows = board?.querySelectorAll(".groups tbody tr").length;
                if (rows && rows !== window.drawn.at(-1)) window.drawn.push(rows);
                requestAnimationFrame(watch);
            };
            watch();
        }"""
    )
    followed = [every]
    for _ in range(8):
        page.locator(".count.h2").click()
        followed += [1, every]
        expect(page.locator(".groups tbody tr")).to_have_count(1)
        page.locator(".count.h2").click()
        expect(page.locator(".groups tbody tr")).to_have_count(every)
    # (The frame with the last rows may come after them; the frame after it is later than both.)
    next_frames = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(next_frames)
    assert page.evaluate("window.drawn") == followed


def test_hostile_names_are_text_and_nothing_else(address: str, look: Look) -> None:
    page = look(address)
    shown = _texts(page, ".groups td.group .name")
    assert '<img src=x onerror="alert(1)"><b>bold</b>'[:17] in " ".join(shown)
    assert page.locator(".board img, .board script, .board b b, .board iframe").count() == 0
    whole = [name.get_attribute("title") or "" for name in page.locator(".groups td.group .name").all()]
    assert HOSTILE[0] in whole
    assert HOSTILE[1] in whole
    assert "two\\nlines\\r\\nand\\ttabs" in whole
    assert "\\u202eright to left\\u202c \\x00\\x1b[31m" in whole
    assert HOSTILE[4] in whole
    assert HOSTILE[5] in whole
    assert max(map(len, shown)) <= 44
    assert not any("\u202e" in text or "\n" in text for text in shown)
    for name, title in ((HOSTILE[0], HOSTILE[0]), (HOSTILE[3], "\\u202eright to left\\u202c \\x00\\x1b[31m")):
        deep = look(_deep(address, name), ready=".title .name")
        assert deep.locator(".title .name").get_attribute("title") == title
        assert deep.locator(".board img, .board script").count() == 0
    page.locator(".groups td.group a", has=page.locator('[title^="javascript:"]')).click()
    expect(page.locator("details summary")).to_contain_text("32,021 characters")


def test_a_new_round_shows_without_a_jump_or_a_new_node(lake: MadeLake, address: str, look: Look) -> None:
    lake.next_round()  # the tests before this one take long enough for silence, whose end may move the page
    page = look(address)
    expect(page.locator(".banner")).to_have_count(0)
    expect(page.get_by_placeholder("Find a group")).to_be_visible()  # drawn last above the groups
    page.set_viewport_size({"width": 1200, "height": 500})
    main = page.locator('[data-testid="stMain"]')
    main.evaluate("node => node.scrollTo(0, 260)")
    row = page.locator(".groups tr", has_text="fraud-scoring")
    row.evaluate("node => { node.kept = true }")
    before = row.bounding_box()
    assert main.evaluate("node => node.scrollTop") == 260
    heard = page.locator(".fresh .quiet").inner_text()
    lake.groups = [replace(g, lag=lambda at, partition: 1_000_000) if g.name == "mailer" else g for g in lake.groups]  # noqa: ARG005
    lake.next_round()
    expect(page.locator(".groups tr", has_text="mailer").locator("td.num").first).to_have_text("12,000,000")
    expect(page.locator(".fresh .quiet")).not_to_have_text(heard)
    # (Its place in the window: if something above it grew, the browser would scroll along.)
    assert row.bounding_box() == before
    assert row.evaluate("node => node.kept") is True


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/New_York"])
def test_times_are_in_the_viewers_zone(lake: MadeLake, address: str, look: Look, zone: str) -> None:
    page = look(address, zone=zone)
    local = lake.end.astimezone(ZoneInfo(zone))
    expect(page.locator(".fresh .quiet")).to_contain_text(f"round of {local:%H:%M:%S}")
    assert page.locator(".fresh .quiet").get_attribute("title") == (
        f"{local:%Y-%m-%d %H:%M:%S %Z} · {lake.end:%H:%M:%S} UTC"
    )


def test_the_page_is_light_or_dark_as_the_viewer_has_it_and_without_a_developers_tools(
    address: str, look: Look
) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        page = look(address, scheme=scheme)
        grounds[scheme] = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
        text = page.locator(".groups td.num").first.evaluate("node => getComputedStyle(node).color")
        assert text != grounds[scheme]
        for part in ("stMainMenu", "stAppDeployButton", "stToolbar", "stStatusWidget"):
            expect(page.get_by_test_id(part)).not_to_be_visible()
    assert grounds == {"light": "rgb(252, 252, 251)", "dark": "rgb(20, 24, 27)"}


def test_an_empty_lake_a_first_round_and_a_broken_table_are_a_sentence_each(tmp_path: Path, look: Look) -> None:
    root = tmp_path / "lake"
    with served(root, tmp_path / "page.log") as address:
        page = look(address, ready=".empty")
        expect(page.locator(".empty")).to_contain_text("The first round appears here by itself")
        MadeLake(root, [MadeGroup("first")])
        expect(page.locator(".groups td.group .name")).to_have_text("first")
        expect(page.locator(".empty")).to_have_count(0)
        newest = max((root / "group_health" / "_delta_log").glob("*.json"))
        broken = newest.with_name(f"{int(newest.stem) + 1:020d}.json")
        broken.write_text("no JSON at all\n")
        expect(page.locator(".banner")).to_contain_text("The lake cannot be read.")
        expect(page.locator(".banner")).to_contain_text("group_health cannot be read")
        expect(page.locator(".groups td.group .name")).to_have_text("first")
        assert "Traceback" not in page.content()
        broken.unlink()
        expect(page.locator(".banner")).to_have_count(0)
        page.close()


def test_a_group_that_is_not_there_and_silence_are_told(tmp_path: Path, look: Look) -> None:
    MadeLake(tmp_path / "lake", [MadeGroup("g")], end=datetime.now(UTC) - timedelta(minutes=3))
    with served(tmp_path / "lake", tmp_path / "page.log") as address:
        page = look(_deep(address, "nobody"), ready=".reasons")
        expect(page.locator(".reasons")).to_contain_text("No active group has this name in demo")
        expect(page.locator(".banner")).to_contain_text(re.compile(r"No update from demo for \d+ min"))
        expect(page.locator(".fresh")).to_contain_text("no update for")
        page.close()
