"""Which exceptions a handler catches, according to Python's exception hierarchy."""

from __future__ import annotations

import pytest

from fsrace_lint.syntax.builtin_exceptions import handles, handles_any, is_os_error


@pytest.mark.parametrize(
    "caught",
    ["FileNotFoundError", "OSError", "IOError", "EnvironmentError", "Exception", "BaseException"],
)
def test_handler_catches_file_not_found(caught: str) -> None:
    assert handles([caught], "FileNotFoundError")
    assert handles(["KeyError", caught], "FileNotFoundError")


@pytest.mark.parametrize("caught", ["FileExistsError", "PermissionError", "LookupError", "Missing", "open"])
def test_handler_does_not_catch_file_not_found(caught: str) -> None:
    assert not handles([caught], "FileNotFoundError")


def test_empty_handler_catches_nothing() -> None:
    assert not handles([], "FileNotFoundError")


def test_project_exception_catches_itself() -> None:
    assert handles(["Missing"], "Missing")
    assert not handles(["OSError"], "Missing")


def test_narrow_handler_does_not_catch_a_broader_exception() -> None:
    assert not handles(["FileNotFoundError"], "OSError")


def test_handles_any() -> None:
    assert handles_any(["KeyError", "Exception"])
    assert handles_any(["BaseException"])
    assert not handles_any(["OSError", "RuntimeError"])


def test_is_os_error() -> None:
    names = ("OSError", "IOError", "EnvironmentError", "FileExistsError", "IsADirectoryError")
    assert all(map(is_os_error, names))
    assert not any(map(is_os_error, ("Exception", "ValueError", "Missing")))
