"""The command line: check, fix, rules, explain."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fsrace_lint import __version__, pipeline, report, rules, settings
from fsrace_lint.catalog import CatalogError
from fsrace_lint.report import diff
from fsrace_lint.report.words import count, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.findings import Finding
    from fsrace_lint.fixes import Patch
    from fsrace_lint.pipeline import Checked, Run
    from fsrace_lint.settings import Settings

CLEAN, FOUND, FAILED = 0, 1, 2
"""The exit codes: nothing found; something found; wrong usage, bad settings or a failure of the run."""


class _Commands(click.Group):
    """Points out `check` where a path was given for a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if args and os.path.lexists(args[0]):
                raise click.UsageError(f"{error.message} Did you mean `check {args[0]}`?", ctx) from None
            raise


def _choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the paths and the options that check and fix share."""
    options = [
        click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
        click.option(
            "--profile",
            type=click.Choice(["default", "strict"]),
            help="What is probably wrong, or everything.",
        ),
        click.option(
            "--select", multiple=True, metavar="RULES", help="Only these: codes, prefixes or names."
        ),
        click.option("--extend-select", multiple=True, metavar="RULES", help="These rules too."),
        click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules."),
        click.option(
            "--exclude", multiple=True, metavar="GLOB", help="Skip these, not what is skipped by default."
        ),
        click.option("--extend-exclude", multiple=True, metavar="GLOB", help="Skip these too."),
        click.option("--include-tests", is_flag=True, help="Check tests and documentation too."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="fsrace-lint")
def main() -> None:
    """Find filesystem races in Python that many processes run at once, and fix them.

    Exit status: 0 nothing found, 1 findings, 2 wrong usage, bad settings or a failure of the run.
    """


@main.command()
@_choosing
@click.option(
    "--format", "form", type=click.Choice(sorted(report.FORMATS)), default="text", show_default=True
)
@click.option(
    "--output-file", type=click.Path(dir_okay=False, path_type=Path), help="Write there, not to the screen."
)
@click.option(
    "--statistics", is_flag=True, help="Count what was checked, linked, suppressed and not resolved."
)
@click.option("--color/--no-color", default=None, help="Color the text (by default on a terminal).")
def check(  # one parameter an option
    paths: tuple[Path, ...],
    form: str,
    output_file: Path | None,
    *,
    statistics: bool,
    color: bool | None,
    **choices: Any,
) -> None:
    """Report the races in files and folders (by default in the current folder)."""
    _, checked = _run(paths, choices)
    colored = output_file is None and _is_colored(color)
    options = report.Options(color=colored, width=_width(), statistics=statistics)
    shown = report.render(form, checked.outcome, checked.sources, options)
    if output_file is None:
        _print(shown)
    else:
        _write(output_file, shown)
    _leave(checked, findings=len(checked.outcome.findings))


@main.command()
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
    for loaded in rules.load():
        click.echo(f"{loaded.rule.code}  {loaded.rule.name:<24}  {loaded.title}")


@main.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Print the page of a rule, named by its code or its name."""
    loaded = rules.find(rule)
    if loaded is None:
        try:
            settings.normalize_selectors([rule], rules.names(), origin="explain")
        except settings.SettingsError as error:
            raise click.UsageError(str(error)) from None
        raise click.UsageError(f"explain: {rule!r} names several rules; see `fsrace-lint rules`.")
    click.echo(f"{loaded.rule.code} {loaded.rule.name}\n\n{loaded.page}")


def _run(paths: Sequence[Path], choices: dict[str, Any]) -> tuple[list[tuple[Run, Checked]], Checked]:
    """Check what the user named with the settings of its projects and the choices of the command line."""
    named = list(paths) or [Path()]
    missing = [path for path in named if not os.path.lexists(path)]
    if missing:
        listed = ", ".join(visible(str(path)) for path in missing)
        raise click.UsageError(f"no such file or folder: {listed}")
    try:
        results = pipeline.check(named, lambda path: _settings(path, choices))
    except (settings.SettingsError, CatalogError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(FAILED)
    checked = pipeline.merge(one for _, one in results)
    if not checked.outcome.statistics.get("files"):
        click.echo("Warning: no Python files to check here.", err=True)
    return results, checked


def _settings(path: Path, choices: dict[str, Any]) -> Settings:
    names = rules.names()
    changes: dict[str, Any] = {
        "profile": choices["profile"],
        "include_tests": choices["include_tests"] or None,
    }
    for key in ("select", "extend_select", "ignore"):
        given = [part for row in choices[key] for part in row.replace(",", " ").split()]
        option = "--" + key.replace("_", "-")
        changes[key] = settings.normalize_selectors(given, names, origin=option) if given else None
    for key in ("exclude", "extend_exclude"):
        changes[key] = [part for row in choices[key] for part in row.split(",") if part] or None
    return settings.with_overrides(settings.load(settings.find_root(path), names), **changes)


def _show(patch: Patch, checked: Checked, color: bool | None) -> None:  # noqa: FBT001  # None leaves it to the terminal
    source = checked.sources[patch.path]
    shown = diff.unified(patch.path, patch.before, patch.after, source.encoding)
    if _is_colored(color):
        _print(diff.colorize(shown))
    else:
        click.echo(shown.encode("utf-8" if source.bom else source.encoding), nl=False)


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


def _leave(checked: Checked, *, findings: int) -> None:
    for problem in checked.outcome.errors:
        click.echo(visible(f"Error: {problem.path}: {problem.message}"), err=True)
    sys.exit(FAILED if checked.outcome.errors else FOUND if findings else CLEAN)


def _is_colored(choice: bool | None) -> bool:  # noqa: FBT001  # None leaves it to the terminal
    if choice is not None:
        return choice
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def _print(shown: str) -> None:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(shown.encode(encoding, "backslashreplace"), nl=False)


def _write(file: Path, shown: str) -> None:
    """Write a report beside its place, then put it there: a reader sees the old one or the new one."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(shown.encode("utf-8", "backslashreplace"))
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        click.echo(f"Error: {file} cannot be written: {error.strerror}", err=True)
        sys.exit(FAILED)
