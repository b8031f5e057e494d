"""Settings in pyproject.toml: valid and invalid values, and which rules are enabled for which files."""

from __future__ import annotations

import fnmatch
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support import ROOT

from fsrace_lint import catalog
from fsrace_lint.config.settings import (
    CONFIDENCES,
    SEVERITIES,
    Settings,
    load,
    normalize_selectors,
    with_overrides,
)
from fsrace_lint.config.tables import KEYS, ProgramSettings
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.files import globs as patterns
from fsrace_lint.files.globs import Glob, matcher

if TYPE_CHECKING:
    from fsrace_lint.config.settings import Confidence, Severity

RULES = {
    "FSR001": "unreadable-source",
    "FSR003": "unused-suppression",
    "FSR101": "check-then-mkdir",
    "FSR102": "check-then-create",
    "FSR201": "unguarded-write",
}


def write(directory: Path, table: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pyproject.toml").write_text(f"[tool.fsrace-lint]\n{table}\n", encoding="utf-8")
    return directory


def rejection(directory: Path, table: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(write(directory, table), RULES)
    message = str(caught.value)
    assert message.startswith(str(directory / "pyproject.toml"))
    return message


def test_defaults_without_pyproject(tmp_path: Path) -> None:
    assert load(tmp_path, RULES) == Settings(root=tmp_path)


def test_defaults_without_a_fsrace_lint_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 3\n")
    assert load(tmp_path, RULES) == Settings(root=tmp_path)


def test_every_key_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    write(
        tmp_path,
        """
        profile = "strict"
        select = ["FSR1", "unguarded-write"]
        extend-select = ["fsr003"]
        ignore = ["check-then-create"]
        exclude = ["generated/"]
        extend-exclude = ["*_pb2.py"]
        per-file-ignores = { "tools/*" = ["ALL"], "setup.py" = ["FSR201", "FSR1"] }
        root = "."
        helper-module = "package.fs_safe"
        helpers = { lock = "package.files.Lock", is-main-process = "package.dist.leads" }
        include-tests = true
        respect-gitignore = false
        filesystem = "shared"
        shared-paths = ["/mnt/nfs", "$WORK"]
        local-paths = ["/nvme/*", "node_dir"]
        min-severity = "note"
        min-confidence = "medium"
        fail-on = "error"

        [[tool.fsrace-lint.programs]]
        file = "train.py"
        processes = 1

        [[tool.fsrace-lint.programs]]
        module = "package.serve"
        role = "worker"
        launcher = "our-scheduler"
        """,
    )
    loaded = load(tmp_path, RULES)
    assert loaded == Settings(
        root=tmp_path,
        profile="strict",
        select=("FSR1", "FSR201"),
        extend_select=("FSR003",),
        ignore=("FSR102",),
        exclude=("generated/",),
        extend_exclude=("*_pb2.py",),
        per_file_ignores=(("tools/*", ("FSR",)), ("setup.py", ("FSR201", "FSR1"))),
        helper_module="package.fs_safe",
        helpers=(("is-main-process", "package.dist.leads"), ("lock", "package.files.Lock")),
        include_tests=True,
        respect_gitignore=False,
        filesystem="shared",
        shared_paths=("/mnt/nfs", "$WORK"),
        local_paths=("/nvme/*", "node_dir"),
        min_severity="note",
        min_confidence="medium",
        fail_on="error",
        programs=(
            ProgramSettings(file="train.py", processes=1),
            ProgramSettings(module="package.serve", role="worker", launcher="our-scheduler"),
        ),
        programs_file=str(tmp_path / "pyproject.toml"),
    )


def test_settings_page_documents_every_key() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [key for key in KEYS if f"\n### `{key}`\n" not in page] == []


@pytest.mark.parametrize(
    ("table", "expected_message"),
    [
        ('exlude = ["x"]', "unknown key `exlude` in [tool.fsrace-lint]; did you mean `exclude`?"),
        (
            "extend_select = []",
            "unknown key `extend_select` in [tool.fsrace-lint]; did you mean `extend-select`?",
        ),
        ("zzz = 1", "unknown key `zzz` in [tool.fsrace-lint]"),
        ('select = "FSR101"', "`select`: expected array, found string"),
        ("ignore = [1]", "`ignore[0]`: expected string, found integer"),
        ("include-tests = 1", "`include-tests`: expected boolean, found integer"),
        ("profile = true", "`profile`: expected string, found boolean"),
        ("helper-module = 1979-05-27", "`helper-module`: expected string, found date"),
        ('per-file-ignores = ["x"]', "`per-file-ignores`: expected table, found array"),
        ('per-file-ignores = { "x" = "FSR1" }', "`per-file-ignores`: expected array, found string"),
        ('profile = "strickt"', "`profile`: unknown profile `strickt`; did you mean `strict`?"),
        ('profile = "loud"', "`profile`: unknown profile `loud`; expected one of `default`, `strict`"),
        ('filesystem = "share"', "`filesystem`: unknown filesystem `share`; did you mean `shared`?"),
        (
            'filesystem = "nfs"',
            "`filesystem`: unknown filesystem `nfs`; expected one of `auto`, `shared`, `local`",
        ),
        ("filesystem = 1", "`filesystem`: expected string, found integer"),
        ('shared-paths = "/mnt"', "`shared-paths`: expected array, found string"),
        ('shared-paths = [""]', "`shared-paths`: `` is not a directory, a glob such as"),
        ('local-paths = ["/"]', "`local-paths`: `/` is not a directory, a glob such as"),
        ('local-paths = ["../here"]', "`local-paths`: `../here` is not a directory, a glob such as"),
        (
            'shared-paths = ["/a", "/b"]\nlocal-paths = ["/b"]',
            "`local-paths`: `/b` is also in `shared-paths`",
        ),
        (
            'select = ["check-then-mkdirs"]',
            "`select`: unknown rule `check-then-mkdirs`; did you mean `check-then-mkdir`?",
        ),
        ('ignore = ["FSR110"]', "`ignore`: unknown rule `FSR110`; did you mean `FSR10"),
        ('extend-select = ["E501"]', "`extend-select`: unknown rule `E501`"),
        ('per-file-ignores = { "x" = ["FSR9"] }', "`per-file-ignores.x`: unknown rule `FSR9`"),
        ('exclude = [""]', "`exclude`: `` is an empty pattern"),
        ('extend-exclude = ["a[z-a]"]', "`extend-exclude`: `a[z-a]` is a malformed pattern"),
        ('per-file-ignores = { "/" = [] }', "`per-file-ignores`: `/` is an empty pattern"),
        ('root = "src"', "`root`: `src` is not the directory of this file, or one above it"),
        ('root = "../other"', "`root`: `../other` is not the directory of this file, or one above it"),
        ('root = "a\\u0000b"', "is not the directory of this file, or one above it"),
        ('extend = "nowhere.toml"', "`extend`: `nowhere.toml` is not an existing file"),
        ('extend = "."', "`extend`: `.` is not an existing file"),
        ('extend = "a\\u0000b"', "is not an existing file"),
        ('extend = "pyproject.toml"', "pyproject.toml extends this file"),
        ('helper-module = "a/b.py"', "`helper-module`: `a/b.py` is not a dotted module name"),
        ('helper-module = "a..b"', "`helper-module`: `a..b` is not a dotted module name"),
        ('helper-module = "a.class"', "`helper-module`: `a.class` is not a dotted module name"),
        ('helper-module = ""', "`helper-module`: `` is not a dotted module name"),
        (
            'helpers = { barier = "a.b" }',
            "unknown key `barier` in [tool.fsrace-lint.helpers]; did you mean `barrier`?",
        ),
        ('helpers = ["a.b"]', "`helpers`: expected table, found array"),
        ("helpers = { barrier = 1 }", "`helpers.barrier`: expected string, found integer"),
        (
            'helpers = { barrier = "wait" }',
            "`helpers.barrier`: `wait` is not the dotted name of a function in a module",
        ),
        (
            'helpers = { ensure-dir = "a.b()" }',
            "`helpers.ensure-dir`: `a.b()` is not the dotted name of a function in a module",
        ),
        ('min-severity = "warn"', "`min-severity`: unknown min-severity `warn`"),
        ('min-severity = "warnings"', "unknown min-severity `warnings`; did you mean `warning`?"),
        ("min-severity = 1", "`min-severity`: expected string, found integer"),
        (
            'min-confidence = "sure"',
            "unknown min-confidence `sure`; expected one of `high`, `medium`, `low`",
        ),
        ("fail-on = true", "`fail-on`: expected string, found boolean"),
        ('fail-on = "high"', "unknown fail-on `high`; expected one of `error`, `warning`, `note`"),
        ('programs = "train.py"', "`programs`: expected array, found string"),
        ('programs = ["train.py"]', "`programs[0]`: expected table, found string"),
        ("programs = [{}]", "`programs[0]`: a program needs exactly one of `file`, `module`, and `command`"),
        (
            'programs = [{ module = "a" }, { module = "a", command = "b" }]',
            "and `command`, found `module` and `command`",
        ),
        (
            'programs = [{ module = "a", process = 1 }]',
            "unknown key `process` in [[tool.fsrace-lint.programs]]; did you mean `processes`?",
        ),
        ('programs = [{ module = "a", processes = 0 }]', "`programs[0].processes`: expected integer >= 1"),
        (
            'programs = [{ module = "a", processes = "8" }]',
            "`programs[0].processes`: expected integer, found string",
        ),
        (
            'programs = [{ module = "a", processes = true }]',
            "`programs[0].processes`: expected integer, found boolean",
        ),
        ("programs = [{ file = 1 }]", "`programs[0].file`: expected string, found integer"),
        (
            'programs = [{ module = "a", role = "ranks" }]',
            "`programs[0].role`: unknown role `ranks`; did you mean `rank`?",
        ),
        (
            'programs = [{ module = "a", role = "x" }]',
            "unknown role `x`; expected one of `rank`, `worker`",
        ),
        (
            'programs = [{ file = "nowhere.py" }]',
            "`programs[0].file`: `nowhere.py` is not a file below the directory of this file",
        ),
        ('programs = [{ file = "/etc/passwd" }]', "is not a file below the directory of this file"),
        ('programs = [{ file = "../x.py" }]', "is not a file below the directory of this file"),
        ('programs = [{ file = "" }]', "`` is not a file below the directory of this file"),
        ('programs = [{ file = "a\\u0000b" }]', "is not a file below the directory of this file"),
        (
            'programs = [{ module = "a/b.py" }]',
            "`programs[0].module`: `a/b.py` is not a dotted module name",
        ),
        (
            'programs = [{ command = "run it" }]',
            "`programs[0].command`: `run it` is not the name of a command",
        ),
        ("catalog = []", "`catalog`: must be a table"),
        ('catalog = ""', "`catalog`: must be a table"),
        (
            "catalog.guard = 1979-05-27",
            "`catalog.guard`: expected a string, boolean, array, or table, found date",
        ),
        ("[[tool.fsrace-lint.catalog.guard]]\nscope = 07:32:00", "`catalog.guard[0].scope`: "),
        ("catalog.guard = [{ names = ['a', 1979-05-27T07:32:00Z] }]", "`catalog.guard[0].names[1]`: "),
        ("catalog.guard = [{}, { scope = nan }]", "`catalog.guard[1].scope`: "),
        (f"catalog{'.a' * 500} = 1", "`catalog`: nested too deeply"),
        (f"catalog.a = {'[' * 50}{']' * 50}", "`catalog`: nested too deeply"),
    ],
)
def test_invalid_setting_names_the_problem(tmp_path: Path, table: str, expected_message: str) -> None:
    assert expected_message in rejection(tmp_path, table)


@pytest.mark.parametrize(
    ("data", "expected_message"),
    [
        (b"[tool.fsrace-lint]\n\nselect = [\n", ": not valid TOML"),
        (b"a = 1\na = 2\n", ":2: not valid TOML"),
        (b"# fine\nname = '\xe9'\n", ":2: not encoded as UTF-8"),
        (b"a = " + b"[" * 20000, ": not valid TOML"),
        (b"tool = 3\n", ": `tool`: expected a table, found int"),
        (b"tool.fsrace-lint = []\n", ": `tool.fsrace-lint`: expected a table, found list"),
    ],
)
def test_unparsable_pyproject_names_the_file(tmp_path: Path, data: bytes, expected_message: str) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_bytes(data)
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, RULES)
    assert str(caught.value).startswith(str(file))
    assert expected_message in str(caught.value)


def test_unreadable_pyproject_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot read the file: "):
        load(tmp_path, RULES)


@pytest.mark.parametrize(
    ("given_selectors", "expected"),
    [
        (["ALL"], ("FSR",)),
        (["all", "fsr"], ("FSR",)),
        (["fsr10", "FSR101"], ("FSR10", "FSR101")),
        (["Check-Then-Mkdir"], ("FSR101",)),
        (["FSR101, FSR2", " FSR101 "], ("FSR101", "FSR2")),
        (["", ","], ()),
    ],
)
def test_selectors_are_normalized_to_code_prefixes(
    given_selectors: list[str], expected: tuple[str, ...]
) -> None:
    assert normalize_selectors(given_selectors, RULES, origin="--select") == expected


@pytest.mark.parametrize("selector", ["F", "FS", "FSR1011", "FSR9", "mkdir", "E501", "FSR101x"])
def test_unknown_selector_error_names_its_origin(selector: str) -> None:
    with pytest.raises(SettingsError) as caught:
        normalize_selectors([selector], RULES, origin="--select")
    assert str(caught.value).startswith(f"--select: unknown rule `{selector}`")


@pytest.mark.parametrize(
    ("select", "extend_select", "ignore", "on"),
    [
        ((), (), (), True),
        (("FSR1",), (), (), True),
        (("FSR2",), (), (), False),
        (("FSR2",), ("FSR101",), (), True),
        ((), (), ("FSR1",), False),
        ((), ("FSR101",), ("FSR1",), True),
        (("FSR1",), (), ("FSR101",), False),
        (("FSR101",), (), ("FSR",), True),
        (("FSR101",), (), ("FSR101",), False),
        (("FSR",), (), ("FSR",), False),
    ],
)
def test_most_specific_selector_wins(
    select: tuple[str, ...], extend_select: tuple[str, ...], ignore: tuple[str, ...], on: bool
) -> None:
    settings = Settings(root=Path("/p"), select=select, extend_select=extend_select, ignore=ignore)
    assert settings.selects("FSR101", "a.py") is on


@pytest.mark.parametrize(
    ("glob", "path", "covered"),
    [
        ("setup.py", "setup.py", True),
        ("setup.py", "a/setup.py", True),
        ("setup.py", "a/mysetup.py", False),
        ("tools", "a/tools/b/c.py", True),
        ("tools/", "a/tools/b/c.py", True),
        ("tools/", "a/tools", False),
        ("*_pb2.py", "a/b_pb2.py", True),
        ("a/tools", "a/tools/b/c.py", True),
        ("a/tools", "b/a/tools/c.py", False),
        ("/tools", "tools/c.py", True),
        ("/tools", "a/tools/c.py", False),
        ("./tools/", "tools/c.py", True),
        ("a/*", "a/b/c.py", True),
        ("a/*.py", "a/b/c.py", True),
        ("a/*.py", "ab/c.py", False),
        ("**/c.py", "c.py", True),
        ("a/**/c.py", "a/c.py", True),
        ("a/**/c.py", "a/x/y/c.py", True),
        ("a/**/c.py", "a/xc.py", False),
        ("a/**", "a/b/c.py", True),
        ("t?.py", "t1.py", True),
        ("t?.py", "t12.py", False),
        ("[!a]b.py", "cb.py", True),
        ("[!a]b.py", "ab.py", False),
        ("[]^]b.py", "^b.py", True),
        ("a.c", "abc", False),
        ("a\\b", "a/b", True),
        ("[a", "[a", True),
    ],
)
def test_glob_matches_path(glob: str, path: str, covered: bool) -> None:
    assert Glob(glob).covers(path) is covered
    settings = Settings(root=Path("/p"), per_file_ignores=((glob, ("FSR1",)),))
    assert settings.selects("FSR101", path) is not covered
    assert settings.selects("FSR201", path)


@given(st.text("ab*?.[!]^-", min_size=1, max_size=8), st.text("ab.^!-", min_size=1, max_size=6))
def test_glob_without_slash_matches_like_fnmatch(glob: str, name: str) -> None:
    try:
        ours = Glob(glob).covers(name)
    except ValueError:
        return
    if "[]" not in glob and "[!]" not in glob and "--" not in glob:
        assert ours == fnmatch.fnmatchcase(name, glob)


@given(st.text("ab*?/", min_size=1, max_size=10), st.text("ab/", min_size=1, max_size=10))
def test_glob_with_slash_matches_like_a_backtracking_regex(glob: str, path: str) -> None:
    body = glob.strip("/")
    assume(body and "/" in glob.rstrip("/") and "//" not in glob)
    meant = {"**/": "(?:.*/)?", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*+|\?)", body)
    tried = "".join(meant.get(piece, ".*" if piece.startswith("*") else re.escape(piece)) for piece in pieces)
    found = re.fullmatch(Glob(glob).pattern, path, re.DOTALL)
    assert bool(found) == bool(re.fullmatch(tried, path))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="nothing here counts processor time")
