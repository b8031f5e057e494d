"""The original and fixed programs behave the same in one process, for every initial state."""

from __future__ import annotations

import itertools
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import CASE_DOCUMENTS
from support.differential import PARENT, PLACE, STATES, Difference, called, differences, outcomes, repaired
from support.mdtest import Case, collect, run
from support.sampling import bound

from fsrace_lint.pipeline import repair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs run in a forked process")

HEAD: Final = """\
import os
import shutil
from os import makedirs as make
from os.path import exists
from pathlib import Path

CONSTANT = "data/place"


class Config:
    def __init__(self, place):
        self.place = place


"""

# How the path is written in the operation and in the check.
PATHS: Final = {
    "parameter": ("path", "path"),
    "join": ("os.path.join(root, 'place')", "os.path.join(root, 'place')"),
    "f-string": ("f'{root}/place'", "f'{root}/place'"),
    "sum": ("root + '/place'", "root + '/place'"),
    "Path": ("Path(root) / 'place'", "Path(root) / 'place'"),
    "constant": ("CONSTANT", "CONSTANT"),
    "literal": ("'data/place'", "'data/place'"),
    "attribute": ("config.place", "config.place"),
    "item": ("settings['place']", "settings['place']"),
    "dirname": ("os.path.dirname(inside)", "os.path.dirname(inside)"),
    "str of a path": ("str(path)", "str(path)"),
    "two spellings": ("root + '/place'", "os.path.join(root, 'place')"),
    "trailing slash in the operation": ("'data/place/'", "'data/place'"),
    "trailing slash in the check": ("'data/place'", "'data/place/'"),
    "parent of the checked file": ("os.path.dirname(inside)", "inside"),
    "checks the parent": ("os.path.join(root, 'place')", "root"),
    "checks a child": ("root", "os.path.join(root, 'place')"),
}
TESTS: Final = {
    "exists": "os.path.exists({0})",
    "isdir": "os.path.isdir({0})",
    "lexists": "os.path.lexists({0})",
    "isfile": "os.path.isfile({0})",
    "islink": "os.path.islink({0})",
    "Path.exists": "Path({0}).exists()",
    "Path.is_dir": "Path({0}).is_dir()",
}
MAKING: Final = {
    "makedirs": "os.makedirs({0})",
    "makedirs mode": "os.makedirs({0}, mode=0o750)",
    "alias": "make({0})",
    "mkdir": "os.mkdir({0})",
    "mkdir mode": "os.mkdir({0}, 0o700)",
    "Path.mkdir": "Path({0}).mkdir()",
    "Path.mkdir parents": "Path({0}).mkdir(parents=True)",
}
DELETING: Final = {
    "remove": "os.remove({0})",
    "unlink": "os.unlink({0})",
    "rmdir": "os.rmdir({0})",
    "Path.unlink": "Path({0}).unlink()",
    "Path.rmdir": "Path({0}).rmdir()",
}
LINKING: Final = {"symlink": "os.symlink('beside', {0})", "symlink_to": "Path({0}).symlink_to('beside')"}
OPENING: Final = {
    "open": "with open({0}, 'w') as stream:\n    stream.write('new')",
    "open binary": "with open({0}, mode='wb') as stream:\n    stream.write(b'new')",
}
# {0} is the check, {1} the operation; both are indented like their placeholder.
FORMS: Final = {
    "plain": "if {0}:\n    {1}",
    "else": "if {0}:\n    {1}\nelse:\n    print('other')",
    "inverted": "if {not}:\n    pass\nelse:\n    {1}",
    "early return": "if {not}:\n    return 'left'\n{1}\nreturn 'done'",
    "is False": "if ({not}) is False:\n    {1}",
    "condition with and": "if wanted and {0}:\n    {1}",
    "condition with or": "if wanted or {0}:\n    {1}",
    "result in a variable": "answer = {0}\nif answer:\n    {1}",
    "print before": "if {0}:\n    print('soon')\n    {1}",
    "print after": "if {0}:\n    {1}\n    print('done')",
    "return": "if {0}:\n    return {1}\nreturn 'there'",
    "or": "{not} or {1}",
    "and": "{0} and {1}",
    "chosen": "given = {1} if {0} else 'there'\nreturn given",
    "comments": "# one\nif {0}:  # two\n    # three\n    {1}  # four\n    # five\n# six",
    "try": "try:\n    if {0}:\n        {1}\nfinally:\n    print('finally')",
    "caught": "try:\n    if {0}:\n        {1}\nexcept NotADirectoryError:\n    return 'caught'",
    "told": "try:\n    if {0}:\n        {1}\nexcept FileExistsError:\n    return 'told'",
    "loop": "for _ in range(2):\n    if {0}:\n        {1}",
    "nested": "def inner():\n    if {0}:\n        {1}\n\ninner()\nreturn 'outer'",
    "asked twice": "if wanted:\n    if {0}:\n        {1}",
    "elif": "if not wanted:\n    print('no')\nelif {0}:\n    {1}",
    "one line": "if {0}: {1}",
    "alone": "{1}",
}


