"""Security: checked code is never run, cannot inject control sequences into output, and is never trusted."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
import sys
import unicodedata
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from support.cli import HAZARD, read_terminal, write
from support.editor import Editor, session
from support.html import elements, parsed, text_of
from support.outcomes import finding, fix, source

from fsrace_lint import report
from fsrace_lint.cli import main
from fsrace_lint.engine import store
from fsrace_lint.engine.parallel import extraction as parallel_extraction
from fsrace_lint.engine.store import seal as sealing
from fsrace_lint.explore import explore
from fsrace_lint.files.spans import Place, Span
from fsrace_lint.findings.finding import Applicability, Related, Silenced, Suppression, Witness, WitnessStep
from fsrace_lint.report import Options, Outcome, Problem, render
from fsrace_lint.report.diff import for_the_eyes, unified
from fsrace_lint.report.words import visible
from fsrace_lint.syntax import extract as extraction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from click.testing import Result

    from fsrace_lint.files.source import Source

pytestmark = pytest.mark.usefixtures("here")

BIN: Final = Path(sys.executable).parent
LINTER: Final = str(BIN / "fsrace-lint")
NEEDS_POSIX: Final = pytest.mark.skipif(os.name != "posix", reason="links, modes and names as POSIX has them")


def run(*arguments: str, code: int) -> Result:
    result = CliRunner().invoke(main.main, arguments, prog_name="fsrace-lint")
    assert result.exit_code == code, result.output
    return result


# The checked code is never run.

THIRD_PARTY: Final = (
    "black", "click", "flake8", "isort", "libcst", "lsprotocol", "msgspec", "pathspec", "pygls", "rich",
    "tomli", "pyflakes", "pycodestyle", "mccabe", "attr", "attrs", "cattrs", "yaml", "typing_extensions",
)  # fmt: skip
SPECIAL: Final = (
    "sitecustomize",
    "usercustomize",
    "conftest",
    "setup",
    "trap",
    "fsrace_lint_plugin",
    "noxfile",
)
CONFIGURATION: Final = {
    "setup.cfg": "[options.entry_points]\nflake8.extension =\n    TRAP = trap:Plugin\n",
    "tox.ini": "[pytest]\naddopts = -p trap\n",
    "pyproject.toml": """
        [build-system]
        requires = []
        build-backend = "trap"
        backend-path = ["."]
        [project.entry-points."flake8.extension"]
        TRAP = "trap:Plugin"
        [tool.mypy]
        plugins = ["trap"]
        [tool.pytest.ini_options]
        addopts = "-p trap"
        """,
    "trap.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: trap\nVersion: 1\n",
    "trap.egg-info/entry_points.txt": "[flake8.extension]\nTRAP = trap:Plugin\n",
    "trap.pth": "import trap\n",
    ".env": "PYTHONSTARTUP=trap.py\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".gitignore": "/ignored/\n",
}


def loaded_by_python() -> set[str]:
    """Return the modules that `python -m` loads before the first line of a program."""
    program = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in MODULES})))"
    Path("probe.py").write_text("import sys\nMODULES = list(sys.modules)\n" + program)
    done = subprocess.run([sys.executable, "-m", "probe"], capture_output=True, check=True)
    Path("probe.py").unlink()
    return {*json.loads(done.stdout)} - {"__main__"}


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A project that writes a mark if any of it is imported or run; returns the path of the mark."""
    mark = tmp_path.with_name(f"{tmp_path.name}-mark")
    spring = f"with open({str(mark)!r}, 'a') as stream: stream.write(__name__ + ' ' + __file__ + '\\n')\n"
    names = {*sys.stdlib_module_names, *THIRD_PARTY, *SPECIAL} - loaded_by_python()
    names = {name for name in names if not name.startswith("_") or name == "__future__"}
    write({f"{name}.py": spring for name in sorted(names)})
    write({f"{name}/__init__.py": spring for name in ("libcst", "rich", "msgspec")})
    write({f"train{number}.py": spring + HAZARD for number in range(2)})
    write({name: dedent(text) for name, text in CONFIGURATION.items()})
    bait = f'#!/bin/sh\necho "$0" >> {mark}\n'
    hook = f"[core]\n\tfsmonitor = echo fsmonitor >> {mark}\n\thooksPath = hooks\n\tpager = echo >> {mark}\n"
    write({".git/config": hook, "hooks/pre-commit": bait, "git": bait})
    for name in ("hooks/pre-commit", "git"):
        Path(name).chmod(0o755)
    return mark


FORMS: Final = [f"--report={form}=../report.{form}" for form in sorted(report.FORMATS)]


def start(*command: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=120)


def check_all(command: Sequence[str], *steps: tuple[int, tuple[str, ...]]) -> None:
    for code, arguments in steps:
        done = start(*command, *arguments)
        assert (done.returncode, b"Traceback" in done.stderr) == (code, False), (arguments, done.stderr)