@pytest.mark.parametrize("glob", ["*a" * 40 + "*c", "x/" + "*a" * 40 + "*c"])
def test_glob_with_many_stars_terminates(glob: str) -> None:
    """Naive backtracking would never finish here; the limit is one minute."""

    def too_long(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 60)
    try:
        assert not Glob(glob).covers("x/" + "a" * 80 + "b")
        assert Glob(glob).covers("x/" + "a" * 80 + "c")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@given(
    st.lists(st.sampled_from(["*a*b", "a*b*", "b/*a*", "a/**/*b*a", "*a*b"]), max_size=4),
    st.text("ab/", max_size=6),
)
def test_combined_matcher_matches_if_any_glob_matches(texts: list[str], path: str) -> None:
    globs = [Glob(text) for text in texts] + [patterns.glob(text) for text in texts]
    name = path.rpartition("/")[2]
    one = any(re.fullmatch(g.pattern, path if g.anchored else name, re.DOTALL) for g in globs)
    assert matcher(globs)(name, path) == one


def test_matcher_tests_the_entry_and_not_its_parents() -> None:
    excludes = matcher([Glob("build/"), Glob("a/b")])
    assert excludes("build", "x/build")
    assert excludes("b", "a/b")
    assert not excludes("c", "a/b/c")
    assert not excludes("c", "build/c")
    assert not matcher([])("", "")


