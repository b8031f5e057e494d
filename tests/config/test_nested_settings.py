"""Tables in multiple directories of a project: inheritance, and the settings of the whole project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fsrace_lint.config.settings import (
    Settings,
    load,
    load_nested,
    origins,
    with_everywhere,
    with_nested,
    with_overrides,
)
from fsrace_lint.config.tables import ProgramSettings
from fsrace_lint.config.validation import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

RULES = {"FSR101": "check-then-mkdir", "FSR201": "unguarded-write"}
GUARD = '[[tool.fsrace-lint.catalog.guard]]\nnames = ["{}"]\nscope = "global"\n'


def write(folder: Path, table: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.fsrace-lint]\n{table}", encoding="utf-8")
    return folder


def nested(root: Path, folder: str, table: str, above: Settings | None = None) -> Settings:
    write(root / folder, table)
    found = load_nested(folder, above or Settings(root=root), RULES)
    assert found is not None
    return found


def whole(root: Path, **tables: str) -> Settings:
    top = load(root, RULES)
    return with_nested(top, [nested(root, folder, table, top) for folder, table in tables.items()])


class TestExtend:
    def test_keys_replace_or_add_to_inherited_values(self, tmp_path: Path) -> None:
        write(tmp_path, 'profile = "strict"\nignore = ["FSR101"]\nextend-exclude = ["a/"]\n')
        table = 'extend = "../pyproject.toml"\nignore = []\nextend-exclude = ["b/"]\n'
        found = nested(tmp_path, "sub", table)
        assert (found.root, found.folder) == (tmp_path, "sub")
        assert (found.profile, found.ignore, found.extend_exclude) == ("strict", (), ("a/", "b/"))

    def test_nothing_is_inherited_without_extend(self, tmp_path: Path) -> None:
        write(tmp_path, 'profile = "strict"\n')
        assert nested(tmp_path, "sub", "", load(tmp_path, RULES)).profile == "default"

    def test_inherited_paths_are_relative_to_their_file(self, tmp_path: Path) -> None:
        write(tmp_path, f'root = "."\nbaseline = "known.json"\n{GUARD.format("lib.boss")}')
        found = nested(tmp_path, "a/b", 'extend = "../../pyproject.toml"\n')
        assert found.baseline == str(tmp_path / "known.json")
        assert found.catalog_origin.startswith(f"{tmp_path / 'pyproject.toml'}: ")
        assert (found.root, found.folder) == (tmp_path, "a/b")

    def test_chain_and_origins(self, tmp_path: Path) -> None:
        (tmp_path / "base.toml").write_text('[tool.fsrace-lint]\nprofile = "strict"\nignore = ["FSR1"]\n')
        write(tmp_path, 'extend = "base.toml"\nignore = ["FSR2"]\n')
        found = nested(tmp_path, "sub", 'extend = "../pyproject.toml"\nselect = ["FSR1"]\n')
        assert (found.profile, found.ignore, found.select) == ("strict", ("FSR2",), ("FSR1",))
        files = origins(tmp_path / "sub" / "pyproject.toml")
        assert files["profile"] == tmp_path / "base.toml"
        assert files["ignore"] == tmp_path / "pyproject.toml"
        assert files["select"] == tmp_path / "sub" / "pyproject.toml"

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            ("[tool.black]\n", "other.toml contains no [tool.fsrace-lint]"),
            ('[tool.fsrace-lint]\nextend = "sub/pyproject.toml"\n', "pyproject.toml extends this file"),
            ('[tool.fsrace-lint]\nextend = "other.toml"\n', "other.toml extends this file"),
            ("[tool.fsrace-lint]\nprofil = 1\n", "other.toml: unknown key `profil`"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, other: str, message: str) -> None:
        (tmp_path / "other.toml").write_text(other)
        with pytest.raises(SettingsError) as caught:
            nested(tmp_path, "sub", 'extend = "../other.toml"\n')
        assert message in str(caught.value)


class TestNested:
    def test_file_without_a_table_is_not_read(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text("not TOML")
        top = Settings(root=tmp_path)
        assert load_nested(".", top, RULES) is None
        assert load_nested("missing", top, RULES) is None
        (tmp_path / "pyproject.toml").write_text("# fsrace-lint\n[tool.black]\n")
        assert load_nested(".", top, RULES) is None

    def test_nearest_table_applies(self, tmp_path: Path) -> None:
        settings = whole(tmp_path, **{"a": 'ignore = ["FSR1"]\n', "a/b": "", "ab": ""})
        found = {path: settings.of(path).folder for path in ("x.py", "a/x.py", "a/b/c/x.py", "ab/x.py")}
        assert found == {"x.py": "", "a/x.py": "a", "a/b/c/x.py": "a/b", "ab/x.py": "ab"}
        selected = [path for path in found if settings.selects("FSR101", path)]
        assert selected == ["x.py", "a/b/c/x.py", "ab/x.py"]

    def test_patterns_are_relative_to_the_table(self, tmp_path: Path) -> None:
        table = 'per-file-ignores = {"src/x.py" = ["ALL"], "top/" = ["FSR2"]}\n'
        settings = whole(tmp_path, **{"top/a": table})
        assert not settings.selects("FSR101", "top/a/src/x.py")
        assert settings.selects("FSR101", "top/a/b/src/x.py")
        assert settings.selects("FSR201", "top/a/x.py")
        assert not settings.selects("FSR201", "top/a/top/x.py")

    def test_command_line_overrides_all_tables(self, tmp_path: Path) -> None:
        top = with_overrides(load(tmp_path, RULES), ignore=["FSR2"], extend_exclude=["b"], profile="strict")
        found = nested(tmp_path, "a", 'profile = "default"\nextend-exclude = ["a"]\n', top)
        assert (found.profile, found.ignore, found.extend_exclude) == ("strict", ("FSR2",), ("a",))
        changed = with_everywhere(with_nested(top, [found]), ignore=())
        assert [one.ignore for one in changed.every] == [(), ()]

    def test_settings_of_the_project_are_joined(self, tmp_path: Path) -> None:
        write(tmp_path, f'shared-paths = ["/a"]\nhelper-module = "safe"\n{GUARD.format("lib.one")}')
        helper = f'helper-module = "b.safe"\n{GUARD.format("lib.two")}'
        settings = whole(
            tmp_path,
            a='filesystem = "shared"\nshared-paths = ["/a", "/b"]\nlocal-paths = ["/c"]\n',
            b=helper,
            c=f'extend = "../b/pyproject.toml"\n{GUARD.format("lib.two")}',
        )
        assert settings.storage == ("shared", ("/a", "/b"), ("/c",))
        assert settings.helper_modules == ("safe", "b.safe")
        assert [text.count("lib.two") for text, _ in settings.catalogs] == [0, 1, 1]

    def test_file_of_a_program_is_relative_to_the_table(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "train.py").touch()
        found = nested(tmp_path, "a", 'programs = [{ file = "train.py" }]\n')
        assert found.programs == (ProgramSettings(file="a/train.py"),)
        assert found.programs_file == str(tmp_path / "a" / "pyproject.toml")

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ('cache-dir = "kept"\n', "`cache-dir`: only "),
            ('filesystem = "local"\n', "`filesystem`: `local` contradicts `shared` in "),
            ('local-paths = ["/a"]\n', "`local-paths`: `/a` is in `shared-paths` of "),
        ],
    )
    def test_contradictions(self, tmp_path: Path, table: str, message: str) -> None:
        write(tmp_path, 'filesystem = "shared"\nshared-paths = ["/a"]\n')
        with pytest.raises(SettingsError) as caught:
            whole(tmp_path, a=table)
        assert str(caught.value).startswith(f"{tmp_path / 'a' / 'pyproject.toml'}: {message}")
        assert str(tmp_path / "pyproject.toml") in str(caught.value)

    def test_inherited_cache_directory_is_allowed(self, tmp_path: Path) -> None:
        write(tmp_path, 'cache-dir = "kept"\n')
        assert whole(tmp_path, a='extend = "../pyproject.toml"\n').nested[0].cache_dir == str(
            tmp_path / "kept"
        )
