"""Paths of a callee, as seen by its callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsrace_lint.analysis.paths.abstract_path import AbstractPath, PathVariable
from fsrace_lint.analysis.values.call_arguments import bind

if TYPE_CHECKING:
    from fsrace_lint.analysis.paths.abstract_path import Piece
    from fsrace_lint.analysis.paths.path_normal_form import PathNormalizer
    from fsrace_lint.analysis.values.abstract_values import Environment
    from fsrace_lint.program.modules import LinkedFunction
    from fsrace_lint.syntax import model as m


def is_parameterized(paths: PathNormalizer, path: AbstractPath, function: LinkedFunction) -> bool:
    """Return whether a part of a path represents a parameter of a function."""
    return any(paths.parameter_of(symbol, function) is not None for symbol in path.variables())


def instantiate_at_call(
    paths: PathNormalizer, path: AbstractPath | None, call: m.Call, scope: Environment, callee: LinkedFunction
) -> AbstractPath | None:
    """Return a path of a callee as seen from a call, with the arguments in place of the parameters.

    Args:
        paths: Normalizes the arguments.
        path: The path in the callee.
        call: The call.
        scope: The environment of the call.
        callee: The callee.

    Returns:
        The path, or None if an argument is unknown.
    """
    if path is None or not is_parameterized(paths, path, callee):
        return path
    arguments = bind(call, callee)
    pieces: list[Piece] = []
    for piece in path.pieces():
        parameter = paths.parameter_of(piece, callee) if isinstance(piece, PathVariable) else None
        if parameter is None:
            pieces.append(piece)
            continue
        value = arguments.source_of(parameter) or parameter.default
        inner = None if value is None else paths.normalize(value, scope)
        if inner is None:
            return None
        pieces.extend(inner.pieces())
    return AbstractPath.of(pieces)