class Program(NamedTuple):
    """A function `act_N`, and a name that lists its parts."""

    name: str
    text: str


USES: Final = {
    "making": "\nwith open(os.path.join({0}, 'inside'), 'w') as stream:\n    stream.write('new')",
    "deleting": "\nwith open({0}, 'w') as stream:\n    stream.write('new')",
}
"""The code after the operation that shows what the path is: a directory, or a file."""


def act(
    number: int, form: str, test: str, acts: str, path: tuple[str, str], *, absent: bool, use: str = ""
) -> str:
    """Return a function that runs an operation on a path, depending on a check of it, and a use of it."""
    found = TESTS[test].format(path[1])
    condition, negated = (f"not {found}", found) if absent else (found, f"not {found}")
    form = FORMS[form] + use.format(path[0])
    lines = form.replace("{0}", condition).replace("{not}", negated).split("\n")
    body = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        body += line.replace("{1}", acts.format(path[0]).replace("\n", f"\n{indent}")).split("\n")
    text = "".join(f"    {line}\n" if line else "\n" for line in body)
    return f"def act_{number}(path, root, inside, config, settings, wanted):\n{text}\n\n"


KINDS: Final = {
    "making": (MAKING, ("exists", "isdir"), ("makedirs", "mkdir", "Path.mkdir")),
    "deleting": (DELETING, ("exists", "isfile"), ("remove", "Path.unlink")),
    "linking": (LINKING, ("lexists", "exists"), ("symlink",)),
    "opening": (OPENING, ("lexists", "exists"), ("open",)),
}
"""For each kind: its operations, and the checks and operations to combine with every form and path."""


def grid(kind: str, use: str = "") -> Iterator[Program]:
    """Yield every operation after every check, and some in every form and with every path.

    With a `use`, this code follows.
    """
    acts, usual, often = KINDS[kind]
    everything = [("plain", "parameter", test, what) for test, what in itertools.product(TESTS, acts)]
    everything += [
        (form, "parameter", test, what)
        for form, test, what in itertools.product(FORMS, usual, often)
        if form != "plain" and ("\n" not in acts[what] or "{1}" in map(str.strip, FORMS[form].split("\n")))
    ]
    everything += [
        ("plain", path, test, what)
        for path, test, what in itertools.product(PATHS, usual, often)
        if path != "parameter"
    ]
    for number, (form, path, test, what) in enumerate(everything):
        text = act(number, form, test, acts[what], PATHS[path], absent=kind != "deleting", use=use)
        yield Program(f"{what} after {test}, {form}, {path}", text)


def drive_act(number: int) -> Callable[[dict[str, Any]], object]:
    def drive(page: dict[str, Any]) -> object:
        config = page["Config"](PLACE)
        return page[f"act_{number}"](PLACE, PARENT, f"{PLACE}/x.txt", config, {"place": PLACE}, True)

    return drive