def test_overrides_replace_or_extend_settings() -> None:
    settings = Settings(root=Path("/p"), select=("FSR1",), extend_select=("FSR2",), ignore=("FSR101",))
    changed = with_overrides(settings, select=["FSR3"], extend_select=["FSR4"], profile="strict", ignore=None)
    assert (changed.select, changed.extend_select) == (("FSR3",), ("FSR2", "FSR4"))
    assert (changed.ignore, changed.profile) == (("FSR101",), "strict")
    assert with_overrides(settings, include_tests=None) == settings
    assert with_overrides(settings, exclude=[]).exclude == ()


@pytest.mark.parametrize(
    ("changes", "expected_message"),
    [({"exclude": ["[z-a]"]}, "--exclude"), ({"helper_module": "a-b"}, "--helper-module")],
)
def test_invalid_override_names_its_option(changes: dict[str, object], expected_message: str) -> None:
    with pytest.raises(SettingsError, match=expected_message):
        with_overrides(Settings(root=Path("/p")), **changes)


GUARD = '[[tool.fsrace-lint.catalog.guard]]\nnames = ["mylib.is_boss"]\nscope = "global"\n'
LOCK = '[[tool.fsrace-lint.catalog.lock]]\nkind = "context"\nnames = ["mylib.Lock"]\n'