def test_checked_code_is_not_run(trapped: Path) -> None:
    # modules that `python -m` itself would import from the current directory
    spring = Path("trap.py").read_text()
    write({f"{name}.py": spring for name in ("fsrace_lint", "runpy", "functools", "contextlib", "types")})
    check_all(
        [LINTER],
        (1, ("check", "--statistics", "--verbose", "--show-silenced", *FORMS)),
        (0, ("check", "--write-baseline=known.json")),
        (0, ("check", "--baseline=known.json", "--prune-baseline")),
        (0, ("fix", "--unsafe-fixes")),
        (0, ("check", "--add-noqa", "--profile=strict")),
        (0, ("vendor", "helpers.py")),
        (0, ("explain", "FSR101")),
    )
    assert "exist_ok=True" in Path("train0.py").read_text()
    assert not trapped.exists(), trapped.read_text()


def test_checked_code_is_not_run_by_python_m(trapped: Path) -> None:
    command = [sys.executable, "-m", "fsrace_lint"]
    check_all(command, (1, ("check", *FORMS)), (1, ("fix", "--unsafe-fixes", "--diff")), (0, ("rules",)))
    assert not trapped.exists(), trapped.read_text()


def test_python_m_keeps_entries_of_pythonpath() -> None:
    """The user chooses the directories in PYTHONPATH."""
    write({"msgspec.py": "raise SystemExit('ours')"})
    for options, path, is_taken in ((), ".", True), (("-I",), ".", False), ((), "", False):
        command = [sys.executable, *options, "-m", "fsrace_lint", "check"]
        environment = {**os.environ, "PYTHONPATH": str(Path(path).absolute()) if path else ""}
        done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ("ours" in done.stderr) is is_taken, (options, path, done.stderr)


def test_checked_code_is_not_run_by_flake8(trapped: Path) -> None:
    forks = multiprocessing.get_all_start_methods()[0] == "fork"
    # without fork, Python looks in the current directory for the modules that start flake8's processes
    alone = () if forks else ("env", "PYTHONSAFEPATH=1")
    done = start(*alone, str(BIN / "flake8"), "--select=FSR", "--jobs=2", "train0.py", "train1.py")
    assert (done.returncode, done.stdout.count(b"FSR101")) == (1, 2), done.stderr
    assert not trapped.exists(), trapped.read_text()


def messages(*sent: dict[str, Any]) -> bytes:
    """Encode messages of an editor."""
    bodies = [json.dumps({"jsonrpc": "2.0", **one}).encode() for one in sent]
    return b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)


