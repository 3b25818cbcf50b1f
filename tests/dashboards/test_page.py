"""The page in a real browser, over a lake with known rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from dashboards.boards import BOARDS
from streaming.places import cache_folder
from tests.dashboards.conftest import PATIENCE_MS
from tests.dashboards.made_events import add_load
from tests.dashboards.made_lake import HOSTILE, MadeGroup, MadeLake, stories
from tests.serve.client import running
from tests.started import get

pytestmark = [pytest.mark.timeout(400), pytest.mark.xdist_group("page"), pytest.mark.turn(2)]

# Long enough for a machine that runs other tests at the same time.
expect.set_options(timeout=PATIENCE_MS)

OpenPage = Callable[..., Page]

AXE = cache_folder() / "scripts" / "axe.min.js"

# With a name and a reason that have no place to break.
WIDE = MadeGroup("wide", members=tuple(f"consumer-of-wide-{n}" for n in range(16)), topics={"wide-" + "x" * 200: 304},
                 verdict="unverified", reason="strategy_" + "y" * 300)  # fmt: skip

PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> MadeLake:
    groups = [*stories(), *(MadeGroup(name, topics={name[:200]: 2}) for name in HOSTILE), WIDE]
    made = MadeLake(tmp_path_factory.mktemp("page") / "lake", groups, rounds=130)
    add_load(made)
    return made


@pytest.fixture(scope="module")
def address(lake: MadeLake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("log") / "serve.log"
    with running(Path(lake.lake.root), log) as (address, _):
        yield address
        assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def boards(address: str) -> list[str]:
    """An address of every board."""
    decision = re.search(r"/decisions/(\d+)", get(f"{address}/groups/payments-audit")[1])
    known = {"{group}": "payments-audit", "{decision}": decision[1], "{topic}": "payments", "{rule}": "drift",
             "{client}": "audit-1", "{cluster}": "demo"}  # fmt: skip
    return [f"{address}/{'/'.join(known.get(part, part) for part in board.path)}" for board in BOARDS]


def _texts(page: Page | Locator, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def _after_a_refresh(page: Page) -> None:
    """Wait for the answer to a question that the page asks from now on, and until it is shown."""
    with page.expect_response(lambda answer: "part=main" in answer.url):
        pass
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_the_overview_shows_the_worst_groups_first_each_with_its_reason(
    lake: MadeLake, address: str, open_page: OpenPage
) -> None:
    page = open_page(address)
    assert _texts(page, ".groups td.c-group a .name")[:5] == [
        "clicks-pile-up",
        "payments-audit",
        "billing-stuck",
        "search-indexer",
        "signups-growing",
    ]
    since = (lake.first_end - timedelta(seconds=45 * 10 + 1.5)).astimezone(ZoneInfo("Europe/Berlin"))
    why = _texts(page, ".groups td.why .main")
    assert re.fullmatch(rf"8 of 12 partitions misplaced since (\d+ \w+ )?{since:%H:%M}", why[0])
    assert why[1].startswith("2 of 30 partitions misplaced since ")
    assert re.fullmatch(r"lag [\d,]+ and nothing committed for at least \d+ min", why[2])
    assert why[4].startswith("new partitions that the leader has not seen: signups (8 to 12 partitions)")
    expect(page.locator(".count.h3")).to_have_text(re.compile(r"3\s*critical"))
    # Besides the colour there is a sign, with its word for screen readers.
    assert page.locator(".groups tr.h3 .sign").first.get_attribute("aria-label") == "critical"
    # The newest round of the lake may be older than the limit of silence by now.
    lake.next_round()
    expect(page.locator(".fresh")).to_contain_text("updated")


@pytest.mark.nightly
def test_a_group_shows_where_it_drifted_its_charts_and_other_strategies(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/groups/payments-audit", ready=".uplot canvas")
    expect(page.locator("h1 .name")).to_have_text("payments-audit")
    drifted = page.locator(".matrix tr.drift")
    expect(drifted).to_have_count(2)
    cells = drifted.first.locator("td.cell").all()
    # range assigns payments 3, 4 and 5 to the second of six members; the fifth has 4.
    marks = [cell.locator("span").get_attribute("class") if cell.locator("span").count() else "" for cell in cells]
    assert marks == ["", "mark-expected", "", "", "mark-wrong", ""]
    expect(drifted.first.locator("td.say")).to_have_text("misplaced, is with audit-5, should be with audit-2")
    assert page.locator(".matrix td .mark-ok").count() >= 28
    expect(page.locator(".mark-unjudged")).to_have_count(0)
    assert page.locator(".plot canvas").count() == 2
    drawn = "node => node.getContext('2d').getImageData(0, 0, node.width, node.height).data.some((byte) => byte > 0)"
    assert all(canvas.evaluate(drawn) for canvas in page.locator(".plot canvas").all())

    page.goto(f"{address}/groups/fraud-scoring")
    facts = dict(zip(_texts(page, ".facts dt"), _texts(page, ".facts dd"), strict=True))
    assert facts["recomputed as"] == "java:3.5"
    assert [_texts(row, "td") for row in page.locator(".strategies tbody tr").all()] == [
        ["range ● runs", "3", "0", "\u2013", "java:3.5", ""],
        ["roundrobin", "6", "0", "\u2013", "java:2.4", ""],
        ["sticky", "2", "0", "\u2013", "java:3.7.1", ""],
        ["cooperative-sticky", "2", "0", "\u2013", "java:3.7.1", ""],
        ["at best, by any assignment", "2", "0", "", "", ""],
    ]


@pytest.mark.nightly
def test_a_chart_can_be_walked_by_keys_shows_marks_and_has_a_table_beside_it(address: str, open_page: OpenPage) -> None:
    def held_back(_route: Route) -> None:
        """A refresh that is not answered before the test ends."""

    page = open_page(f"{address}/groups/payments-audit", ready=".uplot canvas")
    chart, spoken = page.locator("#plot-moves"), page.locator("[aria-live=polite]")
    table = page.locator("#plot-moves-table")
    expect(table.locator("tbody")).to_be_hidden()
    table.locator("summary").click()
    assert table.locator("tbody tr").count() >= 1
    chart.focus()
    chart.press("End")
    expect(chart.locator(".tip")).to_be_visible()
    said = spoken.inner_text()
    newest = page.locator(".decisions tbody tr").first.locator("td").nth(4).inner_text()
    assert f": {newest} moves" in said
    chart.press("Home")
    expect(spoken).not_to_have_text(said)
    # Every kind of chart draws the page's list of marks.
    page.route("**/*part=main*", held_back)
    page.evaluate("""() => {
        const at = JSON.parse(document.getElementById("plot-moves").dataset.plot).series[0][0];
        const list = document.createElement("ul");
        list.id = "marks";
        list.innerHTML = `<li data-at="${at}"><span class="says">deploy of v2</span></li>`;
        document.getElementById("content").append(list);
        document.dispatchEvent(new Event("htmx:after:swap"));
    }""")
    chart.press("End")
    chart.press("Home")
    expect(spoken).to_contain_text("deploy of v2")
    chart.evaluate("node => node.blur()")
    expect(chart.locator(".tip")).to_be_hidden()


def test_a_group_that_cannot_be_recomputed_shows_owners_and_claims_nothing(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/groups/orders-pinned", ready=".matrix")
    expect(page.get_by_text("Who should own it cannot be recomputed: strategy 'pinned' is not known.")).to_be_visible()
    assert page.locator("td .mark-unjudged").count() == 6
    assert page.locator("td .mark-ok, td .mark-wrong").count() == 0
    expect(page.locator(".strategies tr.runs")).to_contain_text("strategy 'pinned' is not known")
    expect(page.locator(".sentence")).to_have_count(0)


@pytest.mark.nightly
def test_links_lead_to_a_group_and_a_decision_of_the_past_and_back(address: str, open_page: OpenPage) -> None:
    page = open_page(address)
    page.get_by_text("payments-audit").first.click()
    expect(page.locator("h1 .name")).to_have_text("payments-audit")
    expect(page.locator(".matrix tr.drift")).to_have_count(2)
    page.locator(".decisions tbody a").last.click()
    expect(page).to_have_url(re.compile(r"/groups/payments-audit/decisions/\d+"))
    expect(page.locator(".matrix td .mark-ok")).to_have_count(30)
    expect(page.locator(".matrix tr.drift")).to_have_count(0)
    page.go_back()
    page.go_back()
    expect(page.locator(".groups")).to_be_visible()
    page.locator(".count.h2").click()
    expect(page.locator(".groups td.c-group a .name")).to_have_text(["search-indexer"])
    page.locator(".count.h2").click()
    expect(page.locator(".groups tbody tr")).not_to_have_count(1)


@pytest.mark.nightly
def test_one_finds_as_one_types_and_walks_by_keys(address: str, open_page: OpenPage) -> None:
    page = open_page(address)
    page.evaluate("window.loadedOnce = true")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    # In the client ids of a group, whatever their case.
    page.keyboard.type("INDEXER-3")
    expect(page.locator(".groups td.c-group a .name")).to_have_text(["search-indexer"])
    expect(page).to_have_url(re.compile(r"\?q=INDEXER-3$"))
    _after_a_refresh(page)
    expect(page.locator("#q")).to_have_value("INDEXER-3")
    expect(page.locator("#q")).to_be_focused()
    page.locator("#q").fill("")
    expect(page.locator(".groups td.c-group a .name").first).to_have_text("clicks-pile-up")
    assert page.evaluate("window.loadedOnce") is True
    page.keyboard.press("Escape")
    links = page.locator("main tbody tr a.row")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(links.first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1 .name")).to_have_text("clicks-pile-up")


def test_hostile_names_are_text_and_nothing_else(address: str, open_page: OpenPage) -> None:
    page = open_page(address)
    names = page.locator(".groups td.c-group a .name")
    shown, titles = names.all_inner_texts(), [name.get_attribute("title") or "" for name in names.all()]
    for name in (HOSTILE[0], HOSTILE[1], "two\\nlines\\r\\nand\\ttabs", HOSTILE[4]):
        assert name in titles
    assert "\\u202eright to left\\u202c \\x00\\x1b[31m" in titles
    assert max(map(len, shown)) <= 36
    assert max(map(len, titles)) <= 1_000
    assert not any("\u202e" in text or "\n" in text for text in shown)
    made = page.locator("main img, main script, main b b, main iframe")
    expect(made).to_have_count(0)
    for name, title in ((HOSTILE[0], HOSTILE[0]), (HOSTILE[3], "\\u202eright to left\\u202c \\x00\\x1b[31m")):
        page.goto(f"{address}/groups/{quote(name, safe='')}")
        assert page.locator("h1 .name").get_attribute("title") == title
        expect(made).to_have_count(0)
    page.goto(address)
    page.locator(".groups td.c-group a", has=page.locator('[title^="javascript:"]')).click()
    expect(page.locator("details summary").first).to_contain_text("32,021 characters")


def test_a_new_round_shows_without_a_jump_and_leaves_focus_selection_and_nodes(
    lake: MadeLake, address: str, open_page: OpenPage
) -> None:
    lake.next_round()  # the tests before this one take long enough for silence, whose end may move the page
    page = open_page(address, viewport={"width": 1200, "height": 500})
    expect(page.locator("main .banner")).to_have_count(0)
    page.evaluate("scrollTo(0, 260)")
    row = page.locator(".groups tr", has_text="fraud-scoring")
    row.evaluate("node => { node.kept = true }")
    link = row.locator("a.row")
    link.evaluate("node => node.focus({ preventScroll: true })")
    row.locator(".why .main").evaluate("node => getSelection().selectAllChildren(node)")
    selected = page.evaluate("getSelection().toString()")
    assert selected
    before = row.bounding_box()
    heard = page.locator(".fresh .quiet").inner_text()
    lake.groups = [replace(g, lag=lambda at, partition: 100) if g.name == "mailer" else g for g in lake.groups]  # noqa: ARG005
    lake.next_round()
    expect(page.locator(".groups tr", has_text="mailer").locator("td.num").first).to_have_text("1,200")
    expect(page.locator(".fresh .quiet")).not_to_have_text(heard)
    # Its place in the window: if something above it grew, the browser would scroll along.
    assert row.bounding_box() == before
    assert page.evaluate("scrollY") == 260
    assert row.evaluate("node => node.kept") is True
    expect(link).to_be_focused()
    assert page.evaluate("getSelection().toString()") == selected


@pytest.mark.nightly
def test_a_refresh_leaves_what_one_has_opened_and_keeps_the_charts(
    lake: MadeLake, address: str, open_page: OpenPage
) -> None:
    page = open_page(f"{address}/groups/mailer", ready=".uplot canvas")
    page.locator(".ranges summary").click()
    page.locator(".uplot").first.evaluate("node => { node.kept = true }")
    heard = page.locator(".fresh .quiet").inner_text()
    lake.next_round()
    expect(page.locator(".fresh .quiet")).not_to_have_text(heard)
    expect(page.locator(".ranges input[name=from]")).to_be_visible()
    assert page.locator(".uplot").first.evaluate("node => node.kept") is True


@pytest.mark.nightly
def test_times_are_in_the_viewers_zone(lake: MadeLake, address: str, open_page: OpenPage) -> None:
    for zone in ("Asia/Kolkata", "America/New_York"):
        lake.next_round()
        page = open_page(address, timezone_id=zone)
        local = lake.end.astimezone(ZoneInfo(zone))
        expect(page.locator(".fresh .quiet time")).to_have_text(re.compile(rf"(\d+ \w+ )?{local:%H:%M:%S}$"))
        # The whole moment is for the pointer; browsers call India by its older name.
        title = page.locator(".fresh .quiet time").get_attribute("title") or ""
        assert re.fullmatch(rf"{local:%Y-%m-%d %H:%M:%S} \w+/\w+ · {lake.end:%H:%M:%S} UTC", title)


def test_the_page_is_light_or_dark_as_the_viewer_has_it_also_while_it_is_open(
    address: str, open_page: OpenPage
) -> None:
    page = open_page(f"{address}/groups/mailer", ready=".uplot canvas", color_scheme="light")
    colours = """() => [
        getComputedStyle(document.documentElement).backgroundColor,
        getComputedStyle(document.querySelector(".facts dd")).color,
    ]"""
    drawn = page.locator(".plot canvas").first.evaluate("node => node.toDataURL()")
    light, light_text = page.evaluate(colours)
    page.emulate_media(color_scheme="dark")
    dark, dark_text = page.evaluate(colours)
    assert (light, dark) == ("rgb(252, 252, 251)", "rgb(20, 24, 27)")
    assert light_text != dark_text
    # Style follows at once; the chart follows the browser's event, which comes with its next frame.
    page.wait_for_function("drawn => document.querySelector('.plot canvas').toDataURL() !== drawn", arg=drawn)


def test_on_paper_there_are_the_rows_and_no_controls(address: str, open_page: OpenPage) -> None:
    page = open_page(address)
    page.emulate_media(media="print")
    for control in (".find", ".bar nav", ".bar .menu", ".foot"):
        expect(page.locator(control)).not_to_be_visible()
    expect(page.locator(".groups")).to_be_visible()
    assert page.locator(".bar").evaluate("node => getComputedStyle(node).position") == "static"


@pytest.mark.nightly
def test_no_board_is_wider_than_a_phone(address: str, boards: list[str], open_page: OpenPage) -> None:
    page = open_page(boards[0], **PHONE)
    for board in (*boards, *(f"{address}/groups/{WIDE.name}{part}" for part in ("", "/lag", "/load"))):
        page.goto(board)
        expect(page.locator("main .reading")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, board
    page.goto(boards[0])
    # The reason is read without scrolling, below the name.
    why = page.locator(".groups td.why").first.bounding_box()
    assert why["x"] + why["width"] <= 390


@pytest.mark.nightly
def test_on_a_phone_the_boards_are_a_sheet_for_the_thumb(address: str, open_page: OpenPage) -> None:
    page = open_page(f"{address}/load", **PHONE)
    sheet, menu = page.locator("#boards"), page.locator(".menu")
    expect(menu).to_have_text(re.compile("Load"))
    expect(sheet).not_to_be_visible()
    menu.tap()
    expect(sheet).to_be_visible()
    boxes = [link.bounding_box() or {} for link in sheet.locator("a").all()]
    assert len(boxes) == sum(bool(board.word) for board in BOARDS)
    assert min(box["height"] for box in boxes) >= 44
    assert max(box["y"] + box["height"] for box in boxes) <= 800
    assert min(box["y"] for box in boxes) >= 300
    page.keyboard.press("Escape")
    expect(sheet).not_to_be_visible()
    menu.tap()
    sheet.get_by_text("Topics").tap()
    expect(page).to_have_url(f"{address}/topics")
    expect(page.locator("#boards")).not_to_be_visible()


@pytest.mark.nightly
def test_axe_finds_nothing_on_any_board_in_light_and_dark(boards: list[str], browser: Any) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make test` fetches it with npm")
    found = {}
    # Between light and dark only colours differ.
    for scheme, rules in (("light", "document"), ("dark", "document, {runOnly: ['color-contrast']}")):
        # Its script is not ours, so the content policy refuses it; it is checked in all other tests.
        context = browser.new_context(color_scheme=scheme, bypass_csp=True, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        for board in boards:
            page.goto(board)
            page.add_script_tag(path=AXE)
            violations = page.evaluate(f"async () => (await axe.run({rules})).violations")
            found[board, scheme] = [(one["id"], node["html"][:200]) for one in violations for node in one["nodes"]]
        context.close()
    assert {board: some for board, some in found.items() if some} == {}


@pytest.mark.nightly
def test_a_server_that_does_not_answer_is_reported_until_it_does(
    address: str, lake: MadeLake, open_page: OpenPage
) -> None:
    page = open_page(address, expected=("ERR_FAILED", "Failed to fetch"))
    away = page.locator("#away")
    expect(away).not_to_be_visible()

    def refuse(route: Route) -> None:
        route.abort()

    page.route("**/*part=main*", refuse)
    expect(away).to_be_visible()
    expect(away).to_contain_text("The server does not answer.")
    expect(page.locator(".groups td.c-group a .name").first).to_have_text("clicks-pile-up")
    lake.next_round()
    heard = page.locator(".fresh .quiet").inner_text()
    page.unroute("**/*part=main*", refuse)
    expect(away).not_to_be_visible()
    expect(page.locator(".fresh .quiet")).not_to_have_text(heard)


def test_without_scripts_the_page_works_and_loads_itself_again(address: str, open_page: OpenPage) -> None:
    page = open_page(address, java_script_enabled=False)
    assert page.locator("noscript meta[http-equiv=refresh]").get_attribute("content") == "15"
    page.get_by_text("billing-stuck").first.click()
    expect(page.locator("h1 .name")).to_have_text("billing-stuck")
    # Playwright only stops scripts: the browser still hides what stands in for them.
    assert "Lag: all partitions from " in page.content()


@pytest.mark.nightly
def test_an_empty_lake_silence_a_group_that_is_not_there_and_a_broken_table_are_a_sentence_each(
    tmp_path: Path, open_page: OpenPage
) -> None:
    root = tmp_path / "lake"
    with running(root, tmp_path / "serve.log", until="empty") as (address, _):
        page = open_page(address, expected=("404",))
        expect(page.locator(".empty")).to_contain_text("The first round appears here by itself")
        made = MadeLake(root, [MadeGroup("first")], end=datetime.now(UTC) - timedelta(minutes=3))
        expect(page.locator(".groups td.c-group a .name")).to_have_text("first")
        expect(page.locator(".empty")).to_have_count(0)
        expect(page.locator("main .banner")).to_contain_text(re.compile(r"No update from demo for \d+ min"))
        expect(page.locator(".fresh")).to_contain_text("no update for")
        page.goto(f"{address}/groups/nobody")
        expect(page.locator("main")).to_contain_text("No active group is called nobody")
        page.goto(address)
        made.next_round()
        expect(page.locator("main .banner")).to_have_count(0)
        newest = max((root / "group_health" / "_delta_log").glob("*.json"))
        broken = newest.with_name(f"{int(newest.stem) + 1:020d}.json")
        broken.write_text("no JSON at all\n")
        expect(page.locator("main .banner")).to_contain_text("The lake cannot be read.")
        expect(page.locator("main .banner")).to_contain_text("group_health cannot be read")
        expect(page.locator(".groups td.c-group a .name")).to_have_text("first")
        assert "Traceback" not in page.content()
        broken.unlink()
        expect(page.locator("main .banner")).to_have_count(0)
        page.close()
