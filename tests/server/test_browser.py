"""Real browsers: few clicks, a phone, the keyboard alone, and axe on every page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.servers import PASSWORD, Served, csrf
from tacit.server.store import TABLES

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    if not CHROMIUM:
        pytest.skip("needs chromium: make browser")
    with api.sync_playwright() as play:
        found = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield found
        found.close()


def signed_in(browser: Any, server: Served, name: str, **options: Any) -> Any:
    page = browser.new_context(base_url=server.url, **options).new_page()
    page.set_default_timeout(240_000)
    page.goto("/sign-in")
    page.fill("#f-name", name)
    page.fill("#f-password", PASSWORD)
    page.click("button.main")
    page.wait_for_url("**/tables")
    return page


def waiting_and_published(server: Served) -> tuple[str, str]:
    """The pages of a request that waits, and of a published release."""
    head = {"Authorization": f"Bearer {server.token('andy')}"}
    client, asked = server.client("andy"), {"releases": [{"kind": "sum", "column": "age", "by": ["region"]}]}
    made = client.post(
        "/api/v1/tables/people/request",
        json={**asked, "spend": {"epsilon": 0.031}, "note": "x"},
        headers=head,
    ).json()
    job = client.post(
        "/api/v1/tables/people/release", json={**asked, "spend": {"epsilon": 0.032}}, headers=head
    ).json()["job"]
    assert "/releases/" in str(server.wait(client, job).url)
    clara = server.client("clara")
    said = {
        "csrf": csrf(clara.get("/account").text),
        "act": "publish",
        "title": "Ages",
        "summary": "All of them.",
    }
    public = clara.post(f"/releases/{job}", data=said).url.path
    return f"/requests/people/{made['request']}", public


@pytest.mark.parametrize("width", [1200, 390])
def test_five_clicks_to_a_first_table_with_intervals(browser: Any, desk_server: Served, width: int) -> None:
    page = signed_in(browser, desk_server, "andy", viewport={"width": width, "height": 844})
    clicks = 1  # the button of the sign-in
    page.click("text=Ask Table people")
    # A click ends when the page is there, before its style sheet may be.
    page.wait_for_load_state("load")
    # One screen of form: the button that releases shows without scrolling, before and after the price came.
    box = page.locator("button[value=release]").bounding_box()
    assert box["y"] + box["height"] <= 844
    page.click("input[name=pay][value='1']")
    page.wait_for_selector("#price .big")
    box = page.locator("button[value=release]").bounding_box()
    assert box["y"] + box["height"] <= 844
    page.click("button[value=release]")
    clicks += 3
    page.wait_for_url("**/releases/*")
    assert clicks <= 5
    assert page.locator("#values th:has-text('low')").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_by_keyboard_alone(browser: Any, desk_server: Served) -> None:
    page = browser.new_context(base_url=desk_server.url).new_page()
    page.set_default_timeout(240_000)
    page.goto("/sign-in")

    def to(what: str) -> None:
        for _ in range(80):
            if page.evaluate("w => document.activeElement && document.activeElement.matches(w)", what):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{what} is not reached by Tab")

    to("#f-name")
    page.keyboard.type("andy")
    to("#f-password")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/tables")
    to("a[href='/tables/people/ask']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ask")
    to("input[name=by][value=region]")
    page.keyboard.press("Space")
    to("input[name=pay]")
    page.keyboard.press("Space")
    # The live price, while one types.
    page.wait_for_selector("#price .big")
    to("button[value=release]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
    assert "north" in page.inner_text("#values")
    page.context.close()


def test_the_back_button_and_two_tabs(browser: Any, desk_server: Served) -> None:
    page = signed_in(browser, desk_server, "ben")
    left = desk_server.desk.ledger(desk_server.desk.store.one(TABLES, name="people")).remaining("ben")  # type: ignore[arg-type]
    said = []
    for again in range(2):
        if again:
            page.go_back()
            page.wait_for_selector("#ask")
        else:
            page.goto("/tables/people/ask")
        page.fill("#where", "age > 33") if page.is_visible("#where") else page.evaluate(
            "document.getElementById('where').value = 'age > 33'"
        )
        page.check("input[name=pay][value='1']")
        page.click("button[value=release]")
        page.wait_for_url("**/releases/*")
        said.append(page.inner_text("#values"))
    tab = page.context.new_page()
    tab.set_default_timeout(240_000)
    tab.goto("/tables/people/ask")
    tab.evaluate("document.getElementById('where').value = 'age > 33'")
    tab.check("input[name=pay][value='1']")
    tab.click("button[value=release]")
    tab.wait_for_url("**/releases/*")
    assert "free" in tab.inner_text("main")
    said.append(tab.inner_text("#values"))
    assert said[0] == said[1] == said[2]
    # Back, and another question: another answer, never the old one under the new question.
    page.go_back()
    page.wait_for_selector("#ask")
    page.select_option("#kind", "mean")
    page.select_option("#column", "age")
    page.check("input[name=pay][value='1']")
    page.click("button[value=release]")
    page.wait_for_url("**/releases/*")
    assert "mean-age" in page.inner_text("#values")
    spent = float(left.parameters["epsilon"]) - float(
        desk_server.desk.ledger(desk_server.desk.store.one(TABLES, name="people"))
        .remaining("ben")
        .parameters["epsilon"]  # type: ignore[arg-type]
    )
    assert spent == pytest.approx(0.08)  # two charges of 1% of 4
    page.context.close()


def test_enter_in_a_field_asks_for_the_price_and_for_nothing_else(browser: Any, desk_server: Served) -> None:
    page = signed_in(browser, desk_server, "andy", java_script_enabled=False)
    page.goto("/tables/people/ask")
    page.click("summary")
    page.fill("#where", "age > 20")
    page.check("input[name=pay][value='1']")
    page.press("#where", "Enter")
    page.wait_for_selector("#price .big")
    assert page.locator(".basket").count() == 0
    page.context.close()


def test_without_a_script(browser: Any, desk_server: Served) -> None:
    page = signed_in(browser, desk_server, "andy", java_script_enabled=False)
    page.goto("/tables/people/ask")
    page.select_option("#kind", "mean")
    page.select_option("#column", "age")
    page.check("input[name=pay][value='1']")
    page.click("button[data-plain]")
    assert "epsilon = 0.04" in page.inner_text("#price")
    page.click("button[value=release]")
    for _ in range(200):
        page.goto(page.url)
        if "/releases/" in page.url:
            break
        page.wait_for_timeout(200)
    assert "mean-age" in page.inner_text("#values")
    page.context.close()


def test_the_slider_is_a_price_and_the_price_says_what_one_gets(browser: Any, desk_server: Served) -> None:
    """Price, expected error and the smallest possible error follow the slider; nothing is spent."""
    before = desk_server.desk.overview(desk_server.desk.store.one(TABLES, name="people"))["spent"]  # type: ignore[arg-type]
    page = signed_in(browser, desk_server, "andy")
    page.goto("/tables/people/ask")
    page.check("input[name=pay][value=own]")
    told = {}
    for place in (10, 60, 100):
        page.evaluate(
            "v => { const s = document.getElementById('slider'); s.value = v;"
            " s.dispatchEvent(new Event('input', { bubbles: true })); }",
            place,
        )
        amount = page.input_value("#amount")
        page.wait_for_function(
            "a => document.querySelector('#price .big')?.textContent === `epsilon = ${a}`", arg=amount
        )
        cells = page.locator("#price tbody td").all_inner_texts()
        told[float(amount)] = [float(c.replace("±", "").split()[0].replace(",", "")) for c in cells[1:3]]
    # A higher price: a smaller error, and never below what no method can be below.
    errors = [told[a][0] for a in sorted(told)]
    assert errors == sorted(errors, reverse=True)
    assert len(set(errors)) == 3
    assert all(floor <= error for error, floor in told.values())
    # Beyond what is left the page says what would fit.
    page.fill("#amount", "3.9")
    page.wait_for_selector("#price .problem")
    assert "What would fit: epsilon = " in page.inner_text("#price")
    page.context.close()
    assert desk_server.desk.overview(desk_server.desk.store.one(TABLES, name="people"))["spent"] == before  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [1200, 390])
def test_no_page_is_wider_than_the_screen(browser: Any, desk_server: Served, width: int) -> None:
    """And nothing of the audit log or of a ledger lies beyond its edge."""
    page = signed_in(browser, desk_server, "clara", viewport={"width": width, "height": 844})
    for path in (
        "/audit",
        "/ledger/people",
        "/people",
        "/requests",
        "/releases",
        "/tables/people",
        "/account",
        "/public",
    ):
        page.goto(path)
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        if width < 500:
            hidden = (
                "Array.from(document.querySelectorAll('table.stack')).filter("
                "t => t.parentElement.scrollWidth > t.parentElement.clientWidth).length"
            )
            assert page.evaluate(hidden) == 0, path
            if path in ("/audit", "/ledger/people", "/people"):
                assert page.locator("table.stack").count() == 1, path
    page.context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, desk_server: Served, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    (desk_server.settings.roots["tables"] / "fresh.csv").write_text("who,age\na,1\n")
    serious = []
    request, public = waiting_and_published(desk_server)
    visits = {
        "clara": [
            "/tables", "/tables/people", "/tables/people/ask", "/new-table",
            "/new-table/declare?source=tables/fresh.csv",
            "/people", "/releases", "/requests", "/ledger/people", "/audit", "/account", "/public",
            "/nothing-here", public,
        ],
        "olga": ["/account", "/requests", request],
        "andy": ["/requests", request, "/releases"],
    }  # fmt: skip
    for name, paths in visits.items():
        page = signed_in(browser, desk_server, name, color_scheme=scheme, bypass_csp=True)
        done = [
            j
            for j in desk_server.desk.jobs(desk_server.desk.accounts.person("clara"))
            if j["state"] == "done"
        ]  # type: ignore[arg-type]
        for path in [*paths, *(f"/releases/{j['id']}" for j in done[:1] if name == "clara")]:
            page.goto(path)
            if path.endswith("/ask"):
                page.check("input[name=pay][value='5']")
                page.wait_for_selector("#price .big")
            found = axe.run(page).response["violations"]
            serious += [(path, v["id"], v["help"]) for v in found if v["impact"] in ("serious", "critical")]
        page.context.close()
    page = browser.new_context(base_url=desk_server.url, color_scheme=scheme, bypass_csp=True).new_page()
    page.goto("/sign-in")
    serious += [
        v["id"] for v in axe.run(page).response["violations"] if v["impact"] in ("serious", "critical")
    ]
    page.context.close()
    assert not serious


def test_a_stream_ends_with_its_session(browser: Any, desk_server: Served) -> None:
    import httpx

    from tacit.server import jobs
    from tacit.server.store import JOBS

    client = desk_server.client("andy")
    quote = {"title": "x", "asked": {}, "digest": "d", "key": "k", "price": "p"}
    job = jobs.submit(desk_server.desk.store, quote, table="people", version="2026", person="andy", request=1)
    desk_server.desk.store.change(JOBS, [JOBS.c.id == job], state="running", lease=9e12, fence=1)
    desk_server.desk.store.change(JOBS, [JOBS.c.id == job], lease=__import__("time").time() + 60)
    lines = []
    with httpx.stream(
        "GET", f"{desk_server.url}/jobs/{job}/events", cookies=dict(client.cookies), timeout=30
    ) as stream:
        for line in stream.iter_lines():
            lines.append(line)
            if len(lines) == 3:
                desk_server.desk.accounts.end_sessions("andy")
    desk_server.desk.store.change(JOBS, [JOBS.c.id == job], state="failed")
    assert '"state": "running"' in lines[0]
    assert '"state": ""' in lines[-2]
