"""What isort, black, and ruff accepted before a fix, they accept after it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import black
import isort
import pytest
from support import CASE_DOCUMENTS
from support.mdtest import collect

from fsrace_lint.files.source import Source, decode
from fsrace_lint.fixes.import_block import add_imports
from fsrace_lint.fixes.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


def source(text: str, root: Path = Path("/nowhere"), name: str = "case.py") -> Source:
    read = decode(text.encode(), root / name, root)
    assert isinstance(read, Source)
    return read


def patched(text: str, hunks: str) -> str:
    """Apply the hunks of one file, whose lines may lack spaces at their ends."""
    old = text.split("\n")
    new: list[str] = []
    at = 0
    for line in hunks.split("\n"):
        if match := HUNK.match(line):
            first = int(match.group(1)) - (match.group(2) != "0")
            new += old[at:first]
            at = first
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            at += 1
        elif not line.startswith("\\") and at < len(old):
            new.append(old[at])
            at += 1
    return "\n".join([*new, *old[at:]])


def changes() -> Iterator[tuple[str, str, str]]:
    """Yield each file that the fixes of a case change: its name here, and its text before and after."""
    for number, case in enumerate(collect(CASE_DOCUMENTS)):
        for unsafe in ("", " unsafe"):
            block = case.outputs.get(f"diff{unsafe}")
            for part in re.split(r"^--- a/", block.text, flags=re.MULTILINE)[1:] if block else ():
                names, _, hunks = part.partition("\n@@")
                path = names.split("\n")[0].strip()
                text = case.files[path].text
                yield f"{number}{unsafe.strip()}/{path}", text, patched(text, f"@@{hunks.rstrip()}")


OURS: Final = ["compat", "pkg"]
"""Modules that cases have in their own files."""
OUR_CONFIG: Final = f"--config=lint.isort.known-first-party={OURS}"


def ruff(root: Path, *arguments: str) -> set[str]:
    """Return the files that ruff does not accept."""
    options = ("--isolated", "--no-cache", "--config=line-length=88", ".")
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, *options],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if "format" in arguments:
        assert "formatted" in done.stdout
        return set(re.findall(r"(?:^Would reformat: |--> )([^:\n]+)", done.stdout, re.MULTILINE))
    found = json.loads(done.stdout)
    return {Path(each["filename"]).relative_to(root.resolve()).as_posix() for each in found}


def is_black(text: str) -> bool:
    return black.format_str(text, mode=black.Mode()) == text


def is_sorted(text: str) -> bool:
    return (
        isort.code(text, profile="black", known_third_party=["fsrace_lint"], known_first_party=OURS) == text
    )


def test_fixes_of_cases_keep_the_layout(tmp_path: Path) -> None:
    """Files of the cases that isort, black, and ruff accept are accepted after their fixes too."""
    found = {name: (before, after) for name, before, after in changes()}
    bad: dict[str, dict[str, set[str]]] = {"sort": {}, "format": {}}
    for side in (0, 1):
        root = tmp_path / str(side)
        for name, texts in found.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(texts[side], "utf-8")
        bad["sort"][str(side)] = ruff(root, "check", "--select=I", "--output-format=json", OUR_CONFIG)
        bad["format"][str(side)] = ruff(root, "format", "--check")
    broken = {kind: sorted(sides["1"] - sides["0"]) for kind, sides in bad.items()}
    for kind, accepts in (("isort", is_sorted), ("black", is_black)):
        broken[kind] = [name for name, (old, new) in found.items() if accepts(old) and not accepts(new)]
    assert len(found) > 100
    assert broken == {"sort": [], "format": [], "isort": [], "black": []}


FUTURE: Final = '"""Doc."""\nfrom __future__ import annotations\n\n'
TRIED: Final = "try:\n    import x\nexcept ImportError:\n    x = 0\n"
IMPORTS: Mapping[str, tuple[str, str, str]] = {
    "into the standard library": (
        "import contextlib",
        "import os\n\nimport torch\n",
        "import contextlib\nimport os\n\nimport torch\n",
    ),
    "before other sections": ("import os", "import torch\n", "import os\n\nimport torch\n"),
    "without sections": ("import os", "import sys\nimport torch\n", "import os\nimport sys\nimport torch\n"),
    "merged": (
        "from os import walk",
        "from os import makedirs, path  # a\n",
        "from os import makedirs, path, walk  # a\n",
    ),
    "merged into brackets": (
        "from os import walk",
        "from os import (\n    path,\n    unlink,\n)\n",
        "from os import (\n    path,\n    unlink,\n    walk,\n)\n",
    ),
    "merged and wrapped": (
        "from torch.distributed import get_rank",
        f"from torch.distributed import {'a' * 40}, barrier\n",
        f"from torch.distributed import (\n    {'a' * 40},\n    barrier,\n    get_rank,\n)\n",
    ),
    "merged, unsorted": (
        "from os import walk",
        "from os import path, link\n",
        "from os import path, link, walk\n",
    ),
    "one a line": (
        "from os import link",
        "from os import path\nfrom os import walk\n",
        "from os import link\nfrom os import path\nfrom os import walk\n",
    ),
    "star": (
        "from os import walk",
        "from os import *\nx = 1\n",
        "from os import *\nfrom os import walk\nx = 1\n",
    ),
    "after the future": (
        "import os",
        FUTURE + TRIED,
        f"{FUTURE}import os\n\n{TRIED}",
    ),
    "not for types": (
        "import os",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n",
        "import os\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import torch\n",
    ),
    "below a license": (
        "import os",
        "#!/bin/python\n# Copyright\n\n# f\ndef f():\n    pass\n",
        "#!/bin/python\n# Copyright\n\nimport os\n\n\n# f\ndef f():\n    pass\n",
    ),
    "below a docstring": ("import os", '"""Doc."""\n\n\nx = 1\n', '"""Doc."""\n\nimport os\n\nx = 1\n'),
    "above the first use": (
        "import os",
        "os.mkdir('a')\nimport sys\n",
        "import os\n\nos.mkdir('a')\nimport sys\n",
    ),
    "shared lines": ("import os", "import sys; x = (1,\n2)\n", "import os\n\nimport sys; x = (1,\n2)\n"),
    "skipped by isort": (
        "import contextlib",
        "# isort: skip_file\nimport torch\nimport os\n",
        "# isort: skip_file\nimport torch\nimport contextlib\nimport os\n",
    ),
    "sorted without kinds": (
        "import contextlib",
        "from abc import ABC\nimport os\n",
        "from abc import ABC\nimport contextlib\nimport os\n",
    ),
    "in the last line": ("import os", "import abc", "import abc\nimport os\n"),
    "of other line endings": ("import os", "import abc\r\nx = 1\n", "import abc\r\nimport os\nx = 1\n"),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_import_is_added_where_a_person_would(name: str) -> None:
    line, before, after = IMPORTS[name]
    assert add_imports(before, [line], "\n", Layout(source(before))) == after


SETTINGS: Mapping[str, tuple[str, str, str]] = {
    "own module": (
        '[tool.isort]\nprofile = "black"\nknown_first_party = ["torch"]\n',
        "import numpy\n\nimport torch\n",
        "import numpy\n\nimport torch\nfrom torch import save\n",
    ),
    "ruff": (
        "[tool.ruff.lint.isort]\nforce-sort-within-sections = true\n",
        "import numpy\nimport zlib_ng\n",
        "import numpy\nfrom torch import save\nimport zlib_ng\n",
    ),
    "lines after imports": (
        "[tool.isort]\nlines_after_imports = 3\n",
        "x = 1\n",
        "from torch import save\n\n\n\nx = 1\n",
    ),
    "invalid": (
        '[tool.isort]\nprofile = "none"\n',
        "import torch\n",
        "import torch\nfrom torch import save\n",
    ),
    "invalid ruff": (
        "[tool.ruff.lint.isort]\nforce-to-top = 7\n",
        "import torch\n",
        "import torch\nfrom torch import save\n",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_import_follows_the_settings(name: str, tmp_path: Path) -> None:
    settings, before, after = SETTINGS[name]
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text(settings, "utf-8")
    made = add_imports(before, ["from torch import save"], "\n", Layout(source(before, tmp_path)))
    assert made == after


@pytest.mark.parametrize(
    ("file", "settings", "limit"),
    [
        ("pyproject.toml", "[tool.black]\nline-length = 60\n", 60),
        ("pyproject.toml", "[tool.ruff]\nline-length = 61\n", 61),
        ("ruff.toml", 'line-length = 62\ntarget-version = "py311"\n', 62),
        ("setup.cfg", "[flake8]\nmax-line-length = 63  # x\n", 63),
        ("tox.ini", "[pycodestyle]\nmax_line_length = 64\n", 64),
        (".editorconfig", "root = true\n[*.py]\nmax_line_length = 65\n", 65),
        (".flake8", "[flake8]\nmax-line-length = none\n", 88),
        ("setup.cfg", "[flake8\n", 88),
        ("pyproject.toml", "[tool", 88),
    ],
)
def test_limit_of_the_settings(tmp_path: Path, file: str, settings: str, limit: int) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / file).write_text(settings, "utf-8")
    assert Layout(source("x = 1\n", tmp_path)).limit == limit


def test_what_black_formatted_stays_formatted() -> None:
    """A method that black had formatted is formatted again; the rest of the class is not."""
    head = "class A:\n    def f(self):  # a\n        x  =  1\n\n    def g(self):\n"
    call = "save(some_directory_of_the_run, another_argument_of_it, and_a_third_one=10000)"
    before = f"{head}        {call}\n"
    after = f"{head}        if rank == 0:\n            {call}\n"
    layout = Layout(source(before))
    inner = call.removeprefix("save(").removesuffix(")")
    broken = f"            save(\n                {inner}\n            )\n"
    assert layout.applied(before, after) == f"{head}        if rank == 0:\n{broken}"
    assert layout.applied(before.replace("\n", "\r\n"), after.replace("\n", "\r\n")) == (
        f"{head}        if rank == 0:\n{broken}".replace("\n", "\r\n")
    )


def test_only_long_lines_are_broken_elsewhere() -> None:
    """In a file that black did not format, a fix breaks its own lines, in the indentation of the file."""
    before = "def f( a ):\n  x( a )\n"
    call = f"with opened({'b' * 40}, {'c' * 40}) as d:"
    after = f"def f( a ):\n  {call}\n    x( a )\n"
    broken = f"with opened(\n    {'b' * 40}, {'c' * 40}\n  ) as d:"
    assert Layout(source(before)).applied(before, after) == f"def f( a ):\n  {broken}\n    x( a )\n"
    longer = f"def f( a ):\n  y = '{'e' * 120}'\n  x( a )\n"
    changed = longer.replace("x( a )", call[len("with ") : -len(" as d:")])
    assert Layout(source(longer)).applied(longer, changed) == changed


@pytest.mark.parametrize("text", ["x = 1; y = 2\n", "x = 1\r\ny = 2\n", "x = (\n", "x = 1\n\f\n"])
def test_what_cannot_be_laid_out_stays(text: str) -> None:
    after = text + f"f({'a' * 50}, {'b' * 50})\n"
    assert Layout(source(text)).applied(text, after) == after
