"""The commands `rules` and `explain`, which document the rules."""

from __future__ import annotations

import functools
import re
import sys
import textwrap
from typing import TYPE_CHECKING, Final

import click
import msgspec

from fsrace_lint import rules
from fsrace_lint.cli import terminal
from fsrace_lint.cli.commands import completion
from fsrace_lint.cli.commands.grouped_options import OptionChoice
from fsrace_lint.config import settings
from fsrace_lint.config.validation import SettingsError
from fsrace_lint.report import pages
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.rules import LoadedRule

_LABEL: Final = re.compile(r"^[A-Z][a-z ]+:(?= |$)")
_WIDEST: Final = 100


def _format(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option for the output format."""
    return click.option(
        "--format",
        "form",
        type=OptionChoice(["text", "json"]),
        default="text",
        help="Output format.  [default: text]",
    )(command)


@click.command(
    "rules",
    short_help="List the rules.",
    epilog="""\b
Examples:
  fsrace-lint rules
  fsrace-lint rules --format json
""",
)
@_format
def list_rules(form: str) -> None:
    """List all rules with their codes, names, and titles."""
    if form == "json":
        terminal.show(_json(rules.load()))
        return
    width = max(len(loaded.rule.name) for loaded in rules.load())
    rows = [f"{loaded.rule.code}  {loaded.rule.name:<{width}}  {loaded.title}\n" for loaded in rules.load()]
    terminal.show("".join(rows))


@click.command(
    short_help="Print the documentation of rules.",
    epilog="""\b
Examples:
  fsrace-lint explain FSR101
  fsrace-lint explain check-then-mkdir missing-barrier
  fsrace-lint explain FSR5
  fsrace-lint explain --all --format json
""",
)
@click.argument("selectors", metavar="[RULES]...", nargs=-1, shell_complete=completion.rule)
@click.option("--all", "every", is_flag=True, help="Print the documentation of all rules.")
@_format
@click.option("--color/--no-color", default=None, help="Color the output.  [default: on a terminal]")
def explain(selectors: tuple[str, ...], *, every: bool, form: str, color: bool | None) -> None:
    """Print the documentation of rules. RULES are codes, code prefixes, or names, as for --select.

    Each page describes what the rule finds, why it matters, how the race happens, how to fix it, and
    when the rule does not report.
    """
    if every == bool(selectors):
        raise click.UsageError(
            "pass at least one rule, or --all" if not every else "--all cannot be used with rules"
        )
    chosen = rules.load() if every else _chosen(selectors)
    if form == "json":
        terminal.show(_json(chosen))
        return
    from fsrace_lint.cli import manual  # noqa: PLC0415  # checks examples, which `rules` does not need

    shown = [f"{one.rule.code} {one.rule.name}\n\n{manual.page(one)}\n" for one in chosen]
    if terminal.is_terminal(sys.stdout):
        shown = [_filled(page) for page in shown]
    if terminal.is_colored(color):
        shown = [_colored(page) for page in shown]
    terminal.show("\n\n".join(shown))


def _chosen(selectors: Sequence[str]) -> tuple[LoadedRule, ...]:
    try:
        codes = settings.normalize_selectors(selectors, rules.names())
    except SettingsError as error:
        raise click.UsageError(visible(str(error))) from None
    if not codes:
        raise click.UsageError("pass at least one rule; run `fsrace-lint rules` to list all rules")
    return tuple(loaded for loaded in rules.load() if loaded.rule.code.startswith(codes))


def _json(chosen: Sequence[LoadedRule]) -> str:
    from fsrace_lint.cli import manual  # noqa: PLC0415  # as above

    encoded = msgspec.json.encode(manual.document(tuple(chosen)))
    return f"{msgspec.json.format(encoded, indent=2).decode('utf-8')}\n"


def _filled(page: str) -> str:
    """Wrap the prose of a page to the width of the terminal. Examples stay unchanged."""
    width = min(terminal.width(_WIDEST), _WIDEST)
    fill = functools.partial(textwrap.fill, width=width, break_on_hyphens=False)
    filled = []
    for part in page.split("\n\n"):
        label, _, listed = part.partition("\n")
        items = pages.bullets(listed)
        if items:
            filled.append("\n".join([label, *(fill(f"* {item}", subsequent_indent="  ") for item in items)]))
        else:
            keeps = "\n    " in part or part.startswith(" ")
            filled.append(part if keeps else fill(part))
    return "\n\n".join(filled)


def _colored(page: str) -> str:
    """Make the title and the labels bold."""
    title, _, rest = page.partition("\n")
    lines = (_LABEL.sub(lambda found: click.style(found[0], bold=True), line) for line in rest.split("\n"))
    return "\n".join([click.style(title, bold=True), *lines])
