"""Library models: the bundled files and their entries, user entries, and errors in either."""

from __future__ import annotations

import ast
import importlib.resources
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import CASE_DOCUMENTS

import fsrace_lint
from fsrace_lint import catalog, rules
from fsrace_lint.catalog import (
    KINDS,
    ArgumentName,
    Catalog,
    CatalogError,
    Effect,
    argument,
    extended,
    flags,
    load,
    parse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import msgspec

FILES = sorted(
    file.name for file in importlib.resources.files(catalog).iterdir() if file.name.endswith(".toml")
)
WITHOUT_CASES = {"names", "launchers"}
"""Files that model no single framework; the cases of the others cover their entries."""


def text(name: str) -> str:
    return importlib.resources.files(catalog).joinpath(name).read_text(encoding="utf-8")


def entries() -> Iterator[tuple[str, str, msgspec.Struct]]:
    for file in FILES:
        for kind, entry in parse(text(file), file):
            yield file, kind, entry


@pytest.mark.parametrize("file", FILES)
def test_bundled_file_parses(file: str) -> None:
    assert list(parse(text(file), file))


def test_bundled_files_exist() -> None:
    assert {"stdlib.toml", "torch.toml", "names.toml"} <= set(FILES)


def test_each_framework_has_a_case_document() -> None:
    frameworks = {Path(file).stem for file in FILES} - WITHOUT_CASES
    assert {case.stem for case in (CASE_DOCUMENTS / "catalog").glob("*.md")} == frameworks


def test_every_entry_has_names_and_a_source() -> None:
    for file, kind, entry in entries():
        names, source = entry.names, entry.source  # type: ignore[attr-defined]  # all kinds have both
        assert names, (file, kind)
        assert source.strip(), (file, kind, names)
        assert not source.endswith("."), (file, kind, names)


def test_every_kind_is_used() -> None:
    assert {kind for _, kind, _ in entries()} == set(KINDS)


NAMED_IN_CODE = {
    "cli/commands/prove.py": {"distributed"},  # the option
    "cli/commands/prove_finding.py": {"distributed"},
    "files/git_clean.py": {"git"},
    "files/git_commits.py": {"git"},
    "fixes/layout.py": {"google"},  # a profile of isort
    "fixes/recipes/filelock.py": {"filelock", "FileLock"},  # the import that it adds with the lock
    "launches/shell.py": {"git"},
    "rules/remedies.py": {"filelock"},  # the name of the recipe
}
RUN_WITH_THEM = ("catalog", "explore", "instrument", "reproduce", "safe.py")
"""The catalog itself, and code that runs in one process with a framework: stand-ins and helpers."""


def test_code_outside_the_catalog_names_no_framework() -> None:
    libraries = {name.lower() for name in load().libraries} - {
        name.lower() for name in sys.stdlib_module_names
    }
    libraries -= {"*", "fsrace_lint"}
    assert {"torch", "tqdm", "numpy"} <= libraries
    incidents = {incident for rule in rules.load() for incident in rule.rule.incidents}
    named: dict[str, set[str]] = {}
    root = Path(fsrace_lint.__file__).parent
    for path in root.rglob("*.py"):
        module = path.relative_to(root)
        if module.parts[0] in RUN_WITH_THEM:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = re.fullmatch(r"(\w+)(\.\w*)*", node.value)
                if name is not None and name[1].lower() in libraries and node.value not in incidents:
                    named.setdefault(module.as_posix(), set()).add(node.value)
    assert named == NAMED_IN_CODE


def test_names_are_dotted_identifiers() -> None:
    for file, kind, entry in entries():
        for name in entry.names:  # type: ignore[attr-defined]  # all kinds have it
            if kind == "command" or (kind == "node-local" and name[0] in "/$"):
                continue
            parts = name.removeprefix("*.").split(".")
            assert all(part.isidentifier() for part in parts), (file, kind, name)
            assert not name.startswith("*.") or len(parts) == 1, (file, kind, name)


def test_names_are_unique_within_a_kind() -> None:
    seen: dict[tuple[str, str], str] = {}
    for file, kind, entry in entries():
        for name in entry.names:  # type: ignore[attr-defined]  # all kinds have it
            assert (kind, name) not in seen, f"[[{kind}]] {name} of {file} is in {seen[kind, name]} too"
            seen[kind, name] = file


def test_arguments_of_effects_are_well_formed() -> None:
    for file, _, entry in entries():
        if isinstance(entry, Effect):
            assert re.fullmatch(r"(self|\d*:\w+|\d+)(=[\w.~/]+)?", entry.path), (file, entry.names)
            for which in (word for flag in entry.FLAGS for word in flag_words(getattr(entry, flag))):
                assert re.fullmatch(r"(self|\d*:\w+|\d+)(=true)?", which), (file, entry.names, which)


def flag_words(flag: bool | str) -> list[str]:
    return flag.split() if isinstance(flag, str) else []


def test_catalog_is_loaded_once_and_completely() -> None:
    assert load() is load()
    for _, kind, entry in entries():
        for name in entry.names:  # type: ignore[attr-defined]  # all kinds have it
            assert load().exact(kind, name) == entry


def test_user_entries_override_bundled_entries() -> None:
    rows = '"names": ["os.unlink", "mylib.unlink"], "op": "delete", "path": "1:p"'
    small = extended(((f'{{"effect": [{{{rows}}}]}}', "mine.toml"),))
    assert small is extended(((f'{{"effect": [{{{rows}}}]}}', "mine.toml"),))
    assert small.find("effect", "os.unlink") == small.find("effect", "mylib.unlink")
    assert small.find("effect", "os.unlink").source == "mine.toml"
    for kind in KINDS:
        others = set(load().names(kind)) - {"os.unlink"}
        assert set(small.names(kind)) - {"os.unlink", "mylib.unlink"} == others
        assert all(small.exact(kind, name) == load().exact(kind, name) for name in others)
    assert extended() is load()


@pytest.mark.parametrize(
    ("tables", "expected_message"),
    [
        ('{"gard": []}', "x: unknown kind [[gard]]; did you mean `guard`?"),
        ('{"run_once": []}', "x: unknown kind [[run_once]]; did you mean `run-once`?"),
        ('{"zzz": []}', "x: unknown kind [[zzz]]; expected one of `launch`, `spawn`, "),
        ('{"lock": {}}', "x: `lock` must be an array of tables, written [[lock]]"),
        ('{"lock": [1]}', "x: [[lock]] number 1 must be a table"),
        ('{"lock": [{"nams": []}]}', "x: [[lock]] number 1: unknown key `nams`; did you mean `names`?"),
        ('{"lock": [{"zzz": 1}]}', "x: [[lock]] number 1: unknown key `zzz`; expected one of `names`, "),
        ('{"lock": [{"kind": "context"}]}', "x: [[lock]] number 1: `names` is missing"),
        ('{"lock": [{"names": ["a"]}]}', "x: [[lock]] number 1: `kind` is missing"),
        (
            '{"lock": [{"names": ["a"], "kind": "release"}, {"names": ["a"], "kind": "contxt"}]}',
            "x: [[lock]] number 2: `kind`: unknown value `contxt`; did you mean `context`?",
        ),
        (
            '{"lock": [{"names": ["a"], "kind": ["zzz"]}]}',
            (
                "x: [[lock]] number 1: `kind`: unknown value `['zzz']`; "
                "expected one of `context`, `acquire`, `release`"
            ),
        ),
        (
            '{"lock": [{"names": "a", "kind": "release"}]}',
            "x: [[lock]] number 1: `names`: expected array, found string",
        ),
        (
            '{"effect": [{"names": ["a"], "op": "list", "path": "0", "tolerant": 1}]}',
            "x: [[effect]] number 1: `tolerant`: expected boolean or string, found integer",
        ),
        (
            '{"effect": [{"names": ["a"], "op": "list", "path": "0", "guard": "gobal"}]}',
            "x: [[effect]] number 1: `guard`: unknown value `gobal`; did you mean `global`?",
        ),
        (
            '{"returns": [{"names": ["a"], "type": "*.b"}]}',
            "x: [[returns]] number 1: `type`: `*.b` is not a dotted name",
        ),
        (
            '{"returns": [{"names": ["a"], "type": "b.C", "url": "0", "by-protocol": ["s3=b.D", "file"]}]}',
            "x: [[returns]] number 1: `by-protocol`: `file` is not of the form `protocol=dotted.name`",
        ),
    ],
)
def test_error_in_user_entries_names_its_position(tables: str, expected_message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        extended(((tables, "x"),))
    assert str(caught.value).startswith(expected_message)


def test_find_and_exact() -> None:
    entry = KINDS["rank"](names=("a.rank", "*.get_it"), source="here", scope="global")  # type: ignore[call-arg]  # of Rank
    small = Catalog([("rank", entry)])
    assert small.find("rank", "a.rank") is entry
    assert small.find("rank", "b.rank") is None
    assert small.find("rank", "any.where.get_it") is entry
    assert small.find("rank", "get_it") is entry
    assert small.find("rank", None) is None
    assert small.find("guard", "a.rank") is None
    assert small.exact("rank", "any.where.get_it") is None
    assert small.exact("rank", "a.rank") is entry
    assert small.last_names["rank"] == {"rank", "get_it"}
    assert small.is_any(("guard", "rank"), "x.get_it")
    assert not small.is_any(("guard",), "x.get_it")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("0:path", ArgumentName(0, "path")),
        ("2", ArgumentName(2, None)),
        (":exist_ok", ArgumentName(None, "exist_ok")),
        ("self", ArgumentName(None, "self")),
        ("1:exist_ok=true", ArgumentName(1, "exist_ok", default="true")),
        ("1:mode=w", ArgumentName(1, "mode", default="w")),
        (":is_main_process=true", ArgumentName(None, "is_main_process", default="true")),
    ],
)
def test_argument_notation(written: str, expected: ArgumentName) -> None:
    assert argument(written) == expected
    assert expected.is_self is (written == "self")


