"""The command line: check, fix, rules, explain, prove, vendor."""

from __future__ import annotations

import difflib
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from fsrace_lint import (
    __version__,
    catalog,
    deliver,
    failures,
    pipeline,
    report,
    rules,
    settings,
    terminal,
    vendor,
)
from fsrace_lint.pipeline import Checked
from fsrace_lint.prove import prove
from fsrace_lint.report import diff
from fsrace_lint.report.words import count, visible
from fsrace_lint.settings import Settings
from fsrace_lint.terminal import CLEAN, FAILED, FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.deliver import Target
    from fsrace_lint.findings import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline import Run

INTERRUPTED: Final = 130


class _Commands(click.Group):
    """Ends every command with a documented exit code and a message, whatever happens in it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], self.commands, n=1)
            if os.path.lexists(args[0]):
                close = [f"check {args[0]}"]
            if not close:
                raise
            message = f"No such command {args[0]!r}. Did you mean {close[0]!r}?"
            raise click.UsageError(visible(message), error.ctx or ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with failures.guard(click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except failures.InternalError as error:
            click.echo(visible(f"Error: {error}"), err=True)
            ctx.exit(FAILED)


def _choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the paths and the options that check and fix share."""
    many = functools.partial(click.option, multiple=True)
    options = [
        click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
        click.option(
            "--profile",
            type=click.Choice(["default", "strict"]),
            help="Report what is probably wrong, or everything.  [default: default]",
        ),
        many("--select", metavar="RULES", help="Only these rules: codes, prefixes or names, with commas."),
        many("--extend-select", metavar="RULES", help="These rules too."),
        many("--ignore", metavar="RULES", help="Not these rules."),
        many("--exclude", metavar="GLOBS", help="Skip these, and not what is skipped by default."),
        many("--extend-exclude", metavar="GLOBS", help="Skip these too."),
        click.option(
            "--force-exclude",
            is_flag=True,
            help="Skip what is excluded even if it is named, as hooks name it.",
        ),
        click.option(
            "--filesystem",
            type=click.Choice(["auto", "shared", "local"]),
            help="What nodes share: all paths, none, or not known.  [default: auto]",
        ),
        click.option("--include-tests", is_flag=True, help="Check tests and documentation too."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Examples:
  fsrace-lint check                     the races below the current folder
  fsrace-lint check --format json src   the same for programs
  fsrace-lint fix --diff                what can be fixed, and how
  fsrace-lint explain FSR101            what a rule means
""",
)
@click.version_option(__version__, prog_name="fsrace-lint")
def main() -> None:
    """Find filesystem races in Python that many processes run at once, and fix them.

    Settings are read from [tool.fsrace-lint] in pyproject.toml; what is given here goes first.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage, bad settings or a failure of the run.
    """


@main.command(
    short_help="Report the races in files and folders.",
    epilog="""\b
Examples:
  fsrace-lint check train.py data/
  fsrace-lint check --select FSR1,shared-extraction --profile strict
  fsrace-lint check --format github
  fsrace-lint check --format json --output-file races.json
  fsrace-lint check --report sarif=races.sarif --report junit=races.xml
""",
)
@_choosing
@deliver.options
@click.option(
    "--statistics", is_flag=True, help="Count what was checked, linked, suppressed and not resolved."
)
@click.option(
    "--show-silenced", is_flag=True, help="List what is no finding too, and why: a guard, a lock, its path."
)
@click.option("--color/--no-color", default=None, help="Color the text (by default on a terminal).")
def check(  # one parameter an option
    paths: tuple[Path, ...],
    form: str,
    output_file: Path | None,
    reports: tuple[Target, ...],
    *,
    statistics: bool,
    show_silenced: bool,
    color: bool | None,
    **choices: Any,
) -> None:
    """Report the races in files and folders (by default in the current folder).

    A single file is judged together with all files of its project: guards stand elsewhere.
    """
    wanted = deliver.targets(form, output_file, reports, silenced=show_silenced)
    _, checked = _run(paths, choices, silenced=show_silenced)
    written = deliver.deliver(checked, wanted, color=color, statistics=statistics)
    _leave(checked, findings=len(checked.outcome.findings), written=written)


@main.command(
    short_help="Rewrite files so that their races are gone.",
    epilog="""\b
Examples:
  fsrace-lint fix --diff          look first
  fsrace-lint fix
  fsrace-lint fix --select FSR101 --unsafe-fixes src/
""",
)
@_choosing
@click.option("--unsafe-fixes", is_flag=True, help="Make the fixes that need a reader too.")
@click.option("--diff", "only_diff", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--color/--no-color", default=None, help="Color the diff (by default on a terminal).")
def fix(
    paths: tuple[Path, ...], *, unsafe_fixes: bool, only_diff: bool, color: bool | None, **choices: Any
) -> None:
    """Rewrite files so that their races are gone, where that can be done.

    Safe fixes only, unless told otherwise: they behave the same for one process.

    Exit status: 0 nothing is left, 1 findings are left (with --diff: there is something to change).
    """
    results, checked = _run(paths, choices)
    patches = [patch for run, one in results for patch in pipeline.repair(run, one, unsafe=unsafe_fixes)]
    refusals = [(refusal.finding, refusal.reason) for patch in patches for refusal in patch.refused]
    fixed: list[Finding] = []
    for patch in patches:
        reason = None
        if only_diff:
            _show(patch, checked, color)
        else:
            reason = pipeline.write(patch)
        if reason is None:
            fixed += patch.applied
        else:
            refusals += [(finding, reason) for finding in patch.applied]
    _tell(checked, fixed, refusals, only_diff=only_diff, unsafe=unsafe_fixes)
    left = len(checked.outcome.findings) - len(fixed)
    _leave(checked, findings=len(fixed) if only_diff else left)


@main.command("rules")
def list_rules() -> None:
    """List the rules."""
    width = max(len(loaded.rule.name) for loaded in rules.load())
    rows = [f"{loaded.rule.code}  {loaded.rule.name:<{width}}  {loaded.title}\n" for loaded in rules.load()]
    terminal.show("".join(rows))


@main.command(
    short_help="Print the page of a rule.",
    epilog="""\b
Examples:
  fsrace-lint explain FSR101
  fsrace-lint explain check-then-mkdir
""",
)
@click.argument("rule")
def explain(rule: str) -> None:
    """Print the page of a rule, named by its code or its name."""
    loaded = rules.find(rule)
    if loaded is None:
        try:
            settings.normalize_selectors([rule], rules.names(), origin="explain")
        except settings.SettingsError as error:
            hint = "" if "did you mean" in str(error) else "; `fsrace-lint rules` lists them"
            raise click.UsageError(visible(f"{error}{hint}")) from None
        raise click.UsageError(f"explain: `{visible(rule)}` is not one rule; `fsrace-lint rules` lists them")
    terminal.show(f"{loaded.rule.code} {loaded.rule.name}\n\n{loaded.page}\n")


@main.command(
    "vendor",
    short_help="Write the safe helpers into a project.",
    epilog="""\b
Examples:
  fsrace-lint vendor src/fs_safe.py
  fsrace-lint vendor --check src/fs_safe.py
""",
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--check", "only_check", is_flag=True, help="Write nothing; say whether the copy is ours and new."
)
@click.option("--force", is_flag=True, help="Write it although somebody has changed the copy.")
def vendor_helpers(path: Path, *, only_check: bool, force: bool) -> None:
    """Write the safe helpers to PATH, one file that imports nothing but the standard library.

    In a folder the file is fs_safe.py. With `helper-module` in the settings, fixes import it.

    Exit status: 0 the copy is as it should be, 1 it is not, or somebody has changed it.
    """
    file = path / vendor.NAME if path.is_dir() else path
    try:
        copy = vendor.look(file)
        if copy is not vendor.Copy.CURRENT and not only_check and (copy.is_ours or force):
            vendor.write(file)
            click.echo(visible(f"Wrote {file}."), err=True)
            return
    except OSError as error:
        click.echo(visible(f"Error: {file}: {error.strerror}"), err=True)
        sys.exit(FAILED)
    click.echo(visible(f"{file} {copy.value}."), err=True)
    sys.exit(CLEAN if copy is vendor.Copy.CURRENT else FOUND)


main.add_command(prove)


def _run(
    paths: Sequence[Path], choices: dict[str, Any], *, silenced: bool = False
) -> tuple[list[tuple[Run, Checked]], Checked]:
    """Check what the user named with the settings of its projects and the choices of the command line.

    A path or a project that cannot be checked is an error of the run, which goes on.
    """
    changes = _changes(choices)
    load = functools.cache(lambda root: _settings(root, changes))
    chosen: dict[Path, Settings] = {}
    problems: list[report.Problem] = []
    for path in paths or [Path()]:
        if not os.path.lexists(path):
            problems.append(report.Problem(str(path), "no such file or folder"))
            continue
        try:
            chosen[path] = load(settings.find_root(path))
        except (settings.SettingsError, catalog.CatalogError) as error:
            problems.append(report.Problem("", str(error)))
    results = pipeline.check(
        list(chosen), chosen.__getitem__, force_exclude=choices["force_exclude"], silenced=silenced
    )
    failed = Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {})
    checked = pipeline.merge([failed, *(one for _, one in results)])
    if chosen and not checked.outcome.statistics.get("files") and not choices["force_exclude"]:
        named = ", ".join(visible(os.path.abspath(path)) for path in chosen)  # noqa: PTH100  # links stay
        click.echo(f"Warning: no Python files to check in {named}", err=True)
    return results, checked


def _changes(choices: dict[str, Any]) -> dict[str, Any]:
    """Turn the options into fields of Settings, with None for what was not given."""
    changes: dict[str, Any] = {
        "profile": choices["profile"],
        "filesystem": choices["filesystem"],
        "include_tests": choices["include_tests"] or None,
    }
    try:
        for key in ("select", "extend_select", "ignore"):
            given = [part for row in choices[key] for part in row.split()]
            origin = "--" + key.replace("_", "-")
            changes[key] = settings.normalize_selectors(given, rules.names(), origin=origin) or None
        for key in ("exclude", "extend_exclude"):
            changes[key] = [part for row in choices[key] for part in row.split(",") if part] or None
        settings.with_overrides(Settings(root=Path()), **changes)
    except settings.SettingsError as error:
        raise click.UsageError(visible(str(error))) from None
    return changes


def _settings(root: Path, changes: dict[str, Any]) -> Settings:
    chosen = settings.with_overrides(settings.load(root, rules.names()), **changes)
    catalog.extended(chosen.catalog, chosen.catalog_origin)
    return chosen


def _show(patch: Patch, checked: Checked, color: bool | None) -> None:  # noqa: FBT001  # None leaves it to the terminal
    source = checked.sources[patch.path]
    shown = diff.unified(patch.path, patch.before, patch.after, source.encoding)
    if terminal.is_colored(color):
        terminal.show(diff.colorize(shown))
    else:
        terminal.emit(shown.encode("utf-8" if source.bom else source.encoding))


def _tell(
    checked: Checked,
    fixed: Sequence[Finding],
    refusals: Sequence[tuple[Finding, str]],
    *,
    only_diff: bool,
    unsafe: bool,
) -> None:
    """Say on standard error what was fixed, what was refused and why, and what is left."""
    for finding, reason in refusals:
        place = f"{finding.place.path}:{finding.place.span.line}:{finding.place.span.column}"
        click.echo(visible(f"{place}: {finding.code} not fixed: {reason}"), err=True)
    verb = "Would fix" if only_diff else "Fixed"
    files = len({finding.place.path for finding in fixed})
    left = len(checked.outcome.findings) - len(fixed)
    hint = "" if unsafe else _unsafe_hint(checked)
    click.echo(
        f"{verb} {count(len(fixed), 'problem')} in {count(files, 'file')}; {left} left{hint}.", err=True
    )


def _unsafe_hint(checked: Checked) -> str:
    unsafe = sum(
        1 for f in checked.outcome.findings if f.fix is not None and f.fix.applicability.value == "unsafe"
    )
    return f", {unsafe} of them fixable with --unsafe-fixes" if unsafe else ""


def _leave(checked: Checked, *, findings: int, written: bool = True) -> None:
    for problem in checked.outcome.errors:
        where = f"{problem.path}: " if problem.path else ""
        click.echo(visible(f"Error: {where}{problem.message}"), err=True)
    failed = checked.outcome.errors or not written
    sys.exit(FAILED if failed else FOUND if findings else CLEAN)