def test_catalog_is_stored_as_json(tmp_path: Path) -> None:
    settings = load(write(tmp_path, GUARD), RULES)
    assert settings.catalog == '{"guard":[{"names":["mylib.is_boss"],"scope":"global"}]}'
    assert settings.catalog_origin == f"{tmp_path / 'pyproject.toml'}: `tool.fsrace-lint.catalog`"
    assert {settings: 1}[load(tmp_path, RULES)] == 1
    assert catalog.extended(settings.catalogs).find("guard", "mylib.is_boss")


def test_catalog_ignores_the_order_of_kinds_and_keys(tmp_path: Path) -> None:
    one = load(write(tmp_path, GUARD + LOCK), RULES)
    assert load(write(tmp_path, LOCK + GUARD), RULES) == one
    swapped = 'names = ["mylib.Lock"]\nkind = "context"\n'
    assert load(write(tmp_path, f"{GUARD}[[tool.fsrace-lint.catalog.lock]]\n{swapped}"), RULES) == one


@pytest.mark.parametrize("table", ["[tool.fsrace-lint.catalog]", "catalog = {}"])
def test_empty_catalog_equals_no_catalog(tmp_path: Path, table: str) -> None:
    assert load(write(tmp_path, table), RULES) == Settings(root=tmp_path)