@pytest.mark.parametrize("written", ["", ":", "x", "p:0", "0:a b", "=true"])
def test_invalid_argument_notation_is_an_error(written: str) -> None:
    with pytest.raises(ValueError, match=re.escape(written) if written else "^$"):
        argument(written)


def test_flag_notation() -> None:
    assert flags(text="1:a :b=true") == (ArgumentName(1, "a"), ArgumentName(None, "b", default="true"))
    assert flags(text=True) == flags(text=False) == flags(text="") == ()


GOOD = '[[effect]]\nnames = ["a.b"]\nop = "mkdir"\npath = "0:p"\nsource = "docs"\n'


def test_valid_entry_parses() -> None:
    assert list(parse(GOOD, "mine.toml")) == [
        ("effect", Effect(names=("a.b",), source="docs", op="mkdir", path="0:p"))
    ]


@pytest.mark.parametrize(
    ("document", "mentions"),
    [
        pytest.param("[[effect]\n", ["mine.toml", "line 1"], id="not TOML"),
        pytest.param('[[efect]]\nnames = ["a"]\n', ["mine.toml", "[[efect]]", "effect"], id="unknown kind"),
        pytest.param(
            GOOD.replace('path = "0:p"\n', ""),
            ["mine.toml", "[[effect]] number 1", "`path`"],
            id="missing key",
        ),
        pytest.param(
            GOOD.replace("source", "sauce"), ["mine.toml", "[[effect]] number 1", "`sauce`"], id="unknown key"
        ),
        pytest.param(
            GOOD.replace('source = "docs"\n', ""),
            ["mine.toml", "[[effect]]", "`source`"],
            id="missing source",
        ),
        pytest.param(
            GOOD.replace('"mkdir"', '"make"'), ["mine.toml", "[[effect]]", "`make`", "op"], id="unknown value"
        ),
        pytest.param(
            GOOD.replace('["a.b"]', '"a.b"'),
            ["mine.toml", "[[effect]]", "names", "array"],
            id="string instead of a list",
        ),
        pytest.param(
            GOOD.replace('["a.b"]', "[1]"),
            ["mine.toml", "[[effect]]", "names", "str"],
            id="number in a list",
        ),
        pytest.param(
            GOOD + GOOD.replace('"docs"', "3"),
            ["mine.toml", "[[effect]] number 2", "source"],
            id="second table",
        ),
        pytest.param(
            "effect = [3]\n", ["mine.toml", "[[effect]] number 1", "table"], id="number instead of a table"
        ),
        pytest.param(
            '[[rank]]\nnames = ["a"]\nscope = "wide"\nsource = "x"\n',
            ["[[rank]] number 1", "`wide`", "scope"],
            id="unknown scope",
        ),
        pytest.param(
            '[[barrier]]\nnames = ["a"]\nscope = "global"\nsource = "x"\n',
            ["[[barrier]] number 1", "`scope`"],
            id="key of another kind",
        ),
        pytest.param(
            GOOD.replace('"a.b"', '"a.b", "c-d"'),
            ["mine.toml", "[[effect]] number 1", "`names`", "`c-d`"],
            id="malformed name",
        ),
        pytest.param(
            GOOD.replace('"a.b"', '"*.a b"'),
            ["mine.toml", "[[effect]] number 1", "`names`", "`*.a b`"],
            id="malformed last name",
        ),
        pytest.param(
            GOOD.replace('"a.b"', '"/tmp"'),
            ["mine.toml", "[[effect]] number 1", "`names`", "`/tmp`"],
            id="path instead of a name",
        ),
        *(
            pytest.param(
                GOOD + f'{key} = "exist_ok"\n',
                ["mine.toml", "[[effect]] number 1", f"`{key}`", "'exist_ok'"],
                id=f"malformed flag in {key}",
            )
            for key in ("target", "mode", "flags", "tolerant", "exclusive", "atomic", "condition")
        ),
        pytest.param(
            GOOD + 'tolerant = "0:a b:c"\n',
            ["mine.toml", "[[effect]] number 1", "`tolerant`", "'0:a b:c'"],
            id="one malformed flag of two",
        ),
        pytest.param(
            GOOD + "tolerant = 1\n",
            ["mine.toml", "[[effect]] number 1", "tolerant"],
            id="number instead of a flag",
        ),
        pytest.param(
            GOOD + 'guard = "everyone"\n',
            ["mine.toml", "[[effect]] number 1", "`guard`", "`everyone`"],
            id="unknown guard",
        ),
        pytest.param(
            GOOD + 'synchronized = "yes"\n',
            ["mine.toml", "[[effect]] number 1", "`synchronized`"],
            id="string instead of a boolean",
        ),
        pytest.param(
            '[[exit]]\nnames = ["a"]\nsource = "x"\n[[exit]]\nnames = ["b"]\n',
            ["mine.toml", "[[exit]] number 2", "`source`"],
            id="missing source in the second table",
        ),
        pytest.param(
            '[[private]]\nnames = ["a"]\nscope = "rack"\nsource = "x"\n',
            ["mine.toml", "[[private]] number 1", "`scope`", "`rack`"],
            id="unknown scope of a private value",
        ),
        pytest.param(
            '[[guard]]\nnames = ["a"]\nscope = "worker"\nsource = "x"\n',
            ["mine.toml", "[[guard]] number 1", "`scope`", "`worker`"],
            id="scope of another kind",
        ),
        pytest.param(
            '[[hook]]\nnames = ["a.B.c"]\nruns = "some"\nsource = "x"\n',
            ["mine.toml", "[[hook]] number 1", "`runs`", "`some`"],
            id="unknown runs",
        ),
        pytest.param(
            '[[spawn]]\nnames = ["a.b"]\npasses-rank = "0"\nsource = "x"\n',
            ["mine.toml", "[[spawn]] number 1", "passes-rank"],
            id="string instead of a boolean, key with a dash",
        ),
        pytest.param(
            '[[spawn]]\nnames = ["a.b"]\npasses_rank = true\nsource = "x"\n',
            ["mine.toml", "[[spawn]] number 1", "`passes_rank`"],
            id="underscore instead of a dash",
        ),
        pytest.param(
            '[[collective-saver]]\nnames = ["a.b"]\nunless = "no_dist"\nsource = "x"\n',
            ["mine.toml", "[[collective-saver]] number 1", "`unless`", "'no_dist'"],
            id="malformed flag in unless",
        ),
        pytest.param(
            '[[collective]]\nnames = ["a.b"]\norders = "none"\nsource = "x"\n',
            ["mine.toml", "[[collective]] number 1", "`orders`", "`none`"],
            id="unknown order",
        ),
        pytest.param(
            '[[node-local]]\nnames = ["tmp dir"]\nsource = "x"\n',
            ["mine.toml", "[[node-local]] number 1", "`names`", "`tmp dir`"],
            id="malformed place",
        ),
    ],
)
def test_malformed_document_error_names_the_problem(document: str, mentions: list[str]) -> None:
    with pytest.raises(CatalogError) as caught:
        list(parse(document, "mine.toml"))
    for mention in mentions:
        assert mention in str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param("effect = 3\n", id="number instead of a list"),
        pytest.param('[effect]\nnames = ["a"]\n', id="table instead of a list"),
        pytest.param(GOOD.replace("0:p", "p:0"), id="swapped argument"),
        pytest.param(GOOD.replace('["a.b"]', "[]"), id="empty names"),
        pytest.param(GOOD.replace('"docs"', '""'), id="empty source"),
        pytest.param(GOOD.replace('"0:p"', '""'), id="empty argument"),
        pytest.param(GOOD.replace("0:p", "-1:p"), id="negative position"),
        pytest.param(GOOD.replace("0:p", "0:p=true"), id="flag instead of an argument"),
        pytest.param(GOOD + 'tolerant = " "\n', id="blank flag"),
        pytest.param(GOOD.replace("a.b", "*.a.b"), id="dotted last name"),
    ],
)
def test_malformed_document_error_names_the_table(document: str) -> None:
    with pytest.raises(CatalogError, match=r"mine\.toml.*effect"):
        list(parse(document, "mine.toml"))


