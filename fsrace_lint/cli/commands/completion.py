"""Shell completion of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click


def rule(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes them
    """Complete the code or name of a rule. The other one is the help text.

    Args:
        ctx: The context of the command.
        param: The option or argument.
        incomplete: The text to complete, in upper or lower case.
    """
    from fsrace_lint import rules  # noqa: PLC0415  # needed only for completion

    named = rules.names()
    codes = [CompletionItem(code, help=name) for code, name in named.items()]
    others = [CompletionItem(name, help=code) for code, name in named.items()]
    return [item for item in (*codes, *others) if item.value.lower().startswith(incomplete.lower())]


def some_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last rule of a comma-separated list. The arguments are those of `rule`."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + item.value, help=item.help) for item in rule(ctx, param, last)]
