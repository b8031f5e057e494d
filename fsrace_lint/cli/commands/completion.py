"""What a shell offers for a word that is being typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click


def rule(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes them
    """Offer the codes and the names of rules, each with the other.

    Args:
        ctx: The command that is being typed.
        param: The option or argument.
        incomplete: What has been typed of it.

    Returns:
        What it can become; codes are offered in either case.
    """
    from fsrace_lint import rules  # noqa: PLC0415  # a command that is run completes nothing

    named = rules.names()
    codes = [CompletionItem(code, help=name) for code, name in named.items()]
    others = [CompletionItem(name, help=code) for code, name in named.items()]
    return [item for item in (*codes, *others) if item.value.lower().startswith(incomplete.lower())]


def some_rules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer rules for the last of several with commas between them; the arguments are those of `rule`."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + item.value, help=item.help) for item in rule(ctx, param, last)]
