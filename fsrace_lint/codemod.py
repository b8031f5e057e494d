"""The fixes as a command of libcst's codemod tool, which brings the files and writes them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from libcst import parse_module
from libcst.codemod import CodemodCommand, SkipFile

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.pipeline import project_settings, repair
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    import libcst as cst
    from libcst.codemod import CodemodContext

    from fsrace_lint.fixes import Refusal


class FixCommand(CodemodCommand):
    """Rewrite files so that their races are gone: what `fsrace-lint fix` does, file by file."""

    DESCRIPTION = "Rewrite files so that their races are gone, as `fsrace-lint fix` does."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Declare the options that `fsrace-lint fix` has too."""
        arg_parser.add_argument(
            "--select", default="", help="Fix these rules only: codes, prefixes or names."
        )
        arg_parser.add_argument(
            "--unsafe-fixes", action="store_true", help="Make the fixes that need a reader too."
        )

    def __init__(self, context: CodemodContext, select: str = "", *, unsafe_fixes: bool = False) -> None:
        """Prepare for one file.

        Args:
            context: What libcst says of the file.
            select: The rules to fix, with commas between them; all where empty.
            unsafe_fixes: Whether fixes that need a reader are wanted too.
        """
        super().__init__(context)
        self.select = select
        self.unsafe_fixes = unsafe_fixes

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """Give the file with its fixes made.

        Raises:
            SkipFile: The file has no name, is not to be checked, or is not what is on the disk.
        """
        if self.context.filename is None:
            raise SkipFile("the fixes need the other files of the project, and this one has no name")
        file = Path(self.context.filename).resolve()
        run = _project(settings.find_root(file), self.select)
        relative = next((name for name, known in run.files.items() if known.source.file == file), None)
        if relative is None:
            raise SkipFile(f"{file} is excluded by the settings")
        one = run.narrowed(relative)
        patches = repair.repair(one, one.check(), unsafe=self.unsafe_fixes)
        if not patches:
            return tree
        (patch,) = patches
        self._warn(patch.refused)
        if patch.before != tree.bytes:
            raise SkipFile(f"{file} was changed in the meantime")
        return parse_module(patch.after)

    def _warn(self, refused: Sequence[Refusal]) -> None:
        for refusal in refused:
            self.warn(f"{refusal.finding.code} not fixed: {refusal.reason}")


@functools.cache
def _project(root: Path, select: str) -> Run:
    """Read a project once a process."""
    codes = settings.normalize_selectors([select], rules.names(), origin="--select") if select else None
    return Run(project_settings.read_settings(root, select=codes), ())