def test_node_local_places_parse() -> None:
    document = '[[node-local]]\nnames = ["/tmp", "$TMPDIR", "tempfile.gettempdir"]\nsource = "docs"\n'
    assert [kind for kind, _ in parse(document, "mine.toml")] == ["node-local"]


# What users add.

MINE = "pyproject.toml: `catalog`"


def test_no_user_entries_yields_the_bundled_catalog() -> None:
    assert extended() is load()


def test_user_entries_override_and_extend_every_lookup() -> None:
    tables = {
        "rank": [{"names": ["torch.distributed.get_rank", "mine.number"], "scope": "local"}],
        "effect": [{"names": ["mine.store"], "op": "write", "path": "1:where", "condition": ":first=true"}],
    }
    both = extended(((json.dumps(tables), MINE),))
    assert both.find("rank", "torch.distributed.get_rank").scope == "local"
    assert both.find("rank", "mine.number").scope == "local"
    assert both.find("rank", "torch.distributed.get_node_local_rank").scope == "local"
    assert both.find("effect", "mine.store").path == "1:where"
    assert "store" in both.last_names["effect"]
    assert both.find("effect", "torch.save") is load().find("effect", "torch.save")
    assert load().find("rank", "torch.distributed.get_rank").scope == "global"
    assert load().find("rank", "mine.number") is None


