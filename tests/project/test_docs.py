"""The documentation is correct: code blocks, commands, links, and the site built from the pages."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from support import ROOT, code_blocks, commands, pages
from support.commands import bash
from support.pages import DOCS, Block

from fsrace_lint.cli import main

if TYPE_CHECKING:
    from pathlib import Path

UPDATE = os.environ.get("FSRACE_UPDATE_DOCS") == "1"
"""Write the output of commands into the pages instead of comparing it; review the diff afterward."""

HAZARD = 'import os\n\nif not os.path.exists("runs"):\n    os.makedirs("runs")\n'
SCENARIO = """\
import os


def prepare(root, rank):
    if not os.path.isdir(root / "out"):
        os.mkdir(root / "out")


def save(root, rank):
    (root / f".state.{rank}").write_text("state")
    os.replace(root / f".state.{rank}", root / "state")


def is_whole(root):
    assert not (root / "state").exists() or (root / "state").read_text() == "state"
"""
SCRATCH = {
    "pyproject.toml": "",
    "train.py": HAZARD,
    "src/train.py": HAZARD,
    "mypackage/__init__.py": "",
    "scenario.py": SCENARIO,
    "buffer": HAZARD,
}
"""The files in the scratch directory of every page, in addition to the examples."""

ELSEWHERE = {
    "docs/gallery.md": "gallery/test_gallery.py compares it with recorded reports, and runs the scenarios",
    "docs/incidents.md": "explore/test_incidents.py runs each command, and looks at what it found",
    "docs/rules/": "rules/test_rules.py checks the examples, explore/test_rule_examples.py runs them",
}
FLAGS = {
    flag
    for command in (main.main, *commands.every().values())
    for option in command.params
    for flag in (*option.opts, *option.secondary_opts, "--help", "--version")
}
FOREIGN_FLAGS = {"--disable-noqa", "--exhaustive", "--fsrace-daemon", "--fsrace-profile"}
"""Options of other programs in the text; options in blocks are looked up in the help of their program."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


WITH_BLOCKS = [page for page in pages.pages() if not name(page).startswith(tuple(ELSEWHERE))]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A small project with hazards, in a git repository with two commits."""
    root = tmp_path / "project"
    for file, text in SCRATCH.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, "utf-8")
    with tarfile.open(root / "data.tar.gz", "w:gz") as archive:
        archive.add(root / "train.py", "train.py")
    commit = "git -c user.name=no -c user.email=no@example.com -c commit.gpgSign=false commit --quiet"
    script = f"git init -q && {commit} --allow-empty -m first && git add -A && {commit} -m second"
    (done,) = bash([script], root)
    assert done.code == 0, done.errors
    return root


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name)
def test_code_blocks_are_correct(page: Path, directory: Path) -> None:
    if "examples" in page.read_text("utf-8"):
        shutil.copytree(
            ROOT / "examples", directory / "examples", ignore=shutil.ignore_patterns("__pycache__")
        )
    problems = [problem(page, block, directory) for block in pages.blocks(page)]
    assert not any(problems), "\n\n".join(filter(None, problems))


def problem(page: Path, block: Block, directory: Path) -> str | None:
    """Return the problem of a block, or None."""
    place = f"{name(page)}:{block.line}"
    try:
        code_blocks.check(block, directory)
    except AssertionError as error:
        if UPDATE and isinstance(error, code_blocks.OutdatedError):
            page.write_text(page.read_text("utf-8").replace(block.text, error.text, 1), "utf-8")
            return None
        return f"{place}: {error}" if block.excuse is None else None
    return f"{place}: it can be checked: drop `not run: {block.excuse}`" if block.excuse else None


def test_pages_checked_elsewhere_and_their_tests_exist() -> None:
    found = [name(page) for page in pages.pages()]
    assert all(any(page.startswith(prefix) for page in found) for prefix in ELSEWHERE)
    for reason in ELSEWHERE.values():
        for module in re.findall(r"\S+\.py", reason):
            assert (ROOT / "tests" / module).is_file()


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_commands_and_options_in_the_text_exist(page: Path) -> None:
    wrong = []
    for line, code in pages.code(page):
        if code.startswith("fsrace-lint "):
            commands.parse(shlex.split(code))
        option = re.match(r"--[a-z][a-z-]+", code)
        if option and option[0] not in FLAGS | FOREIGN_FLAGS:
            wrong.append(f"{name(page)}:{line}: no command has {option[0]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", pages.pages(), ids=name)
def test_links_resolve(page: Path) -> None:
    wrong = []
    for line, target in pages.links(page):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), f"{name(page)}:{line}: {target}"
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.is_file():
            wrong.append(f"{name(page)}:{line}: there is no {target}")
        elif DOCS in page.parents and DOCS not in file.parents:
            wrong.append(f"{name(page)}:{line}: {target} is not a part of the site")
        elif anchor and anchor not in pages.anchors(file):
            wrong.append(f"{name(page)}:{line}: there is no heading for {target}")
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site built from the current pages."""
    pytest.importorskip("material", reason="the site needs the extra `docs`")
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", os.fspath(directory)]
    # mkdocs-material prints a warning about mkdocs 2 on every run
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    # nothing listens at this proxy, so network access fails
    closed = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **quiet, **closed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return directory


