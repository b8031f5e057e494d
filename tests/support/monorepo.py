"""Small generated monorepos, and the ways to check their files."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from fsrace_lint.cli.commands.options import settings_of
from fsrace_lint.integrations.server.analysis import Analysis
from fsrace_lint.integrations.server.sessions import place
from fsrace_lint.pipeline import check as checking
from support import template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fsrace_lint.pipeline.run import Checked
    from fsrace_lint.pipeline.warm import WarmProjects

WORK = """\
import os


def prepare(out):
    if not os.path.exists(out):
        os.makedirs(out)
    with open(out + "/latest", "w") as stream:
        stream.write("1")
"""
TRAIN = """\
import torch.distributed as dist

from {package}.work import prepare


def main(out):
    {guard}
    dist.barrier()


if __name__ == "__main__":
    dist.init_process_group()
    main("out")
"""
GUARDS = ("prepare(out)", "if dist.get_rank() == 0:\n        prepare(out)")
PACKAGES = ("one", "libs/two", "libs/deep/three")
TABLE = "[tool.fsrace-lint]\n"
TABLES = (
    'profile = "strict"\n',
    'ignore = ["FSR101"]\n',
    'select = ["FSR2"]\nextend-select = ["FSR106"]\n',
    'min-severity = "error"\n',
    'per-file-ignores = {"work.py" = ["FSR1"], "pkg/train.py" = ["ALL"]}\n',
    'extend-exclude = ["train.py"]\n',
    'root = "."\n',
    'filesystem = "shared"\n',
    '[[tool.fsrace-lint.programs]]\nfile = "train.py"\nprocesses = 1\n',
    "",
)
MARKERS = (".git/HEAD", "setup.py", "pyproject.toml")

Row = tuple[str, int, str, str]


class Repository(NamedTuple):
    """The texts of the files of a repository, and those that are checked."""

    files: dict[str, str]

    @property
    def code(self) -> list[str]:
        """The Python files in packages."""
        return [name for name in self.files if name.endswith(("work.py", "train.py"))]

    @property
    def folders(self) -> list[str]:
        """The directories with packages, and those above."""
        found = {str(folder) for name in self.code for folder in Path(name).parents}
        return sorted(found)

    def write(self, top: Path) -> None:
        """Write the files below a directory."""
        for name, text in self.files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(text, encoding="utf-8")


@st.composite
def repositories(draw: st.DrawFn) -> Repository:
    """Draw a repository of packages that import each other, each with or without a table."""
    files = {draw(st.sampled_from(MARKERS)): ""}
    if draw(st.booleans()):
        files["pyproject.toml"] = TABLE + draw(st.sampled_from(TABLES[:-3]))
    names = [package.rpartition("/")[2] for package in PACKAGES]
    for package, name in zip(PACKAGES, names, strict=True):
        files[f"{package}/{name}/__init__.py"] = ""
        files[f"{package}/{name}/work.py"] = WORK
        used = draw(st.sampled_from(names))
        guard = draw(st.sampled_from(GUARDS))
        files[f"{package}/train.py"] = TRAIN.format(package=used, guard=guard)
        kind = draw(st.sampled_from(["table", "extend", "setup.py", "repository", "plain", "nothing"]))
        text = draw(st.sampled_from(TABLES))
        if kind == "extend" and "pyproject.toml" in files:
            above = "../" * (package.count("/") + 1)
            text = f'extend = "{above}pyproject.toml"\n{text}'
        if kind == "extend" and not files.get("pyproject.toml"):
            kind = "plain"
        files |= {
            "table": {f"{package}/pyproject.toml": TABLE + text},
            "extend": {f"{package}/pyproject.toml": TABLE + text},
            "setup.py": {f"{package}/setup.py": ""},
            "repository": {f"{package}/.git/HEAD": ""},
            "plain": {f"{package}/pyproject.toml": "[tool.black]\n"},
            "nothing": {},
        }[kind]
    return Repository(files)


def rows(checked: Iterable[Checked]) -> set[Row]:
    """Return the findings of some projects."""
    found = (finding for one in checked for finding in one.outcome.findings)
    return {(finding.place.path, finding.place.span.line, finding.code, finding.message) for finding in found}


def by_check(names: Sequence[str], warm: WarmProjects | None = None) -> tuple[set[Row], set[str]]:
    """Check files and directories as the command line does.

    Returns:
        The findings, and the files that were checked.
    """
    chosen, problems = settings_of([Path(name) for name in names], {})
    assert problems == []
    ran = checking.check(list(chosen), chosen.__getitem__, warm=warm, force_exclude=True)
    checked = {run.files[relative].path for run, _ in ran for relative in run.targets}
    return rows(one for _, one in ran), checked


def by_server(names: Sequence[str]) -> set[Row]:
    """Return the findings that the language server shows in files."""
    found: set[Row] = set()
    for name in names:
        file = Path(name).absolute()
        analysis = Analysis(place(file, [Path.cwd()]))
        analysis.update({file: file.read_text(encoding="utf-8")}, set(), lambda: None)
        shown = analysis.judge(file, lambda: None)
        found |= {(one.place.path, one.place.span.line, one.code, one.message) for one in shown}
    return found


def by_flake8(names: Sequence[str]) -> set[Row]:
    """Return the findings that flake8 prints."""
    form = "--format=%(path)s\t%(row)d\t%(code)s\t%(text)s"
    command = [*template.command("flake8"), "--isolated", "--jobs=1", "--select=FSR", form, *names]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=120)
    assert done.stderr == ""
    lines = (line.removeprefix("./").split("\t") for line in done.stdout.splitlines())
    return {(path, int(line), code, message) for path, line, code, message in lines}


def of(found: set[Row], files: Mapping[str, object] | set[str]) -> set[Row]:
    """Return the findings in some files."""
    return {row for row in found if row[0] in files}
