"""What a path of a function is to those who call it."""

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
    """Tell whether a part of a path stands for a parameter of a function."""
    return any(paths.parameter_of(symbol, function) is not None for symbol in path.variables())


def instantiate_at_call(
    paths: PathNormalizer, path: AbstractPath | None, call: m.Call, scope: Environment, callee: LinkedFunction
) -> AbstractPath | None:
    """Give a path of a function as it looks from a call of it: with what is passed for its parameters.

    Args:
        paths: Normalizes what is passed.
        path: The path, as the function has it.
        call: The call.
        scope: The names as they stand where it is made.
        callee: The function.

    Returns:
        None where nothing is known of what is passed.
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
