"""The commands `rules` and `explain`: what the rules are."""

from __future__ import annotations

import click

from fsrace_lint import rules, settings, terminal
from fsrace_lint.commands import completing
from fsrace_lint.report.words import visible


@click.command("rules")
def list_rules() -> None:
    """List the rules."""
    width = max(len(loaded.rule.name) for loaded in rules.load())
    rows = [f"{loaded.rule.code}  {loaded.rule.name:<{width}}  {loaded.title}\n" for loaded in rules.load()]
    terminal.show("".join(rows))


@click.command(
    short_help="Print the page of a rule.",
    epilog="""\b
Examples:
  fsrace-lint explain FSR101
  fsrace-lint explain check-then-mkdir
""",
)
@click.argument("rule", shell_complete=completing.rule)
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