def test_source_is_optional_in_user_entries() -> None:
    tables = {"barrier": [{"names": ["mine.wait"]}, {"names": ["mine.meet"], "source": "our wiki"}]}
    both = extended(((json.dumps(tables), MINE),))
    assert both.find("barrier", "mine.wait").source == MINE
    assert both.find("barrier", "mine.meet").source == "our wiki"


def test_user_entry_can_disable_a_bundled_pattern() -> None:
    tables = {"in-process": [{"names": ["mine"]}]}
    both = extended(((json.dumps(tables), MINE),))
    assert load().find("barrier", "mine.barrier") is not None
    assert both.find("barrier", "mine.barrier") is None
    assert both.is_in_process("mine.barrier")


@pytest.mark.parametrize(
    ("tables", "mentions"),
    [
        pytest.param({"locks": []}, ["[[locks]]", "lock"], id="unknown kind"),
        pytest.param({"lock": {"names": ["a"]}}, ["`lock`", "[[lock]]"], id="table instead of a list"),
        pytest.param({"lock": [{"names": ["a"]}]}, ["[[lock]] number 1", "`kind`"], id="missing key"),
        pytest.param(
            {"lock": [{"names": ["a"], "kind": "acquire"}, {"names": ["b"], "kind": "held"}]},
            ["[[lock]] number 2", "`kind`", "`held`"],
            id="unknown value",
        ),
        pytest.param(
            {"effect": [{"names": ["a"], "op": "write", "path": "f"}]},
            ["[[effect]] number 1", "`path`", "'f'"],
            id="malformed argument",
        ),
        pytest.param({"barrier": [{"names": []}]}, ["[[barrier]] number 1", "`names`"], id="empty names"),
        pytest.param(
            {"barrier": [{"names": ["a()"]}]}, ["[[barrier]] number 1", "`a()`"], id="malformed name"
        ),
    ],
)
def test_malformed_user_entry_is_an_error(tables: dict[str, object], mentions: list[str]) -> None:
    with pytest.raises(CatalogError) as caught:
        extended(((json.dumps(tables), MINE),))
    for mention in (MINE, *mentions):
        assert mention in str(caught.value)


# Threads and tasks.


@pytest.mark.parametrize("kind", ["lock", "barrier"])
@pytest.mark.parametrize(
    "name",
    [
        "threading.Lock",
        "threading.RLock",
        "threading.Barrier",
        "threading.Barrier.wait",
        "asyncio.Lock",
        "asyncio.Barrier",
        "asyncio.locks.Barrier",
        "trio.FileLock",
        "anyio.Lock",
        "torch.cuda.barrier",
    ],
)
def test_in_process_primitives_are_not_locks_or_barriers(kind: str, name: str) -> None:
    assert load().find(kind, name) is None
    assert load().is_in_process(name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("barrier", "torch.distributed.barrier"),
        ("barrier", "mine.threading.barrier"),
        ("barrier", "threadings.barrier"),
        ("lock", "mine.FileLock"),
        ("lock", "filelock.FileLock"),
    ],
)
def test_interprocess_primitives_are_locks_or_barriers(kind: str, name: str) -> None:
    assert load().find(kind, name) is not None
    assert not load().is_in_process(name)
