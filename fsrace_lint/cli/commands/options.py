"""Shared by `check` and `fix`: the options that select files and rules, the run, and the exit."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from fsrace_lint import report
from fsrace_lint.cli.commands import cache, completion, stdin
from fsrace_lint.cli.commands.grouped_options import OptionChoice
from fsrace_lint.cli.terminal import CLEAN, FAILED, FOUND
from fsrace_lint.config import settings
from fsrace_lint.config.roots import find_root
from fsrace_lint.config.settings import Settings
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.pipeline import check, discover, merge, project_settings, stdin_file
from fsrace_lint.pipeline.project_cache import CacheUse
from fsrace_lint.pipeline.project_settings import NAMES
from fsrace_lint.pipeline.run import Checked
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fsrace_lint.cli.commands.progress_bar import Watch
    from fsrace_lint.cli.commands.stdin import Handed
    from fsrace_lint.pipeline.run import Run
    from fsrace_lint.pipeline.warm import WarmProjects


_ParamType: Any = click.ParamType


class _Configuration(_ParamType):  # type: ignore[misc]
    """A settings file, or a setting. An environment variable contains one of these."""

    name = "configuration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """Return the file or the setting.

        Raises:
            click.BadParameter: The value is neither.
        """
        file = Path(value)
        if "\0" not in value and file.is_file():
            return Path(os.path.abspath(file))  # noqa: PTH100  # links are not resolved
        if "=" not in value:
            self.fail(f"`{visible(value)}` is neither an existing file nor of the form KEY=VALUE", param, ctx)
        return str(value)

    def split_envvar_value(self, rv: str) -> list[str]:
        """Return the value of the variable as the only value of the option."""
        return [rv]


def _per_file_ignores(
    ctx: click.Context, param: click.Parameter, given: tuple[str, ...]
) -> dict[str, list[str]] | None:
    """Return the selectors that the option gives for each pattern, or None if it is not given."""
    found: dict[str, list[str]] = {}
    for pair in (part.strip() for row in given for part in row.split(",")):
        pattern, colon, selector = pair.rpartition(":")
        if pair and not (pattern.strip() and colon and selector.strip()):
            message = f"`{visible(pair)}` is not of the form GLOB:RULE, for example `scripts/*:FSR2`"
            raise click.BadParameter(message, ctx, param)
        if pair:
            found.setdefault(pattern.strip(), []).append(selector.strip())
    return found or None


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the paths and the options that `check` and `fix` share."""
    many = functools.partial(click.option, multiple=True)
    of_rules = functools.partial(many, metavar="RULES", shell_complete=completion.some_rules)
    options: list[Callable[..., Any]] = [
        click.argument("paths", nargs=-1, type=click.Path(path_type=Path)),
        click.option(
            "--profile",
            type=OptionChoice(["default", "strict"]),
            help="Report likely problems (default), or every possible problem (strict).  [default: default]",
        ),
        click.option(
            "--min-severity",
            type=OptionChoice(list(settings.SEVERITIES)),
            help="Report only findings of at least this severity.  [default: warning; note if strict]",
        ),
        click.option(
            "--min-confidence",
            type=OptionChoice(list(settings.CONFIDENCES)),
            help="Report only findings of at least this confidence.  [default: low]",
        ),
        of_rules("--select", help="Enable only these rules: comma-separated names, codes, or code prefixes."),
        of_rules("--extend-select", help="Also enable these rules."),
        of_rules("--ignore", help="Disable these rules."),
        many(
            "--per-file-ignores",
            metavar="GLOB:RULE",
            callback=_per_file_ignores,
            help="Disable rules in the files that match patterns, instead of the `per-file-ignores` setting:"
            " comma-separated pairs.",
        ),
        many(
            "--exclude",
            metavar="GLOBS",
            help="Exclude these files and directories instead of the default ones.",
        ),
        many("--extend-exclude", metavar="GLOBS", help="Also exclude these files and directories."),
        click.option(
            "--force-exclude",
            is_flag=True,
            help="Apply exclusions even to files passed on the command line (use this in pre-commit).",
        ),
        click.option(
            "--filesystem",
            type=OptionChoice(["auto", "shared", "local"]),
            help="Whether nodes share all paths (shared) or none (local).  [default: auto]",
        ),
        click.option("--include-tests", is_flag=True, help="Also check tests and documentation."),
        stdin.option,
        click.option(
            "--baseline",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Do not report the findings listed in this file. `check --write-baseline` creates it.",
        ),
        click.option("--no-baseline", is_flag=True, help="Ignore the `baseline` setting."),
        many(
            "--config",
            metavar="FILE|KEY=VALUE",
            type=_Configuration(),
            help="Read this file instead of the settings files of the project, or change one setting, as in"
            " --config 'exclude = [\"build\"]'. Repeatable.",
        ),
        click.option("--isolated", is_flag=True, help="Ignore all settings files."),
        cache.directory,
        click.option("-n", "--no-cache", is_flag=True, help="Do not read or write the cache."),
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
    """Check the named paths with the settings of their projects and the command-line options.

    A path or project that cannot be checked is an error of the run, and the run continues.

    Args:
        paths: The paths that the user named. If empty, the current directory.
        choices: The values of the options of `choosing`.
        watch: Prints messages and the progress.
        silenced: Whether to also list operations that were analyzed and not reported.
        suppressed: Whether to also list findings that comments or the baseline suppress.
        counted: Whether to count what linking could not resolve.
        results: Whether cached results of rules may be used.
        held: Whether to keep all sources in memory for later use.
        handed: The file on standard input to check instead of `paths`.
        jobs: The maximum number of processes.
        warm: The projects in memory, if this process is the daemon.

    Returns:
        The run and the result of each project, and the merged result.

    Raises:
        click.UsageError: An option has an invalid value.
    """
    chosen, problems = load([handed.name] if handed else paths, choices, is_there=handed is None)
    if choices["baseline"] is not None:
        one_project("--baseline", chosen.values())
    for file in dict.fromkeys(one.file for one in chosen.values()):
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
    ran: list[tuple[Run, Checked]] = []
    with watch.progress(), problems_of_settings(problems):
        if handed:
            ran = [stdin_file.check_handed(handed.data, path, of, **how) for path, of in chosen.items()]
        else:
            ran = check.check(list(chosen), chosen.__getitem__, warm=warm, **how)
    failed = Checked(report.Outcome(errors=tuple(dict.fromkeys(problems))), {})
    checked = merge.merge([failed, *(one for _, one in ran)])
    # an editor passes each file that it opens
    is_expected = handed is not None and choices["force_exclude"]
    if ran and not checked.outcome.statistics.get("files") and not is_expected:
        watch.hint(_nothing_to_check(chosen, force_exclude=choices["force_exclude"]))
    return ran, checked


@contextlib.contextmanager
def problems_of_settings(problems: list[report.Problem]) -> Iterator[None]:
    """Add mistakes in the settings below the root of a project to the problems."""
    try:
        yield
    except SettingsError as error:
        problems.append(report.Problem("", str(error)))


def _nothing_to_check(chosen: Mapping[Path, Settings], *, force_exclude: bool) -> str:
    """Return a warning that names what was skipped, except hidden files such as `.git`."""
    skipped: dict[str, str] = {}
    for path, of in chosen.items():
        discover.look([path], of, force_exclude=force_exclude, told=skipped.__setitem__)
    reasons = [reason for path, reason in skipped.items() if not os.path.basename(path).startswith(".")]  # noqa: PTH119  # not a `Path`
    named = ", ".join(visible(os.path.abspath(path)) for path in chosen)  # noqa: PTH100  # links are not resolved
    warning = f"Warning: no Python files to check in {named}"
    if not reasons:
        return warning
    listed = ", ".join(f"{number} {reason}" for reason, number in Counter(reasons).items())
    return f"{warning}. Skipped: {listed}. `--verbose` lists each skipped path."


def one_project(option: str, chosen: Iterable[Settings]) -> None:
    """Refuse an option that supports only one project if there are more.

    Raises:
        click.UsageError: The paths belong to multiple projects.
    """
    roots = list(dict.fromkeys(str(one.root) for one in chosen))
    if len(roots) > 1:
        listed = " and ".join(map(visible, roots[:2]))
        raise click.UsageError(f"{option} works on one project at a time, but the paths belong to {listed}")


def load(
    paths: Sequence[Path], choices: dict[str, Any], *, is_there: bool = True
) -> tuple[dict[Path, Settings], list[report.Problem]]:
    """Read the settings for the named paths.

    Args:
        paths: The paths that the user named. If empty, the current directory.
        choices: The values of the options of `choosing`.
        is_there: Whether the paths must exist.

    Returns:
        The settings of each path that can be checked, and the problems of the others.

    Raises:
        click.UsageError: An option has an invalid value.
    """
    return settings_of(paths, changes_of(choices), is_there=is_there)


class _Chosen(dict[Path, Settings]):
    """The settings of the project of each path, read on first access."""

    def __init__(self, named: Sequence[Path], changes: dict[str, Any]) -> None:
        """Start without settings."""
        super().__init__()
        self._root_of = functools.cache(functools.partial(find_root, named=tuple(named)))
        self._read = functools.cache(functools.partial(project_settings.read_settings, **changes))

    def __missing__(self, path: Path) -> Settings:
        self[path] = found = self._read(self._root_of(path if path.is_dir() else path.parent))
        return found


def settings_of(
    paths: Sequence[Path], changes: dict[str, Any], *, is_there: bool = True
) -> tuple[dict[Path, Settings], list[report.Problem]]:
    """Read the settings for the named paths, like `load`.

    Args:
        paths: As for `load`.
        changes: The options as fields of `Settings`.
        is_there: As for `load`.
    """
    paths = paths or [Path()]
    chosen = _Chosen(paths, changes)
    problems: list[report.Problem] = []
    for path in paths:
        if is_there and not os.path.lexists(path):
            problems.append(report.Problem(str(path), "no such file or directory"))
            continue
        try:
            _ = chosen[path]
        except SettingsError as error:
            problems.append(report.Problem("", str(error)))
    return chosen, problems


def changes_of(choices: dict[str, Any]) -> dict[str, Any]:
    """Return the options as fields of `Settings`. Options that are not given are None.

    Raises:
        click.UsageError: An option has an invalid value.
    """
    changes: dict[str, Any] = {
        "profile": choices["profile"],
        "min_severity": choices["min_severity"],
        "min_confidence": choices["min_confidence"],
        "fail_on": choices.get("fail_on"),
        "fix_tiers": choices.get("fix_tiers"),
        "filesystem": choices["filesystem"],
        "include_tests": choices["include_tests"] or None,
        "baseline": _baseline(choices["baseline"], ignored=choices["no_baseline"]),
        "cache_dir": cache.chosen(choices),
        "ignore_noqa": choices.get("ignore_noqa") or None,
        "config_file": _config_file(choices),
        "is_isolated": choices.get("isolated") or None,
    }
    try:
        for key in ("select", "extend_select", "ignore"):
            given = [part for row in choices[key] for part in row.split()]
            origin = "--" + key.replace("_", "-")
            changes[key] = settings.normalize_selectors(given, NAMES, origin=origin) or None
        if choices.get("per_file_ignores") is not None:
            changes["per_file_ignores"] = [
                (pattern, settings.normalize_selectors(given, NAMES, origin="--per-file-ignores"))
                for pattern, given in choices["per_file_ignores"].items()
            ]
        for key in ("exclude", "extend_exclude"):
            changes[key] = [part for row in choices[key] for part in row.split(",") if part] or None
        inline: dict[str, Any] = {}
        for text in choices.get("config", ()):
            inline |= settings.fields_of(text, NAMES) if isinstance(text, str) else {}
        changes |= {key: value for key, value in inline.items() if changes.get(key) is None}
        settings.with_overrides(Settings(root=Path()), **changes)
    except SettingsError as error:
        raise click.UsageError(visible(str(error))) from None
    return changes


def _config_file(choices: dict[str, Any]) -> str | None:
    """Return the file that replaces the settings files, or None."""
    files = [str(given) for given in choices.get("config", ()) if isinstance(given, Path)]
    if len(files) > 1:
        raise click.UsageError("--config can name only one file")
    if files and choices["isolated"]:
        raise click.UsageError("--config FILE cannot be used with --isolated")
    return files[0] if files else None


def _baseline(file: Path | None, *, ignored: bool) -> str | None:
    """Return the baseline that the options choose: empty for none, or None to use the settings."""
    if file is not None and ignored:
        raise click.UsageError("--baseline cannot be used with --no-baseline")
    return "" if ignored else None if file is None else os.path.abspath(file)  # noqa: PTH100  # links are not resolved


def failing(ran: Iterable[tuple[Run, Checked]]) -> int:
    """Return the number of reported findings that make a check fail."""
    return sum(
        run.settings_at(finding.place.path).fails_on(finding.severity.value, finding.code)
        for run, checked in ran
        for finding in checked.outcome.findings
    )


def leave(checked: Checked, watch: Watch | None = None, *, findings: int, written: bool = True) -> NoReturn:
    """Print the errors of the run, and exit with the documented status.

    Args:
        checked: The merged result.
        watch: Prints messages.
        findings: The number of findings that count for the status.
        written: Whether all reports were written.

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
