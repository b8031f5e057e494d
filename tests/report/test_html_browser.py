"""The HTML page in a real browser: filters, links, keyboard, themes, and content security policy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest
from support import browser as browsers
from support.browser import Browser, Tab
from support.outcomes import finding, fix, source

from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Applicability, Severity, Witness, WitnessStep
from fsrace_lint.report import Edit, Options, Outcome, Preview, RuleInfo, Tool, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(browsers.PROGRAM is None, reason="needs Chromium")

CODE: Final = "import os\n\n\ndef prepare(out):\n    os.makedirs(out)\n"
PAIR: Final = Witness(
    (WitnessStep(0, "makedirs(out)", "done"), WitnessStep(1, "makedirs(out)", "FileExistsError")), "it dies"
)
RULES: Final = tuple(
    RuleInfo(code, name, f"{name}.\n\nWhy.\n\nBad:\n    os.mkdir(a)", Severity.ERROR, 362)
    for code, name in (("FSR101", "check-then-mkdir"), ("FSR201", "unguarded-write"))
)
VISIBLE: Final = (
    "[...document.querySelectorAll('.finding')].filter(it => !it.closest('[hidden]'))"
    ".map(it => it.querySelector('.at').textContent).join()"
)
OPENED: Final = "[...document.querySelectorAll('.finding')].filter(it => it.open).length"
STATUS: Final = "document.getElementById('shown').textContent"
GROUND: Final = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(247, 246, 243)", "rgb(19, 20, 23)"


def report() -> str:
    """Return a page with six findings that differ in every filter."""
    found, sources = [], {}
    for number in range(1, 7):
        path = f"{'ab'[number > 3]}/{'train' if number > 3 else 'data'}.py"
        sources[path] = source(path, CODE)
        rule = RULES[number % 2]
        found.append(
            finding(
                Place(path, Span(5, number, 5, 21)),
                code=rule.code,
                name=rule.name,
                message=f"message {number}",
                severity=(Severity.ERROR, Severity.WARNING, Severity.NOTE)[number % 3],
                evidence=("evident", "plausible")[number > 2],
                witness=PAIR,
                fix=fix(Applicability.SAFE),
            )
        )
    previews = {one: Preview((Edit(Span(5, 20, 5, 20), ", exist_ok=True"),)) for one in found}
    return render("html", Outcome(tuple(found), previews=previews), sources, Options(tool=Tool("1.0", RULES)))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "races.html"
    file.write_text(report(), "ascii")
    return file


@pytest.fixture
def tab(browser: Browser, page: Path) -> Iterator[Tab]:
    opened = Tab(browser)
    opened.open(page)
    yield opened
    assert opened.complaints() == []
    assert {url.partition("#")[0] for url in opened.requests()} == {page.resolve().as_uri()}
    opened.close()


@pytest.fixture
def opening(browser: Browser) -> Iterator[Callable[..., Tab]]:
    tabs = []

    def start(**options: object) -> Tab:
        tabs.append(Tab(browser, **options))  # type: ignore[arg-type]  # the keywords of a tab
        return tabs[-1]

    yield start
    for each in tabs:
        each.close()


def tick(tab: Tab, name: str, value: str) -> None:
    tab.ask(f"document.querySelector('input[name={name}][value={value}]').click()")


def search(tab: Tab, text: str) -> None:
    tab.ask("document.getElementById('text').focus()")
    tab.ask("document.getElementById('text').select()")
    tab.send("Input.insertText", text=text)


class TestFilters:
    def test_all_findings_are_shown_at_first(self, tab: Tab) -> None:
        assert tab.ask(VISIBLE) == "5:1,5:2,5:3,5:4,5:5,5:6"
        assert tab.ask(STATUS) == "6 shown"

    def test_filter_by_severity(self, tab: Tab) -> None:
        tick(tab, "severity", "warning")
        assert tab.ask(VISIBLE) == "5:1,5:4"
        tick(tab, "severity", "note")
        assert tab.ask(VISIBLE) == "5:1,5:2,5:4,5:5"
        assert tab.ask(STATUS) == "4 of 6 shown"

    def test_filter_by_rule_and_evidence(self, tab: Tab) -> None:
        tick(tab, "rule", "FSR201")
        assert tab.ask(VISIBLE) == "5:1,5:3,5:5"
        tick(tab, "evidence", "evident")
        assert tab.ask(VISIBLE) == "5:1"
        assert tab.ask("[...document.querySelectorAll('.file')].map(it => it.hidden).join()") == "false,true"

    def test_filter_by_text(self, tab: Tab) -> None:
        search(tab, "TRAIN message")
        assert tab.ask(VISIBLE) == "5:4,5:5,5:6"
        search(tab, "data 5:2")
        assert tab.ask(VISIBLE) == "5:2"
        search(tab, "no such thing")
        assert tab.ask(VISIBLE) == ""
        assert tab.ask("document.getElementById('nothing').checkVisibility()") is True
        tab.ask("document.getElementById('clear').click()")
        assert tab.ask(STATUS) == "6 shown"
        assert tab.ask("document.getElementById('text').value") == ""

    def test_buttons_open_and_close_findings(self, tab: Tab) -> None:
        assert tab.ask(OPENED) == 1
        tick(tab, "severity", "warning")
        tab.ask("document.getElementById('open').click()")
        assert tab.ask(OPENED) == 2
        tab.ask("document.getElementById('clear').click()")
        tab.ask("document.getElementById('close').click()")
        assert tab.ask(OPENED) == 0


class TestLinks:
    def test_rule_link_opens_its_page(self, tab: Tab) -> None:
        assert tab.ask("document.getElementById('FSR201').checkVisibility()") is False
        tab.ask("document.querySelector('.about a[href=\"#FSR201\"]').click()")
        tab.ask("new Promise(done => setTimeout(done, 50))")
        assert tab.ask("document.getElementById('FSR201').checkVisibility()") is True

    def test_link_to_a_filtered_finding_opens_it(self, tab: Tab) -> None:
        tick(tab, "severity", "error")
        tab.ask("document.querySelector('.places a[href=\"#f5\"]').click()")
        tab.ask("new Promise(done => setTimeout(done, 50))")
        assert tab.ask("document.getElementById('f5').checkVisibility()") is True
        assert tab.ask(STATUS) == "6 shown"

    def test_url_fragment_opens_its_finding(self, opening: Callable[..., Tab], page: Path) -> None:
        tab = opening()
        tab.open(page, "#f6")
        assert tab.ask("document.getElementById('f6').checkVisibility()") is True


class TestKeyboard:
    def test_page_can_be_used_with_the_keyboard(self, tab: Tab) -> None:
        tab.press("Tab", 9)
        assert tab.ask("document.activeElement.className") == "skip"
        tab.press("Enter", 13, "\r")
        assert tab.ask("document.activeElement.id") == "findings"
        tab.press("Tab", 9)
        assert tab.ask("document.activeElement.closest('.file') !== null") is True
        tab.press("Enter", 13, "\r")
        assert tab.ask("document.querySelector('.file').open") is False
        tab.press("/", 191, "/")
        assert tab.ask("document.activeElement.id") == "text"
        assert tab.ask("document.activeElement.value") == ""

    def test_focused_element_is_outlined(self, tab: Tab) -> None:
        for _ in range(12):
            tab.press("Tab", 9)
            drawn = tab.ask(
                "(() => { const it = document.activeElement;"
                " const seen = it.matches('.chip input') ? it.nextElementSibling : it;"
                " return getComputedStyle(seen).outlineStyle })()"
            )
            assert drawn not in {"none", None}


class TestTheme:
    @pytest.mark.parametrize(("dark", "ground"), [(False, LIGHT), (True, DARK)])
    def test_theme_follows_the_system(
        self, opening: Callable[..., Tab], page: Path, dark: bool, ground: str
    ) -> None:
        tab = opening(dark=dark)
        tab.open(page)
        assert tab.ask(GROUND) == ground

    def test_theme_can_be_chosen_and_is_remembered(self, tab: Tab, page: Path) -> None:
        grounds = []
        for _ in range(3):
            grounds.append(tab.ask(GROUND))
            tab.ask("document.getElementById('theme').click()")
        assert grounds == [LIGHT, LIGHT, DARK]
        tab.ask("document.getElementById('theme').click(); document.getElementById('theme').click()")
        # the browser writes local storage with a delay
        for _ in range(100):
            tab.open(page)
            if tab.ask(GROUND) == DARK:
                break
            time.sleep(0.1)
        assert tab.ask(GROUND) == DARK
        assert tab.ask("document.getElementById('theme').textContent") == "Theme: dark"
        tab.ask("localStorage.clear()")


class TestRendering:
    @pytest.mark.parametrize("width", [320, 390, 768, 1280, 2000])
    def test_page_fits_the_window(self, opening: Callable[..., Tab], page: Path, width: int) -> None:
        tab = opening(width=width)
        tab.open(page)
        tab.ask("document.getElementById('open').click()")
        assert tab.ask("document.documentElement.scrollWidth") <= width
        assert (
            tab.ask("[...document.querySelectorAll('.act')].every(it => it.scrollWidth <= it.clientWidth)")
            is True
        )

    def test_page_can_be_read_without_javascript(self, opening: Callable[..., Tab], page: Path) -> None:
        tab = opening(script=False, dark=True)
        tab.open(page)
        assert tab.ask("document.documentElement.className") == ""
        assert tab.ask("[...document.querySelectorAll('.script')].some(it => it.checkVisibility())") is False
        assert tab.ask(VISIBLE) == "5:1,5:2,5:3,5:4,5:5,5:6"
        assert tab.ask(GROUND) == DARK
        assert tab.ask("document.getElementById('f1').checkVisibility()") is True

    def test_dot_is_in_the_lane_of_its_process(self, tab: Tab) -> None:
        gaps = tab.ask(
            "[...document.querySelectorAll('#f1 .lanes li')].map((it, row) => {"
            " const dot = it.querySelector('circle').getBoundingClientRect();"
            " const said = it.querySelector('.act').getBoundingClientRect();"
            " return Math.round(dot.left + dot.width / 2 - said.left)})"
        )
        assert gaps == [8, 8]

    def test_printing_shows_closed_findings(self, tab: Tab) -> None:
        tab.send("Emulation.setEmulatedMedia", media="print")
        assert tab.ask("document.querySelector('#f6 pre').getBoundingClientRect().height") > 20
        assert tab.ask("document.querySelector('aside').checkVisibility()") is False

    def test_content_security_policy_is_enforced(self, opening: Callable[..., Tab], page: Path) -> None:
        text = page.read_text()
        page.write_text(text.replace('"use strict";', '"use strict"; window.taken = 1;', 1))
        tab = opening()
        tab.open(page)
        assert tab.ask("window.taken === undefined") is True
        assert any("Content Security Policy" in complaint for complaint in tab.complaints())

    def test_page_without_findings(self, opening: Callable[..., Tab], tmp_path: Path) -> None:
        file = tmp_path / "clean.html"
        file.write_text(render("html", Outcome(statistics={"files": 3}), {}, Options()), "ascii")
        tab = opening()
        tab.open(file)
        assert tab.ask("document.querySelector('h1').textContent") == "No filesystem races found"
        assert tab.complaints() == []