def test_command_line_overrides_keep_the_catalog(tmp_path: Path) -> None:
    settings = load(write(tmp_path, GUARD), RULES)
    changed = with_overrides(settings, profile="strict", extend_exclude=["a"])
    assert (changed.catalog, changed.catalog_origin) == (settings.catalog, settings.catalog_origin)


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        (Settings(root=Path()), "error warning"),
        (Settings(root=Path(), profile="strict"), "error warning note"),
        (Settings(root=Path(), profile="strict", min_severity="error"), "error"),
        (Settings(root=Path(), min_severity="note"), "error warning note"),
    ],
)
def test_severity_decides_what_is_reported(settings: Settings, reported: str) -> None:
    assert " ".join(severity for severity in SEVERITIES if settings.reports(severity, "low")) == reported


@pytest.mark.parametrize(
    ("lowest", "reported"),
    [(None, "high medium low"), ("low", "high medium low"), ("medium", "high medium"), ("high", "high")],
)
def test_confidence_decides_what_is_reported(lowest: Confidence | None, reported: str) -> None:
    settings = Settings(root=Path(), min_confidence=lowest)
    assert " ".join(each for each in CONFIDENCES if settings.reports("error", each)) == reported


@pytest.mark.parametrize(
    ("lowest", "failing"),
    [
        (None, "error warning note"),
        ("note", "error warning note"),
        ("warning", "error warning"),
        ("error", "error"),
    ],
)
def test_severity_decides_what_fails(lowest: Severity | None, failing: str) -> None:
    settings = Settings(root=Path(), fail_on=lowest)
    assert " ".join(each for each in SEVERITIES if settings.fails_on(each, "FSR101")) == failing


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, False),
        ({"select": ("FSR",)}, False),
        ({"select": ("FSR1",)}, False),
        ({"select": ("FSR001",)}, True),
        ({"extend_select": ("FSR0",)}, True),
        ({"fail_on": "warning"}, True),
        ({"fail_on": "error"}, False),
    ],
)
def test_unchecked_file_fails_only_on_request(changes: dict[str, Any], fails: bool) -> None:
    assert Settings(root=Path(), **changes).fails_on("warning", "FSR001") is fails
