"""The failing interleaving: one lane for each process, and the path of time through them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.report.page.markup import Markup, join, prose, tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fsrace_lint.findings.finding import Witness, WitnessStep

_RAISED: Final = re.compile(r"[A-Z]\w*(?:Error|Exception|Timeout)\b")
_COLORS: Final = 4
"""The number of lane colors before they repeat."""
_FEW: Final = 4
"""The maximum number of lanes next to each other on a wide page."""
_LEFT: Final = 8
"""The horizontal position of the line within a lane."""
_BESIDE: Final = 10
"""The distance of the line that connects steps of one process from the line of its lane."""
_DOT: Final = 20
"""The distance of the dot from the top of its row; a turn is at a third of it."""


def timeline(witness: Witness) -> Markup:
    """Draw a failing interleaving: a row for each step, from top to bottom, and the outcome."""
    processes = sorted({step.process for step in witness.steps})
    if not processes:
        return tag("figure", _outcome(witness), class_="lanes")
    lanes = [processes.index(step.process) for step in witness.steps]
    rows = [row(number, lanes, processes, join(_said(step))) for number, step in enumerate(witness.steps)]
    return tag("figure", grid(processes, rows), _outcome(witness), class_="lanes")


def grid(processes: Sequence[int], rows: Sequence[Markup]) -> Markup:
    """Arrange rows below the names of the processes."""
    heads = [
        tag("span", f"process {process}", class_=f"p{index % _COLORS}")
        for index, process in enumerate(processes)
    ]
    size = f"of{len(processes)}" if len(processes) <= _FEW else "many"
    return tag(
        "div",
        tag("div", *heads, class_="heads", aria_hidden="true"),
        tag("ol", *rows),
        class_=f"grid {size}",
        tabindex="0",
        role="group",
        aria_label="Steps of each process, in chronological order",
    )


def _outcome(witness: Witness) -> Markup:
    return tag("figcaption", tag("b", "Outcome"), " ", prose(witness.outcome), class_="outcome")


def _said(step: WitnessStep) -> list[str]:
    action = prose(step.action) if "`" in step.action else tag("code", step.action)
    return [action, result(step.result)]


def result(text: str) -> Markup:
    """Return the result of a step, if it has one."""
    if not text:
        return Markup()
    raised = "raised" if _RAISED.match(text) else "result"
    return join([" ", tag("span", "\u2192 ", tag("span", prose(text)), class_=raised)])


def row(
    number: int,
    lanes: Sequence[int],
    processes: Sequence[int],
    said: Markup,
    spans: Sequence[tuple[int, int]] = (),
    **attributes: str,
) -> Markup:
    """Return the row of a step.

    Args:
        number: Its index.
        lanes: The lane of each step.
        processes: The process of each lane.
        said: The description of the step.
        spans: The first and the last steps of processes that others interrupted, to connect them.
        attributes: Further attributes of the row.
    """
    lane = lanes[number]
    before = lanes[number - 1] if number else None
    after = number + 1 < len(lanes)
    act = tag(
        "div",
        tag("span", f"process {processes[lane]}: ", class_="sr"),
        said,
        class_=f"act at{lane}" if len(processes) <= _FEW else "act",
    )
    style = f"p{lane % _COLORS}" + ("" if after else " last")
    style += f" {attributes.pop('class_')}" if "class_" in attributes else ""
    ties = [
        _tie(lanes[first], len(processes), is_first=number == first, is_last=number == last)
        for first, last in spans
        if first <= number <= last and len(processes) <= _FEW
    ]
    drawing = _drawing(lane, before, len(processes), ties, goes_on=after)
    return tag("li", drawing, act, class_=style, **attributes)


def _tie(lane: int, lanes: int, *, is_first: bool, is_last: bool) -> Markup:
    """Draw a part of the line from the first to the last step of a process that was interrupted."""
    here = _percent(lane, lanes)
    line = _line("tie", here, str(_DOT) if is_first else "0", here, str(_DOT) if is_last else "100%")
    return tag("g", line, transform=f"translate({_LEFT + _BESIDE} 0)")


def _drawing(lane: int, before: int | None, lanes: int, ties: Sequence[Markup], *, goes_on: bool) -> Markup:
    """Draw one row: the lanes, the path from the previous step, and the dot of this step."""
    if lanes > _FEW:
        lane, before, lanes = 0, None if before is None else 0, 1
    here = _percent(lane, lanes)
    drawn = [
        _line("lane", _percent(each, lanes), "0", _percent(each, lanes), "100%") for each in range(lanes)
    ]
    if before is not None:
        there, turn = _percent(before, lanes), str(_DOT // 3)
        drawn += [_line("way", there, "0", there, turn), _line("way", there, turn, here, turn)]
        drawn.append(_line("way", here, turn, here, str(_DOT)))
    if goes_on:
        drawn.append(_line("way", here, str(_DOT), here, "100%"))
    drawn.append(tag("circle", class_="dot", cx=here, cy=str(_DOT), r="5"))
    shift = f"translate({_LEFT} 0)"
    return tag("svg", tag("g", *drawn, transform=shift), *ties, aria_hidden="true", focusable="false")


def _percent(lane: int, lanes: int) -> str:
    return f"{100 * lane / lanes:g}%"


def _line(kind: str, x1: str, y1: str, x2: str, y2: str) -> Markup:
    return tag("line", class_=kind, x1=x1, y1=y1, x2=x2, y2=y2)
