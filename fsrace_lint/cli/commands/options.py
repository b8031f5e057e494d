"""What check and fix share: the paths and options that choose what is looked at, the run, and its end."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fsrace_lint import report
from fsrace_lint.cli.commands import cache, completion, stdin
from fsrace_lint.cli.commands.grouped_options import OptionChoice
from fsrace_lint.cli.terminal import CLEAN, FAILED, FOUND
from fsrace_lint.config import settings
from fsrace_lint.config.settings import Settings, SettingsError
from fsrace_lint.pipeline import check, merge, project_settings, stdin_file
from fsrace_lint.pipeline.project_cache import CacheUse
from fsrace_lint.pipeline.project_settings import NAMES
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.cli.commands.stdin import Handed
    from fsrace_lint.pipeline.run import Run
    from fsrace_lint.pipeline.warm import WarmProjects


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the paths and the options that check and fix share."""
    many = functools.partial(click.option, multiple=True)
    of_rules = functools.partial(many, metavar="RULES", shell_complete=completion.some_rules)
    options: list[Callable[..., Any]] = [
        click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
        click.option(
            "--profile",
            type=OptionChoice(["default", "strict"]),
            help="Report what is worth a change, or everything.  [default: default]",
        ),
        of_rules("--select", help="Only these rules: names, codes or the beginning of codes, with commas."),
        of_rules("--extend-select", help="These rules too."),
        of_rules("--ignore", help="Not these rules."),
        many(
            "--exclude",
            metavar="GLOBS",
            help="Skip these files and folders, and not what is skipped by default.",
        ),
        many("--extend-exclude", metavar="GLOBS", help="Skip these files and folders too."),
        click.option(
            "--force-exclude",
            is_flag=True,
            help="Skip what is excluded even if it is named, as hooks name it.",
        ),
        click.option(
            "--filesystem",
            type=OptionChoice(["auto", "shared", "local"]),
            help="Whether the nodes share all paths, none, or it is not known.  [default: auto]",
        ),
        click.option("--include-tests", is_flag=True, help="Check tests and documentation too."),
        stdin.option,
        click.option(
            "--baseline",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Leave out the findings that this file holds; see --write-baseline of check.",
        ),
        click.option("--no-baseline", is_flag=True, help="Take no notice of `baseline` in the settings."),
        cache.directory,
        click.option("--no-cache", is_flag=True, help="Read everything anew, and remember nothing."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def run(
    paths: Sequence[Path],
    choices: dict[str, Any],
    watch: Watch,
    *,
    silenced: bool = False,
    suppressed: bool = False,
    counted: bool = False,
    results: bool = True,
    held: bool = False,
    handed: Handed | None = None,
    jobs: int = 1,
    warm: WarmProjects | None = None,
) -> tuple[list[tuple[Run, Checked]], Checked]:
    """Check what the user named with the settings of its projects and the choices of the command line.

    A path or a project that cannot be checked is an error of the run, which goes on.

    Args:
        paths: What the user named; nothing is the current folder.
        choices: The values of the options of `choosing`.
        watch: Tells of the run.
        silenced: Whether to list the sites that are no findings too.
        suppressed: Whether to list what comments suppress and the baseline holds too.
        counted: Whether to count what linking could not resolve.
        results: Whether what the rules said in an earlier run is good enough.
        held: Whether all files are held as they were read, for one that works on with them.
        handed: The file on standard input that is checked instead, in its place in its project.
        jobs: The most processes to use.
        warm: The projects that this process keeps, where it is one that stays.

    Returns:
        Each project's run with what it found, and all of it together.

    Raises:
        click.UsageError: An option does not say what can be done.
    """
    chosen, problems = load([handed.name] if handed else paths, choices, is_there=handed is None)
    if choices["baseline"] is not None:
        one_project("--baseline", chosen.values())
    for root in dict.fromkeys(map(settings.find_root, chosen)):
        file = root / "pyproject.toml"
        watch.reads_settings(str(file), there=file.exists())
    cache = CacheUse.RESULTS if results and not held else CacheUse.FACTS
    how: dict[str, Any] = {
        "force_exclude": choices["force_exclude"],
        "silenced": silenced,
        "suppressed": suppressed,
        "counted": counted,
        "cache": CacheUse.NOT if choices["no_cache"] else cache,
        "observer": watch,
        "jobs": jobs,
        "streaming": not held,
    }
    with watch.progress():
        if handed:
            ran = [stdin_file.check_handed(handed.data, path, of, **how) for path, of in chosen.items()]
        else:
            ran = check.check(list(chosen), chosen.__getitem__, warm=warm, **how)
    failed = Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {})
    checked = merge.merge([failed, *(one for _, one in ran)])
    if chosen and not checked.outcome.statistics.get("files") and not choices["force_exclude"]:
        named = ", ".join(visible(os.path.abspath(path)) for path in chosen)  # noqa: PTH100  # links stay
        watch.hint(f"Warning: no Python files to check in {named}")
    return ran, checked


def one_project(option: str, chosen: Iterable[Settings]) -> None:
    """Refuse an option that is about one project where several are named.

    Raises:
        click.UsageError: There are several.
    """
    roots = list(dict.fromkeys(str(one.root) for one in chosen))
    if len(roots) > 1:
        listed = " and ".join(map(visible, roots[:2]))
        raise click.UsageError(f"{option} is for one project, and {listed} are two: check them one by one")


def load(
    paths: Sequence[Path], choices: dict[str, Any], *, is_there: bool = True
) -> tuple[dict[Path, Settings], list[report.Problem]]:
    """Read the settings for what the user named.

    Args:
        paths: What the user named; nothing is the current folder.
        choices: The values of the options of `choosing`.
        is_there: Whether it must be on the disk.

    Returns:
        The settings of each path that can be checked, and why others cannot.

    Raises:
        click.UsageError: An option does not say what can be done.
    """
    changes = changes_of(choices)
    read = functools.cache(lambda root: project_settings.read_settings(root, **changes))
    chosen: dict[Path, Settings] = {}
    problems: list[report.Problem] = []
    for path in paths or [Path()]:
        if is_there and not os.path.lexists(path):
            problems.append(report.Problem(str(path), "no such file or folder"))
            continue
        try:
            chosen[path] = read(settings.find_root(path))
        except SettingsError as error:
            problems.append(report.Problem("", str(error)))
    return chosen, problems


def changes_of(choices: dict[str, Any]) -> dict[str, Any]:
    """Turn the options into fields of Settings, with None for what was not given.

    Raises:
        click.UsageError: An option does not say what can be done.
    """
    changes: dict[str, Any] = {
        "profile": choices["profile"],
        "filesystem": choices["filesystem"],
        "include_tests": choices["include_tests"] or None,
        "baseline": _baseline(choices["baseline"], ignored=choices["no_baseline"]),
        "cache_dir": cache.chosen(choices),
    }
    try:
        for key in ("select", "extend_select", "ignore"):
            given = [part for row in choices[key] for part in row.split()]
            origin = "--" + key.replace("_", "-")
            changes[key] = settings.normalize_selectors(given, NAMES, origin=origin) or None
        for key in ("exclude", "extend_exclude"):
            changes[key] = [part for row in choices[key] for part in row.split(",") if part] or None
        settings.with_overrides(Settings(root=Path()), **changes)
    except settings.SettingsError as error:
        raise click.UsageError(visible(str(error))) from None
    return changes


def _baseline(file: Path | None, *, ignored: bool) -> str | None:
    """Give the baseline that the options choose: empty for none, None for that of the settings."""
    if file is not None and ignored:
        raise click.UsageError("--baseline and --no-baseline do not go together")
    return "" if ignored else None if file is None else os.path.abspath(file)  # noqa: PTH100  # links stay


def leave(checked: Checked, watch: Watch | None = None, *, findings: int, written: bool = True) -> NoReturn:
    """Tell what went wrong in the run, and end with the documented exit code.

    Args:
        checked: What the run came to.
        watch: Tells of the run.
        findings: How many findings count.
        written: Whether all reports could be written.

    Raises:
        SystemExit: Always.
    """
    if watch is not None:
        watch.finish()
    for problem in checked.outcome.errors if watch is None or not watch.silent else ():
        where = f"{problem.path}: " if problem.path else ""
        click.echo(visible(f"Error: {where}{problem.message}"), err=True)
    failed = checked.outcome.errors or not written
    sys.exit(FAILED if failed else FOUND if findings else CLEAN)