def bodies(text: str) -> list[str]:
    return text.split("\n\n\ndef act_")


SAFE: Final = {
    "making": {"isdir", "Path.is_dir", "exists"},
    "deleting": {"isfile", "isdir", "islink", "Path.is_dir", "exists"},
    "linking": {"lexists"},
    "opening": {"lexists"},
}
"""The checks after which an operation is fixed: those that see what the operation itself would see."""


@pytest.mark.exhaustive(4)
@pytest.mark.parametrize("kind", KINDS)
def test_fix_of_every_shape_keeps_behavior(kind: str, tmp_path: Path) -> None:
    asked, found = fixed_in_grid(kind, tmp_path)
    assert asked == SAFE[kind]
    assert not lines_of([each for each in found if not is_promised(kind, each)])


NO_DIRECTORY: Final = {"file", "file, read-only parent", "link to a file", "fifo", "unreadable file"}
"""What a check takes for the directory, and what follows cannot use as one."""
BROKEN_LINK: Final = {"dangling link", "link to itself"}


def is_promised(kind: str, difference: Difference) -> bool:
    """Check whether documented limits allow a difference in a function that shows what the path is.

    If the path is not what the code then uses it as, both programs fail, and the fixed one earlier. A
    broken link, which `exists()` does not see, is deleted. The parent of another path counts as a directory.
    """
    both_fail = bool(difference.before.error and difference.after.error)
    if kind == "making":
        is_parent = "dirname" in difference.name or "parent of" in difference.name
        return difference.state in NO_DIRECTORY | BROKEN_LINK and (both_fail or is_parent)
    is_existence = "exists" in difference.name
    return kind == "deleting" and is_existence and (both_fail or difference.state in BROKEN_LINK)


def is_documented(difference: Difference) -> bool:
    """Check whether documented limits allow a difference in a document.

    Something else than a directory is there, and the original code fails later, where it uses the directory.
    Or a broken link is deleted, which `exists()` does not see.
    """
    no_directory = difference.state in NO_DIRECTORY and difference.after.error == "FileExistsError 17"
    left = {entry.partition(" -> ")[0] for entry in difference.after.tree}
    links = {entry.partition(" -> ")[0] for entry in difference.before.tree if " -> " in entry}
    return no_directory or (difference.state in BROKEN_LINK and not links <= left)


@pytest.mark.exhaustive(4)
@pytest.mark.parametrize("kind", USES)
def test_fix_that_drops_the_check_keeps_behavior(kind: str, tmp_path: Path) -> None:
    asked, found = fixed_in_grid(kind, tmp_path, USES[kind])
    assert asked >= {"exists", "Path.exists"}
    assert not lines_of([each for each in found if not is_promised(kind, each)])


def fixed_in_grid(kind: str, directory: Path, use: str = "") -> tuple[set[str], list[Difference]]:
    """Return the checks of the programs that are fixed, and the differences."""
    programs = list(grid(kind, use))
    before = HEAD + "".join(program.text for program in programs)
    after = repaired(directory / "project", before).after.decode()
    changed = [
        number
        for number, (old, new) in enumerate(zip(bodies(before)[1:], bodies(after)[1:], strict=True))
        if old != new
    ]
    names = [programs[number].name for number in changed]
    asked = {name.partition(" after ")[2].partition(",")[0] for name in names}
    drives = {programs[number].name: drive_act(number) for number in changed}
    # writing to a pipe waits for a reader, with and without the fix
    states = [state for state in STATES if not (use == USES["deleting"] and state == "fifo")]
    return asked, differences(before, after, drives, states, reload=False)


def lines_of(found: list[Difference]) -> str:
    return "\n".join(map(str, found))


# Larger programs: code before, after, and around a shape.

