"""The fixes as a command of libcst's codemod tool, which reads and writes the files."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from libcst import parse_module
from libcst.codemod import CodemodCommand, SkipFile

from fsrace_lint import rules
from fsrace_lint.config import settings
from fsrace_lint.config.roots import find_root
from fsrace_lint.pipeline import project_settings, repair
from fsrace_lint.pipeline.run import Run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    import libcst as cst
    from libcst.codemod import CodemodContext

    from fsrace_lint.fixes import Refusal


class FixCommand(CodemodCommand):
    """Fix filesystem races file by file, as `fsrace-lint fix` does."""

    DESCRIPTION = "Fix filesystem races, as `fsrace-lint fix` does."

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Declare the options that this command shares with `fsrace-lint fix`."""
        arg_parser.add_argument(
            "--select",
            default="",
            help="Fix only these rules: comma-separated names, codes, or code prefixes.",
        )
        arg_parser.add_argument(
            "--unsafe-fixes", action="store_true", help="Also apply fixes that need review."
        )

    def __init__(self, context: CodemodContext, select: str = "", *, unsafe_fixes: bool = False) -> None:
        """Initialize for one file.

        Args:
            context: The context of libcst for the file.
            select: The rules to fix, separated by commas; empty for all.
            unsafe_fixes: Whether to apply fixes that need review.
        """
        super().__init__(context)
        self.select = select
        self.unsafe_fixes = unsafe_fixes

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """Return the file with its fixes applied.

        Raises:
            SkipFile: The file has no name, is excluded, or differs from the file on the disk.
        """
        if self.context.filename is None:
            raise SkipFile("a file without a name cannot be fixed, because its project is unknown")
        file = Path(self.context.filename).resolve()
        run = _project(find_root(file), self.select)
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
            raise SkipFile(f"{file} was changed during the run")
        return parse_module(patch.after)

    def _warn(self, refused: Sequence[Refusal]) -> None:
        for refusal in refused:
            self.warn(f"{refusal.finding.code} not fixed: {refusal.reason}")


@functools.cache
def _project(root: Path, select: str) -> Run:
    """Read a project, once for each process."""
    codes = settings.normalize_selectors([select], rules.names(), origin="--select") if select else None
    return Run(project_settings.read_settings(root, select=codes), ())
