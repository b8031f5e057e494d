"""Arguments of scenarios: from annotations, uses, defaults, and names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.reproducing import body_of, scenario

if TYPE_CHECKING:
    from pathlib import Path


def argument(folder: Path, parameter: str, statement: str, before: str = "") -> str:
    """Return the arguments that a function with one parameter gets."""
    text = f"{before}\n\ndef f({parameter}):\n    {statement}  # here\n"
    (line,) = body_of(scenario(folder, text))
    return line.removeprefix("f(").removesuffix(")")


@pytest.mark.parametrize(
    ("parameter", "made"),
    [
        ("a: Path", 'a=root / "a"'),
        ("a: pathlib.Path | None", 'a=root / "a"'),
        ("a: Optional[Path]", 'a=root / "a"'),
        ("a: str | Path", 'a=str(root / "a")'),
        ("a: 'os.PathLike[str]'", 'a=str(root / "a")'),
        ("a: str", 'a="a"'),
        ("save_dir: str", 'save_dir=str(root / "save_dir")'),
        ("a: int", "a=1"),
        ("a: Optional[float]", "a=1.0"),
        ("a: bool", "a=True"),
        ("a: bytes", 'a=b"data"'),
        ("a: list[str]", "a=[]"),
        ("a: typing.Dict[str, int]", "a={}"),
        ("a: Callable[[], None]", "a=StandIn()"),
        ("a: None", "a=StandIn()"),
        ("a: Unknown", "a=StandIn()"),
    ],
)
def test_annotation(tmp_path: Path, parameter: str, made: str) -> None:
    assert argument(tmp_path, parameter, "pass") == made


@pytest.mark.parametrize(
    ("statement", "made"),
    [
        ("os.makedirs(a)", 'str(root / "a")'),
        ("open(a, 'w')", 'str(root / "a")'),
        ("os.path.join(a, 'b')", 'str(root / "a")'),
        ("open(f'{a}/b', 'w')", 'str(root / "a")'),
        ("os.getenv(a)", "StandIn()"),
        ("a.mkdir()", 'root / "a"'),
        ("a / 'b'", 'root / "a"'),
        ("b = a; b.exists()", 'root / "a"'),
        ("a.split(',')", '"a"'),
        ("a == 'b'", '"a"'),
        ("a % 2", "1"),
        ("range(a)", "1"),
        ("a > 0", "1"),
        ("print(f'{a:04d}')", "1"),
        ("len(a)", "[]"),
        ("[b for b in a]", "[]"),
        ("a.append(1)", "[]"),
        ("a.items()", "{}"),
        ("os.mkdir(a['out'])", '{"out": str(root / "out")}'),
        ("a['steps']", '{"steps": 1}'),
        ("os.mkdir(a.out)", 'SimpleNamespace(out=str(root / "out"))'),
        ("os.mkdir(a.b.out)", 'SimpleNamespace(b=SimpleNamespace(out=str(root / "out")))'),
        ("a.b()", "SimpleNamespace(b=StandIn())"),
        ("a.b = 1", "SimpleNamespace()"),
        ("a()", "StandIn()"),
        ("if a: pass", "True"),
        ("make(a)", 'str(root / "a")'),
        ("make(out=a)", 'str(root / "a")'),
    ],
)
def test_use(tmp_path: Path, statement: str, made: str) -> None:
    before = "import os\n\n\ndef make(out):\n    os.makedirs(out)\n"
    assert argument(tmp_path, "a", statement, before) == f"a={made}"


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("output_dir", 'str(root / "output_dir")'),
        ("logfile", 'str(root / "logfile")'),
        ("num_steps", "1"),
        ("use_cache_now", "True"),
        ("verbose", "True"),
        ("rank", "rank"),
        ("local_rank", "rank"),
        ("world_size", "PROCESSES"),
        ("thing", "StandIn()"),
    ],
)
def test_name(tmp_path: Path, name: str, made: str) -> None:
    assert argument(tmp_path, name, "pass") == f"{name}={made}"


@pytest.mark.parametrize(
    ("parameter", "made"),
    [
        ("out=None", 'out=str(root / "out")'),
        ("out='/tmp/out'", 'out=str(root / "out")'),
        ("out='~/out'", 'out=str(root / "out")'),
        ("out='out'", ""),
        ("a=1", ""),
        ("a=None", ""),
        ("a: Path = None", 'a=root / "a"'),
        ("*, out=None", 'out=str(root / "out")'),
        ("*, out", 'out=str(root / "out")'),
        ("out, /", 'str(root / "out")'),
        ("*args, **kwargs", ""),
    ],
)
def test_default(tmp_path: Path, parameter: str, made: str) -> None:
    assert argument(tmp_path, parameter, "pass") == made


def test_only_values_that_nothing_shows_are_guesses(tmp_path: Path) -> None:
    made = scenario(tmp_path, "def f(thing, out, n):\n    pass  # here\n")
    assert made.guessed == ("thing",)


def test_enum_and_dataclass_are_made_and_imported(tmp_path: Path) -> None:
    text = """
        import dataclasses
        import enum

        class Mode(enum.Enum):
            FAST = 1

        @dataclasses.dataclass(frozen=True)
        class Config:
            out: Path
            mode: Mode
            steps: int = 5

        def f(config: Config, mode: Mode):
            pass  # here
    """
    made = scenario(tmp_path, text)
    config = 'Config(out=root / "out", mode=next(iter(Mode)))'
    assert body_of(made) == [f"f(config={config}, mode=next(iter(Mode)))"]
    assert "\nfrom main import f, Config, Mode\n" in made.text


@pytest.mark.parametrize(
    ("statement", "setup"),
    [
        ("os.listdir(a)", ['(root / "a").mkdir()']),
        ("open(os.path.join(a, 'b'), 'w')", ['(root / "a").mkdir()']),
        ("os.remove(a)", ['(root / "a").write_text("{}")']),
        ("open(a)", ['(root / "a").write_text("{}")']),
        ("open(a, 'w')", []),
        ("open(a, mode='x')", []),
        ("os.makedirs(a)", []),
        ("os.makedirs(a); os.listdir(a)", []),
    ],
)
def test_setup_makes_what_the_code_expects(tmp_path: Path, statement: str, setup: list[str]) -> None:
    made = scenario(tmp_path, f"import os\n\ndef f(a):\n    {statement}  # here\n")
    assert body_of(made, "setup") == setup


CLASS = """
    import os

    class Saver:
        kind = "x"
        retries: int

        def __init__(self, out: str, step: int):
            self.out = out
            self.count = step

        @property
        def target(self):
            return self.folder / "x"

        def other(self):
            os.mkdir(self.deep)

        def save(self, name):
            self.other()
            self.state = 1
            os.mkdir(self.out)  # here
            return self.target, self.count, self.kind, self.retries, f"{name}"
"""


def test_attributes_are_those_that_methods_and_properties_use(tmp_path: Path) -> None:
    assert body_of(scenario(tmp_path, CLASS)) == [
        "owner = Saver.__new__(Saver)",
        "owner.count = 1",
        'owner.deep = str(root / "deep")',
        'owner.folder = root / "folder"',
        'owner.out = str(root / "out")',
        "owner.retries = 1",
        'owner.save(name="name")',
    ]
