"""Files that contain only settings, and settings for one run: `--config` and `--isolated`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import HAZARD, reported, run, write

from fsrace_lint.config.roots import find_root

HIDDEN, OWN, SHARED = ".fsrace-lint.toml", "fsrace-lint.toml", "pyproject.toml"
BOTH = ["a.py:4 FSR101", "lib/b.py:4 FSR101"]
NONE = 'ignore = ["FSR101"]\n'


@pytest.fixture(autouse=True)
def hazards(here: Path) -> None:
    write({"a.py": HAZARD, "lib/b.py": HAZARD})


def table(text: str) -> str:
    return f"[tool.fsrace-lint]\n{text}"


class TestOwnFile:
    @pytest.mark.parametrize("name", [HIDDEN, OWN])
    def test_settings_are_at_the_top_level(self, name: str) -> None:
        write({name: f'{NONE}[per-file-ignores]\n"lib/*" = ["FSR"]\n'})
        assert reported(code=0) == []
        write({name: '[per-file-ignores]\n"lib/*" = ["FSR"]\n'})
        assert reported() == BOTH[:1]

    def test_precedence(self) -> None:
        write({SHARED: table(NONE), OWN: "", HIDDEN: NONE})
        assert reported(code=0) == []
        write({HIDDEN: ""})
        assert reported() == BOTH
        write({OWN: NONE})
        assert reported() == BOTH
        Path(HIDDEN).unlink()
        assert reported(code=0) == []

    def test_nearest_file_applies(self) -> None:
        write({OWN: "", f"lib/{OWN}": NONE})
        assert reported() == BOTH[:1]
        write({f"lib/{SHARED}": table("")})
        assert reported() == BOTH[:1]
        Path("lib", OWN).unlink()
        assert reported() == BOTH

    def test_it_can_extend_and_be_extended(self) -> None:
        write({SHARED: table(f'extend = "lib/{OWN}"\n'), f"lib/{OWN}": NONE})
        assert reported(code=0) == []
        write({SHARED: table(NONE), f"lib/{OWN}": f'extend = "../{SHARED}"\n'})
        assert reported(code=0) == []

    def test_it_marks_a_project_and_can_set_the_root(self, tmp_path: Path) -> None:
        write({"sub/deep/x.py": "", f"sub/{OWN}": ""})
        Path(SHARED).unlink()
        assert find_root(Path("sub/deep/x.py")) == tmp_path / "sub"
        write({SHARED: "", f"sub/{OWN}": 'root = "."\n'})
        assert find_root(Path("sub/deep/x.py")) == tmp_path / "sub"
        write({f"sub/{OWN}": ""})
        assert find_root(Path("sub/deep/x.py")) == tmp_path

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("profle = 1", "unknown key `profle`; did you mean `profile`?"),
            (
                table(""),
                "unknown key `tool`; fsrace-lint.toml contains the settings without [tool.fsrace-lint]",
            ),
            ("[helpers]\nbarier = 'a.b'", "unknown key `barier` in [helpers]; did you mean `barrier`?"),
            ("[[programs]]\nfil = 'a.py'", "unknown key `fil` in [[programs]]; did you mean `file`?"),
            ("select = 1 1", ":1: not valid TOML"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, text: str, message: str) -> None:
        write({OWN: text})
        stderr = run("check", code=2).stderr
        assert stderr.startswith(f"Error: {tmp_path / OWN}")
        assert message in stderr

    def test_it_is_shown_with_the_settings(self, tmp_path: Path) -> None:
        write({OWN: 'profile = "strict"\n', f"lib/{HIDDEN}": ""})
        shown = run("check", "--show-settings", code=0).stdout
        assert shown.startswith(f"# {tmp_path / OWN}\n")
        assert f"# other settings below: {tmp_path / 'lib' / HIDDEN}\n" in shown
        assert f'profile = "strict"  # {OWN}\n' in shown


class TestConfig:
    def test_file_replaces_all_settings(self) -> None:
        write({SHARED: table(NONE), f"lib/{SHARED}": table(NONE), "other/ours.toml": ""})
        assert reported(code=0) == []
        assert reported("--config=other/ours.toml") == BOTH
        write({"other/pyproject.toml": table('[tool.fsrace-lint.per-file-ignores]\n"lib/*" = ["FSR"]\n')})
        assert reported("--config", "other/pyproject.toml") == BOTH[:1]

    def test_paths_are_relative_to_the_file(self, tmp_path: Path) -> None:
        write({"other/ours.toml": 'baseline = "known.json"\n'})
        run("check", "--write-baseline=other/known.json", code=0)
        assert reported("--config=other/ours.toml", code=0) == []
        shown = run("check", "--config=other/ours.toml", "--show-settings", code=0).stdout
        assert f'baseline = "{tmp_path / "other" / "known.json"}"  # ours.toml\n' in shown

    def test_setting_overrides_files_and_options_override_it(self) -> None:
        write({SHARED: table(NONE), f"lib/{SHARED}": table(NONE)})
        assert reported("--config", "ignore = []") == BOTH
        assert reported("--config", 'ignore=["FSR5"]', "--config", 'ignore=["FSR1"]', code=0) == []
        assert reported("--config", "ignore = []", "--ignore=FSR101", code=0) == []
        assert (
            reported("--config", "ignore = []", "--config", 'per-file-ignores={"lib/*"=["FSR"]}') == BOTH[:1]
        )

    def test_path_in_a_setting_is_relative_to_the_current_directory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run("check", "--write-baseline=lib/known.json", code=0)
        monkeypatch.chdir("lib")
        assert reported("--config", 'baseline="known.json"', "b.py", code=0) == []

    def test_show_settings_names_the_command_line(self) -> None:
        shown = run("check", "--config", 'profile="strict"', "--show-settings", code=0).stdout
        assert 'profile = "strict"  # command line\n' in shown

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("missing.toml", "`missing.toml` is neither an existing file nor of the form KEY=VALUE"),
            ("profile=strict", "--config: not valid TOML"),
            ("profile=strict", "text needs quotes, as in 'profile=\"strict\"'"),
            ('prfile="strict"', "--config: unknown key `prfile`; did you mean `profile`?"),
            ('profile="strct"', "--config: `profile`: "),
            ('select=["FSR9"]', "--config: `select`: unknown rule `FSR9`"),
            ("profile=1", "--config: `profile`: "),
            ('root="."', "--config: `root`: only a file can contain this setting"),
            ("catalog={}", "--config: `catalog`: only a file can contain this setting"),
        ],
    )
    def test_mistakes(self, text: str, message: str) -> None:
        assert message in run("check", "--config", text, code=2).stderr

    def test_mistake_in_the_file(self, tmp_path: Path) -> None:
        write({"ours.toml": "profle = 1"})
        stderr = run("check", "--config=ours.toml", code=2).stderr
        assert stderr.startswith(f"Error: {tmp_path / 'ours.toml'}: unknown key `profle`")

    def test_only_one_file(self) -> None:
        write({"ours.toml": ""})
        done = run("check", "--config=ours.toml", "--config=ours.toml", code=2)
        assert "--config can name only one file" in done.stderr

    def test_variable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FSRACE_LINT_CONFIG", 'ignore = ["FSR1", "FSR2"]')
        assert reported(code=0) == []
        assert reported("--config", "ignore = []") == BOTH

    def test_fix_knows_it_too(self) -> None:
        run("fix", "--config", NONE, code=0)
        assert Path("a.py").read_text() == HAZARD


class TestIsolated:
    def test_settings_files_are_ignored(self) -> None:
        write({OWN: NONE, f"lib/{OWN}": "broken ="})
        assert reported("--isolated") == BOTH
        shown = run("check", "--isolated", "--show-settings", code=0).stdout
        assert shown.startswith("# no settings file is read\n")

    def test_single_settings_remain_possible(self) -> None:
        assert reported("--isolated", "--config", NONE, code=0) == []

    def test_file_is_rejected(self) -> None:
        write({"ours.toml": ""})
        done = run("check", "--isolated", "--config=ours.toml", code=2)
        assert "--config FILE cannot be used with --isolated" in done.stderr
