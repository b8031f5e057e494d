"""The commands `rules` and `explain`: what the rules are."""

from __future__ import annotations

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
from fsrace_lint.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fsrace_lint.rules import LoadedRule

_LABEL: Final = re.compile(r"^[A-Z][a-z ]+:(?= |$)")
_WIDEST: Final = 100


def _format(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option that says whether people or programs read it."""
    return click.option(
        "--format",
        "form",
        type=OptionChoice(["text", "json"]),
        default="text",
        help="For people, or everything about these rules for programs.  [default: text]",
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
    """List the rules: code, name and what each finds."""
    if form == "json":
        terminal.show(_json(rules.load()))
        return
    width = max(len(loaded.rule.name) for loaded in rules.load())
    rows = [f"{loaded.rule.code}  {loaded.rule.name:<{width}}  {loaded.title}\n" for loaded in rules.load()]
    terminal.show("".join(rows))


@click.command(
    short_help="Print the pages of rules.",
    epilog="""\b
Examples:
  fsrace-lint explain FSR101
  fsrace-lint explain check-then-mkdir missing-barrier
  fsrace-lint explain FSR5
  fsrace-lint explain --all --format json
""",
)
@click.argument("selectors", metavar="[RULES]...", nargs=-1, shell_complete=completion.rule)
@click.option("--all", "every", is_flag=True, help="Print the pages of all rules.")
@_format
@click.option("--color/--no-color", default=None, help="Color the text (by default on a terminal).")
def explain(selectors: tuple[str, ...], *, every: bool, form: str, color: bool | None) -> None:
    """Print the pages of rules, named as for --select: codes, prefixes or names.

    A page says what the rule finds and why, how it goes wrong, what to write instead, when the rule
    is silent, and what it rests on.
    """
    if every == bool(selectors):
        raise click.UsageError(
            "name rules, or give --all" if not every else "name rules or give --all, not both"
        )
    chosen = rules.load() if every else _chosen(selectors)
    if form == "json":
        terminal.show(_json(chosen))
        return
    from fsrace_lint.cli import manual  # noqa: PLC0415  # it checks the examples, which `rules` can do without

    pages = [f"{one.rule.code} {one.rule.name}\n\n{manual.page(one)}\n" for one in chosen]
    if terminal.is_terminal(sys.stdout):
        pages = [_filled(page) for page in pages]
    if terminal.is_colored(color):
        pages = [_colored(page) for page in pages]
    terminal.show("\n\n".join(pages))


def _chosen(selectors: Sequence[str]) -> tuple[LoadedRule, ...]:
    try:
        codes = settings.normalize_selectors(selectors, rules.names(), origin="explain")
    except settings.SettingsError as error:
        hint = "" if "did you mean" in str(error) else "; `fsrace-lint rules` lists them"
        raise click.UsageError(visible(f"{error}{hint}")) from None
    if not codes:
        raise click.UsageError("explain: no rule is named; `fsrace-lint rules` lists them")
    return tuple(loaded for loaded in rules.load() if loaded.rule.code.startswith(codes))


def _json(chosen: Sequence[LoadedRule]) -> str:
    from fsrace_lint.cli import manual  # noqa: PLC0415  # as above

    encoded = msgspec.json.encode(manual.document(tuple(chosen)))
    return f"{msgspec.json.format(encoded, indent=2).decode('utf-8')}\n"


def _filled(page: str) -> str:
    """Fill the prose of a page to the width of the terminal; examples stay."""
    width = min(terminal.width(_WIDEST), _WIDEST)
    parts = page.split("\n\n")
    return "\n\n".join(
        part
        if "\n    " in part or part.startswith(" ")
        else textwrap.fill(part, width, break_on_hyphens=False)
        for part in parts
    )


def _colored(page: str) -> str:
    """Make the heading and the labels bold."""
    title, _, rest = page.partition("\n")
    lines = (_LABEL.sub(lambda found: click.style(found[0], bold=True), line) for line in rest.split("\n"))
    return "\n".join([click.style(title, bold=True), *lines])
