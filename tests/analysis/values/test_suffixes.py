"""Tests of the suffix of a path whose last characters are known.

Shows: `analysis/values/suffixes.py`
"""

from __future__ import annotations

import pytest
from support.linked import project

from fsrace_lint.analysis.values.suffixes import suffix_test
from fsrace_lint.syntax import model as m

CODE = """\
import os
import tarfile
import zipfile
from pathlib import Path

URL = "https://example.com/data.tar.gz"

def main(d, name):
    path = os.path.join(d, "model.zip")
    for name in d:
        mark({test})
"""
"""Code in which `path` ends with `.zip`, and `URL` with `.tar.gz`. The end of `name` is unknown."""


def outcome(test: str) -> bool | None:
    function = project({"main.py": CODE.replace("{test}", test)}).flows
    (main,) = (each for module in function.table.modules for each in module.top_functions.values())
    (event,) = [each for each in function.call_sites(main) if each.call.function == m.Name("mark")]
    return suffix_test(event.call.arguments[0], event.state.scope, lambda _: "")


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ('path.endswith(".zip")', True),
        ('path.endswith(".tar")', False),
        ('path.endswith((".tar", ".zip"))', True),
        ('path.endswith((".tar", ".tgz"))', False),
        ('path.endswith("my-model.zip")', None),
        ("path.endswith(name)", None),
        ("path.endswith((name, '.tar'))", None),
        ('name.endswith(".zip")', None),
        ('d.endswith(".zip")', None),
        ('other().endswith(".zip")', None),
        ('not path.endswith(".zip")', False),
        ('not name.endswith(".zip")', None),
        ('path.endswith(".tar") or path.endswith(".tgz")', False),
        ('path.endswith(".zip") or name', True),
        ('path.endswith(".tar") or name', None),
        ('path.endswith(".zip") and path.endswith(".tar")', False),
        ('path.lower().endswith(".ZIP".lower())', None),
        ('"A.ZIP".lower().endswith(".zip")', True),
        ('Path(path).suffix == ".zip"', True),
        ('Path(path).suffix != ".zip"', False),
        ('Path(path).suffix in {".tar", ".tgz"}', False),
        ('Path(path).suffix not in (".tar", ".tgz")', True),
        ("Path(path).suffix == name", None),
        ('Path(name).suffix == ".zip"', None),
        ('os.path.splitext(path)[1] == ".tar"', False),
        ('os.path.splitext(path)[-1] == ".zip"', True),
        ('os.path.splitext(path)[0] == ".zip"', None),
        ("zipfile.is_zipfile(path)", None),
        ("tarfile.is_tarfile(path)", False),
        ("zipfile.is_zipfile(URL)", False),
        ("zipfile.is_zipfile(name)", None),
        ("os.path.exists(path)", None),
        ('os.path.basename(URL).endswith(".gz")', True),
        ('URL.split("/")[-1].endswith(".zip")', False),
        ('URL.split(".")[-1].endswith(".gz")', None),
        ('Path(URL).name.endswith(".zip")', False),
        ('f"{d}/a.tar".endswith(".tar")', True),
        ('(d + "/a.tar").endswith(".zip")', False),
        ('(Path(d) / "a.tar").name.endswith(".zip")', False),
        (f'{"str(" * 12}"a.zip"{")" * 12}.endswith(".zip")', None),
    ],
)
def test_suffixes(test: str, expected: bool | None) -> None:
    assert outcome(test) is expected