def test_code_opened_in_an_editor_is_not_run(trapped: Path) -> None:
    directory, file = Path.cwd().as_uri(), Path("train0.py").absolute().as_uri()
    document = {"uri": file, "languageId": "python", "version": 1, "text": Path("train0.py").read_text()}
    pull: dict[str, Any] = {"textDocument": {"diagnostic": {}}}
    requests = messages(
        {"id": 1, "method": "initialize", "params": {"rootUri": directory, "capabilities": pull}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    )
    with subprocess.Popen([LINTER, "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(requests)
        server.stdin.write(
            messages(
                {"id": 2, "method": "textDocument/diagnostic", "params": {"textDocument": {"uri": file}}}
            )
        )
        server.stdin.flush()
        shown = b""
        while b"FSR101" not in shown:
            chunk = os.read(server.stdout.fileno(), 65536)
            assert chunk, shown
            shown += chunk
        server.stdin.write(messages({"id": 3, "method": "shutdown"}, {"method": "exit"}))
    assert server.returncode == 0
    assert not trapped.exists(), trapped.read_text()


def test_trap_detects_an_import(trapped: Path) -> None:
    """Python writes the mark when it imports from the directory."""
    start(sys.executable, "-c", "import click")
    assert str(trapped.parent) in trapped.read_text()


# Output contains no control sequences of the checked code.

TRICKS: Final = (
    "\x1b[2J\x1b]0;title\x07", "\x9b31m", "\x7f\x08\x08", "a\rb\nc", "::error file=a.py::pwned", "%0A%0D::x",
    "a ::set-output name=x::y", "##[error]pwned", "##vso[task.setvariable variable=x]y", "[red]bold[/red]",
    "[x](javascript:alert(1))", "{0} {{1}}", "</script><script>alert(1)</script>", '"><img src=x onerror=y>',
    "]]>", "--><!--", "&lt;&#27;", "\u2028\u2029\x85", "\u202e\u2066\u200b\ufeff", "\u3164\u2800",
    "\ud800\udcff", "\U000e0041", "javascript:alert(1)", "../../../etc/passwd", "file:///etc/passwd",
    "\\x1b", "é😀",
)  # fmt: skip
COMMANDS: Final = re.compile(r"^\s*::\w|##\w*\[", re.MULTILINE)


def steering(text: str) -> set[str]:
    """Return the parts of a text that a terminal or CI log would interpret, or that are invisible."""
    lines = text.removesuffix("\n").split("\n")
    found = {char for line in lines for char in line if unicodedata.category(char)[0] == "C"}
    found |= set(text) & set("\u2028\u2029\u3164\u2800")
    return found | set(COMMANDS.findall(text))


def about(trick: str) -> Outcome:
    """Return an outcome with every field of a report, and a trick in place of each text of the project."""
    place = Place(f"{trick}.py", Span(1, 1, 1, 4))
    one = finding(
        place,
        message=trick,
        function=trick,
        related=(Related(place, trick), Related(Place(trick, Span(7, 1, 7, 2)), trick)),
        witness=Witness((WitnessStep(0, trick, trick), WitnessStep(1, f"a b {trick}")), trick),
        fix=fix(Applicability.SAFE, trick),
    )
    return Outcome(
        (one,),
        (Problem(trick, trick),),
        {"files": 1},
        silenced=(Silenced(place, trick, "mkdir", trick, "guard", trick, place),),
        suppressed=(Suppression(one, "comment", trick),),
        previews={one: report.Preview((report.Edit(Span(1, 1, 1, 1), trick),))},
    )


def shown(form: str, trick: str, *, color: bool = False, width: int = 100) -> str:
    code = (
        trick.encode("utf-8", "replace").decode()
        + " = open('x')  # "
        + trick.encode("utf-8", "replace").decode()
    )
    sources = {f"{trick}.py": source(f"{trick}.py", code)}
    return render(form, about(trick), sources, Options(color=color, width=width, statistics=True))


def terminal(form: str, trick: str, width: int = 100) -> str:
    """Return the output of a text format, which contains no control sequences except colors."""
    plain = shown(form, trick, width=width)
    assert steering(plain) == set()
    colored = shown(form, trick, color=True, width=width)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain
    return plain


def data(trick: str) -> str:
    """Return a trick as JSON output contains it, with lone surrogates escaped."""
    return trick.encode("utf-8", "backslashreplace").decode()


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


@pytest.mark.parametrize("trick", TRICKS, ids=ascii)
class TestReports:
    """The reader of each format gets the trick as data, and the output contains no control sequences."""

    @pytest.mark.parametrize("width", [40, 100])
    def test_full(self, trick: str, width: int) -> None:
        plain = terminal("full", trick, width)
        assert f"--> {visible(trick)}.py:1:1" in plain

    @pytest.mark.parametrize("width", [40, 100])
    def test_trace(self, trick: str, width: int) -> None:
        plain = terminal("trace", trick, width)
        assert f"--> {visible(trick)}.py:1:1" in plain

    def test_concise(self, trick: str) -> None:
        plain = terminal("concise", trick)
        assert f"{visible(trick)}.py:1:1: FSR" in plain

    def test_grouped(self, trick: str) -> None:
        plain = terminal("grouped", trick)
        assert f"{visible(trick)}.py:\n" in plain

    def test_json(self, trick: str) -> None:
        text = shown("json", trick)
        assert text.isascii()
        assert steering(text) == set()
        (one,) = json.loads(text)["findings"]
        assert (one["message"], one["path"], one["function"]) == (
            data(trick),
            f"{data(trick)}.py",
            data(trick),
        )

    def test_gitlab(self, trick: str) -> None:
        text = shown("gitlab", trick)
        assert steering(text) == set()
        (one,) = json.loads(text)
        assert one["location"]["path"] == f"{data(trick)}.py"
        assert visible(trick) in one["description"]

    def test_sarif(self, trick: str) -> None:
        text = shown("sarif", trick)
        assert steering(text) == set()
        (log,) = json.loads(text)["runs"]
        uris = [row["uri"] for row in locations(log)]
        assert len(uris) >= 4
        for uri in uris:
            assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri), "nothing but a path: no scheme, no query"
            assert unquote(uri, errors="surrogateescape" if "\udcff" in trick else "strict")
        texts = [
            one["text"] for row in dicts(log) for key, one in row.items() if key in {"message", "description"}
        ]
        assert len(texts) >= 8
        for message in texts:
            assert not re.search(r"(?<!\\)\]\(", message), "no link"
            assert not re.search(r"(?<!\{)\{\d\}", message), "no place of an argument"

    def test_junit(self, trick: str) -> None:
        text = shown("junit", trick)
        assert steering(text) == set()
        suites = ET.fromstring(text)
        assert {one.tag for one in suites.iter()} == {
            "testsuites",
            "testsuite",
            "testcase",
            "failure",
            "error",
        }
        failure = suites.find(".//failure")
        assert failure is not None
        assert failure.get("message") == visible(trick)

    def test_html(self, trick: str) -> None:
        text = shown("html", trick)
        assert text.isascii()
        assert steering(text.partition("</style>")[2]) == set()
        page = parsed(text)
        assert len(elements(page, "script")) == 1
        assert elements(page, "img") == []
        attributes = {name: value for element in page.iter() for name, value in element.attrib.items()}
        assert not [name for name in attributes if name.startswith("on")]
        assert {link.get("href") for link in elements(page, "a")} == {"#findings", "#FSR101", "#f1"}
        assert visible(trick).split() == text_of(elements(page, "h3")[0]).removesuffix(".py").split()

    def test_github(self, trick: str) -> None:
        first, second = shown("github", trick).removesuffix("\n").split("\n")
        read = [re.fullmatch(r"::error ([^:]*)::(.*)", line) for line in (first, second)]
        for one in read:
            assert one is not None
            assert steering(one[0].removeprefix("::")) == set()
        assert read[0] is not None
        properties = dict(item.split("=", 1) for item in read[0][1].split(","))
        assert set(properties) == {"file", "line", "col", "endLine", "endColumn", "title"}
        assert visible(decoded(properties["file"])) == f"{visible(trick)}.py"
        assert visible(decoded(read[0][2])) == visible(f"{trick}\nOutcome: {trick}")

    def test_diff_on_a_terminal(self, trick: str) -> None:
        code = data(trick).replace("\n", "").encode()
        diff = unified("a.py", code, code + b" # new", "utf-8")
        for color in (False, True):
            text = re.sub(r"\x1b\[[0-9;]*m", "", for_the_eyes(diff, color=color))
            assert {char for char in steering(text) if char != "\t"} == set()
            assert "# new" in text


def decoded(text: str) -> str:
    """Decode a value of a workflow command as GitHub does."""
    for code, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from dicts(item)


def locations(value: Any) -> Iterator[dict[str, Any]]:
    yield from (one for one in dicts(value) if "uri" in one)


def test_every_format_is_tested() -> None:
    tried = {name.removeprefix("test_") for name in vars(TestReports) if name.startswith("test_")}
    assert set(report.FORMATS) <= tried


HOSTILE_CODE: Final = """
import os
import torch.distributed as dist

dist.init_process_group()
ㅤ = "::error::\x1b[2J ##vso[task.complete] \u202e [red]"


def prepare(na\u200bme):  # noqa: FSR201  \x1b[2J\u202e
    if not os.path.exists(f"\x1b]0;t\x07 ::error::{name} ##[error]\u202e"):
        os.mkdir(f"\x1b]0;t\x07 ::error::{name} ##[error]\u202e")
    if not os.path.exists(ㅤ):
        os.mkdir(ㅤ)  # noqa: FSR101 because \x1b[2J ::error::x
""".replace("na\u200bme", "name")
BROKEN: Final = "import os\n\x1b[2J::error::x(\u202e\n"
HOSTILE_NAMES: Final = ("::error::\x1b[2J.py", "##vso[x]\u202e\n.py", "[red]%0A\x9b.py")
HOSTILE_FOLDER: Final = "::warning::a\x1b[31m"
HOSTILE_SETTINGS: Final = """
[tool.fsrace-lint]
exclude = ["\\u001b[2J::error::", "left\\u202eout"]
shared-paths = ["/mnt/\\u001b[2J"]
"""
MISTAKES: Final = (
    '[tool.fsrace-lint]\n"\\u001b[2J::error::\\u202e" = 1\n',
    '[tool.fsrace-lint]\nselect = ["\\u001b[2J"]\n',
    '[tool.fsrace-lint]\nbaseline = "\\u001b[2J"\n',
    '[[tool.fsrace-lint.catalog.guard]]\nnames = ["\\u001b[2J"]\nscope = "::error::\\u001b[2J"\n',
    "[tool.fsrace-lint]\n\x1b[2J = 1\n",
)


@pytest.fixture
def hostile(here: Path) -> None:
    """A project with control sequences in every text that output can contain."""
    write({f"{HOSTILE_FOLDER}/{name}": HOSTILE_CODE for name in HOSTILE_NAMES})
    write(dict.fromkeys(HOSTILE_NAMES, HOSTILE_CODE) | {"broken\x1b[2J.py": BROKEN, "left\u202eout/a.py": ""})
    Path(os.fsdecode(b"\xff\xfe.py")).write_text(HOSTILE_CODE, encoding="utf-8")


@NEEDS_POSIX
@pytest.mark.usefixtures("hostile")
class TestCommands:
    """Complete commands, including their standard error."""

    @pytest.mark.parametrize("form", sorted({*report.FORMATS} - {"github", "html"}))
    def test_check(self, form: str) -> None:
        options = ("--statistics", "--verbose", "--profile=strict", "--extend-exclude=left*")
        listing = ("--show-silenced", "--show-suppressed") if form in {"full", "trace", "json"} else ()
        result = run("check", f"--format={form}", *options, *listing, code=1)
        assert steering(result.stdout) == set()
        assert steering(result.stderr) == set()
        assert "FSR101" in result.stdout
        assert "skipped: left\\u202eout" in result.stderr

    @pytest.mark.parametrize("unsafe", [(), ("--unsafe-fixes",)])
    def test_fix(self, unsafe: tuple[str, ...]) -> None:
        result = run("fix", "--verbose", *unsafe, code=1)
        assert steering(result.stdout + result.stderr) == set()
        assert "Fixed" in result.stderr

    def test_baseline(self) -> None:
        assert steering(run("check", "--write-baseline=known\x1b.json", code=0).stderr) == set()
        for name in HOSTILE_NAMES:
            Path(name).write_text("")
        for options in ((), ("--prune-baseline",)):
            result = run("check", "--baseline=known\x1b.json", *options, code=1)
            assert steering(result.stdout + result.stderr) == set()
            assert "baseline" in result.stderr

    def test_add_noqa(self) -> None:
        result = run("check", "--add-noqa", "--profile=strict", code=1)
        assert steering(result.stdout + result.stderr) == set()
        assert "not suppressed" in result.stderr

    @pytest.mark.parametrize("text", MISTAKES)
    def test_invalid_settings(self, text: str) -> None:
        write({"pyproject.toml": text})
        for arguments in (("check",), ("check", "--show-settings"), ("fix",)):
            result = run(*arguments, code=2)
            assert steering(result.stdout + result.stderr) == set()
            assert "pyproject.toml" in result.stderr or "baseline" in result.stderr
        is_unused = "baseline" in text or "catalog" in text  # the cache needs neither
        result = run("cache", "info", code=0 if is_unused else 2)
        assert steering(result.stdout + result.stderr) == set()

    def test_show_settings(self) -> None:
        write({"pyproject.toml": HOSTILE_SETTINGS})
        result = run("check", "--show-settings", code=0)
        assert steering(result.stdout + result.stderr) == set()
        assert "\\u001b" in result.stdout

    @pytest.mark.parametrize("trick", ["\x1b[2J", "\x9b", "\u202e ::error::x"])
    def test_usage_errors(self, trick: str) -> None:
        """A shell expands `*` to file names, which are then arguments."""
        for arguments in ((f"--{trick}",), ("check", f"--{trick}"), (trick,), ("vendor", "a", trick)):
            result = run(*arguments, code=2)
            assert steering(result.stdout + result.stderr) == set()
            assert "\\" in result.stderr

    def test_missing_paths(self) -> None:
        for arguments in (
            ("check", "gone\x1b[2J"),
            ("check", "--baseline=\x1b[2J"),
            ("vendor", "gone\x1b/x"),
        ):
            result = run(*arguments, code=2)
            assert steering(result.stdout + result.stderr) == set()
            assert "\\x1b" in result.stderr

    def test_flake8(self) -> None:
        """flake8 itself prints the file name, so the file has a plain name."""
        Path("plain.py").write_text(HOSTILE_CODE, encoding="utf-8")
        done = start(str(BIN / "flake8"), "--select=FSR", "plain.py")
        assert steering(done.stdout.decode() + done.stderr.decode()) == set()
        assert b"FSR101" in done.stdout


@NEEDS_POSIX
# pygls calls `asyncio.iscoroutinefunction`, which is deprecated since Python 3.14
@pytest.mark.filterwarnings("ignore:.*iscoroutinefunction.*:DeprecationWarning")
def test_editor_messages() -> None:
    code, settings = Path("a.py").absolute(), Path("pyproject.toml").absolute()

    def spoil() -> None:
        settings.write_text(MISTAKES[0])

    async def story(editor: Editor) -> None:
        name = editor.open(code, HOSTILE_CODE)
        for one in await editor.diagnostics(name):
            related = [item.message for item in one.related_information or []]
            assert steering("".join([one.message, *related])) == set()
        assert await editor.codes(name)
        spoil()
        editor.changed_on_disk(settings)
        (message,) = await editor.until(lambda: editor.messages)
        assert "unknown key" in message
        assert steering(message) == set()

    write({"a.py": HOSTILE_CODE})
    session([Path.cwd()], story)


@NEEDS_POSIX
def test_uncolored_diff_on_a_terminal_is_escaped() -> None:
    write({"a.py": f"x = '\x1b[2J\x9b'\n{HAZARD}"})
    shows, stream = os.openpty()
    command = [LINTER, "fix", "--diff", "--no-color"]
    done = subprocess.run(command, stdout=stream, stderr=subprocess.DEVNULL, check=False)
    os.close(stream)
    text = read_terminal(shows).decode().replace("\r\n", "\n")
    assert done.returncode == 1
    assert steering(text) == set()
    assert "x = '\\x1b[2J\\x9b'" in text
    piped = run("fix", "--diff", code=1)
    assert b"x = '\x1b[2J\xc2\x9b'" in piped.stdout_bytes, "a patch is data"


# Files that other users wrote are not trusted.


def keys() -> list[Path]:
    return sorted(Path(os.environ["XDG_STATE_HOME"]).rglob("*"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory without a key."""
    directory = tmp_path.with_name(f"{tmp_path.name}-home")
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))
    return directory


def check(*options: str, code: int) -> Result:
    return run("check", *options, "--verbose", "--statistics", "--format=json", code=code)


@pytest.fixture
def parsed_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are parsed."""
    seen: list[str] = []
    real = extraction.extract

    def extract(read: Source) -> Any:
        seen.append(read.relative)
        return real(read)

    monkeypatch.setattr(extraction, "extract", extract)
    monkeypatch.setattr(parallel_extraction, "extract", extract)
    return seen


def repeated(result: Result) -> set[str]:
    """Return the phases that were run although their results were in the cache."""
    return {"extract", "query"} & set(json.loads(result.stdout)["statistics"]["seconds"])


ALL: Final = {"extract", "query"}


@pytest.mark.usefixtures("home")
class TestPlantedCaches:
    def test_cache_signed_with_another_key_is_ignored(self, home: Path) -> None:
        """The cache was written by this program for these files, but its key is gone."""
        write({"a.py": HAZARD})
        check(code=1)
        assert home.is_dir()
        shutil.rmtree(home)
        sealing.read_key.cache_clear()  # as in another process
        result = check(code=1)
        assert "damaged or was signed with another key" in result.stderr
        assert repeated(result) == ALL
        again = check(code=1)
        assert "signed with another key" not in again.stderr
        assert repeated(again) == set()

    def test_key_is_readable_only_by_the_user(self, home: Path) -> None:
        write({"a.py": HAZARD})
        check(code=1)
        (key,) = [path for path in keys() if path.is_file()]
        assert key == home / "fsrace-lint" / "cache.key"
        assert key.stat().st_size == 32
        if os.name == "posix":
            assert stat.S_IMODE(key.stat().st_mode) == 0o600
            assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700

    def test_all_processes_use_the_first_key(self, home: Path) -> None:
        one = sealing.made_key(str(home / "fsrace-lint"))
        sealing.read_key.cache_clear()  # as in another process
        other = sealing.made_key(str(home / "fsrace-lint"))
        assert one == other
        assert [path.name for path in keys() if path.is_file()] == ["cache.key"]

    def test_first_key_is_used_without_hard_links(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def link(*_: object) -> None:
            raise PermissionError

        monkeypatch.setattr(os, "link", link)
        one = sealing.made_key(str(home / "fsrace-lint"))
        sealing.read_key.cache_clear()
        assert one == sealing.made_key(str(home / "fsrace-lint"))

    def test_key_in_the_environment_signs_the_cache(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write({"a.py": HAZARD})
        monkeypatch.setenv("FSRACE_CACHE_KEY", "secret")
        check(code=1)
        assert not home.exists()
        assert repeated(check(code=1)) == set()
        monkeypatch.setenv("FSRACE_CACHE_KEY", "another")
        assert repeated(check(code=1)) == ALL

    def test_unwritable_home_disables_the_cache(self, home: Path) -> None:
        home.write_text("")
        write({"a.py": HAZARD})
        for _ in range(2):
            result = check(code=1)
            assert "was not written: cannot create the cache key in" in result.stderr
            assert repeated(result) == ALL
        assert not Path(".fsrace_cache").exists()

    @NEEDS_POSIX
    @pytest.mark.parametrize("kind", ["link", "short", "pipe", "directory"])
    def test_invalid_key_is_not_used(self, home: Path, kind: str) -> None:
        key = home / "fsrace-lint" / "cache.key"
        key.parent.mkdir(parents=True)
        real = key.with_name("real")
        real.write_bytes(bytes(32))
        if kind == "link":
            key.symlink_to(real)
        elif kind == "short":
            key.write_bytes(bytes(31))
        elif kind == "pipe":
            os.mkfifo(key)
        else:
            key.mkdir()
        write({"a.py": HAZARD})
        assert "was not written: cannot create the cache key in" in check(code=1).stderr
        with pytest.raises(OSError, match="cannot create the cache key in"):
            sealing.seal(b"")

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners")
    def test_root_writes_no_key_for_another_user(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        home.mkdir()
        real = home.stat()
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(os, "stat", lambda *_, **__: os.stat_result((*real[:4], 1000, *real[5:])))
        with pytest.raises(OSError, match="belongs to another user"):
            sealing.seal(b"")

    def test_changed_byte_invalidates_the_cache(self, parsed_files: list[str]) -> None:
        """This includes facts, which the sealed index authenticates."""
        write({"a.py": HAZARD})
        check(code=1)
        (file,) = Path(".fsrace_cache").glob("facts*")
        whole = file.read_bytes()
        version = store.Version.of()
        assert version is not None
        index = store.PackedFacts(store.Folder(file.parent), version, file.name).index
        heads = range(index.offset, index.offset + index.length)  # not used if all facts are read
        for at in (at for at in range(90, len(whole), 40) if at not in heads):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            for results in Path(".fsrace_cache").glob("results*"):
                results.unlink()
            parsed_files.clear()
            check(code=1)
            assert parsed_files == ["a.py"], at

    @pytest.mark.parametrize("kind", ["facts", "results"])
    @pytest.mark.parametrize("claimed", [2**62, 2**26, 0])
    def test_oversized_cache_file_is_not_read(self, kind: str, claimed: int) -> None:
        """A header that claims a large size, followed by a sparse file: the size that is read is limited."""
        write({"a.py": HAZARD})
        check(code=1)
        file = next(path for path in Path(".fsrace_cache").iterdir() if path.name.startswith(kind))
        head = bytearray(file.read_bytes()[:116])
        if kind == "facts":
            head[48:64] = (96).to_bytes(8, "little") + claimed.to_bytes(8, "little")
        with file.open("wb") as stream:
            stream.write(head)
            stream.truncate(400 * 1024 * 1024)
        check(code=1)
        assert file.stat().st_size < 100_000


def make_a_key(root: Path, _: int) -> str:
    sealing.read_key.cache_clear()
    return sealing.made_key(str(root / "state" / "fsrace-lint")).hex()


def is_whole(root: Path) -> None:
    """The key is complete or does not exist."""
    key = root / "state" / "fsrace-lint" / "cache.key"
    assert not key.exists() or key.stat().st_size == 32


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the explorer needs fork")
@pytest.mark.parametrize("options", [{"filesystem": "nfs"}, {"crash": "kill"}], ids=["nfs", "kill"])
def test_two_hosts_create_one_key_in_a_shared_home(options: dict[str, Any]) -> None:
    explore(
        make_a_key, agree=True, check=is_whole, preemptions=2, max_schedules=60, samples=15, **options
    ).assert_ok()


BASELINE_HEAD: Final = '{"format": "fsrace-lint baseline", "version": 1, '
ENTRY: Final = '{"path": "a.py", "code": "FSR101", "function": "<module>", "text": "0123456789abcdef"}'
STEERING_ENTRY: Final = ENTRY.replace("<module>", "::error::##[x]\\u001b[2J\\u202e")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 200_000, 2),
        (BASELINE_HEAD + '"x": ' + "[" * 200_000, 2),
        ('{"x": ' * 100_000, 2),
        (BASELINE_HEAD + '"findings": ' + "[" * 200_000, 2),
        (BASELINE_HEAD + '"findings": {}}', 2),
        (BASELINE_HEAD + '"findings": [1e400]}', 2),
        (BASELINE_HEAD + f'"findings": [{ENTRY[:-1]}, "count": {10**400}}}]}}', 2),
        (BASELINE_HEAD + '"findings": [], "findings": null}', 2),
        (BASELINE_HEAD + f'"findings": [{", ".join([ENTRY] * 100_000)}]}}', 1),
        (BASELINE_HEAD + f'"findings": [{ENTRY.replace("a.py", "a" * 10**6)}]}}', 1),
        (BASELINE_HEAD + f'"findings": [{ENTRY.replace("a.py", "/etc/passwd")}]}}', 1),
        (BASELINE_HEAD + f'"root": "\\u001b[2J::error::", "findings": [{ENTRY}]}}', 2),
        (BASELINE_HEAD + f'"findings": [{STEERING_ENTRY}]}}', 1),
        ("\0" * 1000, 2),
        ("\ufeff{}", 2),
    ],
    ids=[
        "lists", "skipped", "objects", "findings", "object", "number", "count", "twice", "many", "long",
        "elsewhere", "root", "steering", "nul", "bom",
    ],
)  # fmt: skip
def test_malicious_baseline_causes_no_internal_error(text: str, code: int) -> None:
    write({"a.py": HAZARD, "known.json": text})
    result = run("check", "--baseline=known.json", "--no-cache", code=code)
    assert steering(result.stdout + result.stderr) == set()
    assert "internal error" not in result.stderr
    assert (code == 1) == ("FSR101" in result.stdout)
    if code == 1:
        gone = run("check", "--baseline=known.json", "--prune-baseline", "--no-cache", code=1)
        # for a path outside the project, it is unknown whether the finding still exists
        assert ("was removed from the baseline" in gone.stderr) == ("/etc/passwd" not in text)
        assert steering(gone.stderr) == set()


@NEEDS_POSIX
@pytest.mark.parametrize("names", [("pyproject.toml",), (".gitignore", "b.py")], ids=" ".join)
@pytest.mark.parametrize("kind", ["pipe", "endless", "huge"])
def test_endless_input_files_are_not_read(names: tuple[str, ...], kind: str) -> None:
    """The check neither waits for the file nor reads it completely."""
    write({"a.py": HAZARD})
    for name in names:
        Path(name).unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(name)
        elif kind == "endless":
            Path(name).symlink_to("/dev/zero")
        else:
            with Path(name).open("wb") as stream:
                stream.truncate(100 * 1024**3)
    limited = 'ulimit -v 4000000; exec timeout 100 "$0" check --no-cache'
    done = subprocess.run(["/bin/sh", "-c", limited, LINTER], capture_output=True, check=False)
    is_needed = "pyproject.toml" in names
    assert done.returncode == (2 if is_needed else 1), done.stderr
    assert b"internal error" not in done.stderr
    assert is_needed == (b"FSR101" not in done.stdout)


# Nothing is written outside the project.


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory next to the project, with a file that must not change."""
    directory = tmp_path.with_name(f"{tmp_path.name}-outside")
    directory.mkdir()
    (directory / "precious").write_text("precious")
    return directory


WRITING: Final = (
    ("check", "--output-file={}"),
    ("check", "--report=json={}"),
    ("check", "--write-baseline={}"),
    ("vendor", "{}"),
    ("vendor", "--force", "{}"),
)


@NEEDS_POSIX
@pytest.mark.parametrize("command", WRITING, ids=" ".join)
class TestLinks:
    @pytest.mark.parametrize("kind", ["precious", "dangling", "directory", "chain", "git"])
    def test_link_out_of_the_project_is_not_followed(
        self, command: tuple[str, ...], kind: str, outside: Path
    ) -> None:
        write({"a.py": HAZARD, ".git/hooks/pre-push": "precious"})
        target = {"git": Path(".git/hooks/pre-push"), "directory": outside}.get(kind, outside / kind)
        link = Path("link")
        if kind == "chain":
            Path("middle").symlink_to(outside / "precious")
            target = Path("middle")
        link.symlink_to(target)
        named = "link/new" if kind == "directory" else "link"
        for name in (named, str(Path(named).absolute())):
            result = CliRunner().invoke(main.main, [part.format(name) for part in command])
            # a file that fsrace-lint did not write is refused before the link is detected
            is_left = "--write" in command[1] or command == ("vendor", "{}")
            assert result.exit_code in ({1, 2} if is_left else {2})
            assert is_left or "goes through a symbolic link to " in result.stderr
        assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("precious", "precious")]
        assert Path(".git/hooks/pre-push").read_text() == "precious"
        assert link.is_symlink()

    def test_link_inside_the_project_is_followed(self, command: tuple[str, ...]) -> None:
        write({"a.py": HAZARD, "real/x": ""})
        Path("link").symlink_to("real")
        Path("real/named").symlink_to("there")
        CliRunner().invoke(main.main, [part.format("link/named") for part in command])
        assert Path("real/there").stat().st_size > 0
        assert Path("link").is_symlink()
        assert Path("real/named").is_symlink()

    def test_link_cycle_is_an_error(self, command: tuple[str, ...]) -> None:
        write({"a.py": HAZARD})
        Path("one").symlink_to("two")
        Path("two").symlink_to("one")
        result = run(*(part.format("one") for part in command), code=2)
        assert "internal error" not in result.stderr

    def test_explicit_path_outside_the_project_is_written(
        self, command: tuple[str, ...], outside: Path
    ) -> None:
        write({"a.py": HAZARD})
        CliRunner().invoke(main.main, [part.format(outside / "new") for part in command])
        assert (outside / "new").stat().st_size > 0


@NEEDS_POSIX
def test_link_created_during_the_write_is_not_followed(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is checked again before the rename, which could only replace the link itself."""
    write({"a.py": HAZARD})
    real = os.fsync

    def plant(descriptor: int) -> None:
        if not Path("report").is_symlink():
            Path("report").symlink_to(outside / "precious")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", plant)
    result = run("check", "--output-file=report", code=2)
    assert "cannot write report: the file is not a regular file" in result.stderr
    assert (outside / "precious").read_text() == "precious"


@NEEDS_POSIX
class TestStreams:
    @pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/2"])
    def test_report_is_appended_to_a_redirected_stream(self, name: str) -> None:
        """A shell redirection with `>>` keeps the previous content of the file."""
        if not Path(name).exists():
            pytest.skip("this system has no such name")
        write({"a.py": HAZARD, "log": "before\n"})
        number = name[-1:] if name[-1:].isdigit() else "12"["err" in name]
        line = f'"$0" check --silent --output-file={name} {number}>>log'
        done = subprocess.run(["/bin/sh", "-c", line, LINTER], capture_output=True, check=False)
        assert done.returncode == 1, done.stderr
        held = Path("log").read_text()
        assert held.startswith("before\na.py:4:5: FSR101 ")

    def test_report_is_written_to_a_pipe(self) -> None:
        write({"a.py": HAZARD})
        os.mkfifo("pipe")
        with subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE) as reader:
            run("check", "--output-file=pipe", code=1)
            output, _ = reader.communicate(timeout=60)
        assert output.startswith(b"warning[FSR101]: ")
        assert stat.S_ISFIFO(os.lstat("pipe").st_mode)

    def test_closed_stream_is_an_error(self) -> None:
        write({"a.py": HAZARD})
        result = run("check", "--output-file=/dev/fd/987", code=2)
        assert result.stderr == "Error: cannot write /dev/fd/987: Bad file descriptor\n"