AROUND: Final = {
    "nothing": "{}",
    "a function in it": "def inner():\n    {}\n\ninner()",
    "a method": "class Writer:\n    def write(self):\n        {}\n\nWriter().write()",
    "a try": "try:\n    {}\nexcept KeyError as error:\n    print(error)\nelse:\n    print('well')",
    "an end": "try:\n    {}\nfinally:\n    print('end')",
    "a loop": "for number in range(2):\n    {}\nelse:\n    print('all')",
    "a while": "while wanted:\n    wanted = False\n    {}",
    "a with": "with open(os.devnull) as stream:\n    {}",
    "a branch": "if wanted:\n    {}\nelse:\n    print('no')",
    "a match": "match wanted:\n    case True:\n        {}\n    case _:\n        print('no')",
    "a comment": "# before\n{}\n# behind",
    "more": "print('before')\n{}\nprint(os.path.isdir(path), os.path.islink(path))",
}
INNER: Final = (
    "plain",
    "is False",
    "condition with and",
    "result in a variable",
    "comments",
    "caught",
    "asked twice",
    "inverted",
    "one line",
)


@st.composite
def larger_programs(draw: st.DrawFn) -> str:
    acts, absent = draw(st.sampled_from([(MAKING, True), (DELETING, False), (LINKING, True)]))
    what, test = draw(st.sampled_from(sorted(acts))), draw(st.sampled_from(sorted(TESTS)))
    path = PATHS[draw(st.sampled_from(sorted(PATHS)))]
    text = act(0, draw(st.sampled_from(INNER)), test, acts[what], path, absent=absent)
    header, _, body = text.strip("\n").partition("\n")
    body = textwrap.dedent(body)
    for around in draw(st.lists(st.sampled_from(sorted(AROUND)), max_size=3)):
        form = AROUND[around]
        (line,) = (line for line in form.split("\n") if "{}" in line)
        body = form.replace("{}", body.replace("\n", "\n" + line[: line.index("{}")]))
    return HEAD + header + "\n" + textwrap.indent(body, "    ") + "\n"


@settings(max_examples=bound(8, 40), deadline=None, suppress_health_check=list(HealthCheck))
@given(larger_programs())
def test_fix_of_larger_program_keeps_behavior(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        patch = repaired(Path(directory) / "project", text)
    if patch.before != patch.after:
        after = patch.after.decode()
        assert not lines_of(differences(text, after, {after: drive_act(0)}, reload=False))


# The cases of the documents.

CASES: Final = [case for case in collect(CASE_DOCUMENTS) if "diff" in case.outputs and len(case.files) == 1]
USUAL: Final = (
    "absent",
    "parent absent",
    "file",
    "directory",
    "directory with a file",
    "dangling link",
    "fifo",
)
"""The initial states for the programs of the case documents."""


def fixes_of(case: Case, directory: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the programs of a case before and after their safe fixes, and how to call the fixed functions."""
    found, checked = run(case.write(directory))
    for patch in repair.repair(found, checked, unsafe=False, comments=False):
        before, after = patch.before.decode(), patch.after.decode()
        for finding in patch.applied:
            # A check around the call may write the path differently.
            spelled = "" if finding.fix is None or finding.fix.check is not None else finding.fix.path
            literal = spelled.strip("'\"")
            if spelled[:1] in {"'", '"'}:
                before, after = (text.replace(f'"{literal}', f'"{PLACE}') for text in (before, after))
        before, after = (text.replace('"/', '"') for text in (before, after))
        if before != after:
            yield before, after, {each.function: called(each.function) for each in patch.applied}


def test_fixes_in_case_documents_keep_behavior(tmp_path: Path) -> None:
    """Every safe fix in the documents whose function can be called with a path for each argument."""
    ran = 0
    for number, case in enumerate(CASES):
        for before, after, drives in fixes_of(case, tmp_path / str(number)):
            both = outcomes([before, after], drives, USUAL)
            found = [Difference(*key, *pair) for key, pair in both.items() if len(set(pair)) > 1]
            assert not lines_of([each for each in found if not is_documented(each)]), case.title
            ran += len({name for (name, _), (old, _) in both.items() if not old.error})
    assert ran >= 40