class TestSite:
    """The site builds without warnings and without network access."""

    def test_site_contains_every_page(self, site: Path) -> None:
        wanted = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
        assert wanted <= {page.relative_to(site) for page in site.rglob("*.html")}

    def test_site_contains_the_schemas(self, site: Path) -> None:
        schemas = list(DOCS.glob("*.schema.json"))
        assert schemas
        assert all((site / schema.name).read_bytes() == schema.read_bytes() for schema in schemas)

    def test_pages_load_no_external_resources(self, site: Path) -> None:
        """Scripts, styles, fonts, and images are part of the site; only links may be external."""
        loads = re.compile(
            r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|<link(?![^>]+rel=["']?canonical)[^>]+"""
            r"""href=["']?(?:https?:)?//|@import|url\(["']?(?:https?:)?//"""
        )
        files = [*site.rglob("*.html"), *site.rglob("*.css")]
        assert len(files) > 40
        assert [file for file in files if loads.search(file.read_text("utf-8"))] == []
        text = (site / "index.html").read_text("utf-8")
        assert loads.search(text + '<script src="https://example.com/a.js">')


class TestChecks:
    """The checks detect errors in pages."""

    @pytest.mark.parametrize(
        ("kind", "text", "message"),
        [
            ("sh", "fsrace-lint check --no-such-option", "No such option"),
            ("sh", "fsrace-lint chek", "no command `chek`"),
            ("sh", "fsrace-lint check no_such_file.py", "ended with 2"),
            ("sh", "frobnicate train.py", "nothing is known of the program"),
            ("sh", "python -m pip install '.[no-such-extra]'", "no extra no-such-extra"),
            ("sh", "ruff check --no-such-option", "has no --no-such-option"),
            ("console", "$ fsrace-lint check train.py\nNo filesystem races found in 1 file.", "--- the page"),
            ("console", "$ fsrace-lint rules --no-such-option", "No such option"),
            ("text", "a.py:1:1: FSR101 check-then-mkdir: x", "show the command too"),
            ("python", "import no_such_module", "ModuleNotFoundError"),
            ("toml", '[tool.fsrace-lint]\nprofil = "strict"', "did you mean `profile`"),
            ("toml", '[[guard]]\nnames = ["a.b"]\nscope = "gobal"', "gobal"),
            ("yaml", "jobs: {a: {steps: 1}}", "steps"),
            ("yaml", "a: {script: [fsrace-lint check --nothing]}", "No such option"),
            ("yaml", "- repo: x\n  hooks: [{id: fsrace-lint, args: [--nothing]}]", "rev"),
            ("groovy", "sh 'fsrace-lint check .'\njunit 'races.xml'", "no command has written races.xml"),
            ("json", '{"findings": []}', "is a required property"),
            ("ini", "[flake8]\nno-such = x", "flake8 has no option no-such"),
            ("brainfuck", "+", "nothing checks blocks"),
        ],
    )
    def test_error_in_a_block_is_detected(self, directory: Path, kind: str, text: str, message: str) -> None:
        with pytest.raises(Exception, match=re.escape(message)):
            code_blocks.check(Block(1, kind, text + "\n", None, None), directory)

    def test_continued_lines_are_one_command(self) -> None:
        text = "# first\na -x \\\n  y   # why\n\nb '#1'\n"
        assert list(commands.lines_of(text)) == ["a -x    y", "b '#1'"]

    def test_command_line_is_split_into_commands(self) -> None:
        found = commands.split("git diff -- '*.py' | xargs a b && c > out.txt || d")
        assert found == [["git", "diff", "--", "*.py"], ["xargs", "a", "b"], ["c"], ["d"]]

    def test_blocks_and_their_notes_are_parsed(self, tmp_path: Path) -> None:
        page = tmp_path / "page.md"
        page.write_text(
            dedent("""\
                # A title, a `b_c`

                <!-- file: a/b.py -->
                ```python
                x = 1
                ```

                <!-- not run: it is slow -->

                    fsrace-lint check

                ```toml
                # c.toml
                ```
                """)
        )
        assert list(pages.blocks(page)) == [
            Block(4, "python", "x = 1\n", "a/b.py", None),
            Block(10, "", "fsrace-lint check\n", None, "it is slow"),
            Block(12, "toml", "# c.toml\n", "c.toml", None),
        ]
        assert pages.anchors(page) == {"a-title-a-b_c"}
