"""Rank checks: which ranks reach a call, for every way to write the check."""

from __future__ import annotations

import functools
from textwrap import dedent, indent
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.linked import SITE, project, runs

from fsrace_lint.analysis.dataflow.process_set import Runs

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE, MANY, OTHERS = Runs.ONE, Runs.MANY, Runs.OTHERS
NODE, GROUP = Runs.PER_NODE, Runs.PER_GROUP


class Case(NamedTuple):
    name: str
    code: str
    runs: Runs


def cases(*rows: tuple[str, str, Runs], wrong: Mapping[str, str] | None = None) -> pytest.MarkDecorator:
    """Parametrize with rows of name, code, and result; `wrong` gives the reasons for expected failures."""
    marks = {name: pytest.mark.xfail(reason=reason) for name, reason in (wrong or {}).items()}
    assert marks.keys() <= {name for name, _, _ in rows}
    return pytest.mark.parametrize(
        "case",
        [
            pytest.param(Case(*row), id=row[0], marks=[marks[row[0]]] if row[0] in marks else [])
            for row in rows
        ],
    )


HEAD = """\
import os
import sys
from os import environ, getenv
import torch
import torch.distributed as dist
from torch.distributed import get_rank, get_world_size
from torch.utils.data import get_worker_info
from megatron.core import mpu

def main(rank, world_size, args, config, flag, items, step, name, debug, out):
"""


def sites_in_main(code: str) -> list[Runs]:
    body = indent(dedent(code).strip("\n").replace("SITE", SITE), "    ")
    return [site.runs for site in project({"main.py": f"{HEAD}{body}\n"}).accesses("mkdir")]


def in_main(code: str) -> Runs:
    (found,) = sites_in_main(code)
    return found


@pytest.mark.parametrize(
    "code",
    [
        "print(sys.exit())\nSITE",
        "name = (found := sys.exit())\nSITE",
        "name = 1 if sys.exit() else 2\nSITE",
        "name.text = sys.exit()\nSITE",
        "items[sys.exit()] = 1\nSITE",
        "sys.exit().text, *items[0] = name\nSITE",
        "items = [item for item in sys.exit()]\nSITE",
        "if sys.exit(): pass\nSITE",
        "while sys.exit(): pass\nSITE",
        "for item in sys.exit(): pass\nSITE",
        "with sys.exit(): SITE",
        "match sys.exit():\n    case _: SITE",
        "assert sys.exit()\nSITE",
        "class A:\n    sys.exit()\n    name = 1\nSITE",
        "class A(sys.exit()): pass\nSITE",
    ],
)
def test_code_after_exit_is_unreachable(code: str) -> None:
    assert sites_in_main(code) == []
    assert sites_in_main(code.replace("sys.exit()", "sys.stdin")) == [MANY]


@pytest.mark.parametrize(
    "code",
    [
        "items[SITE] = 1",
        "items[SITE] += 1",
        "items(SITE).text += 1",
        "items[SITE], [name, *config[0]] = args",
        "name, [_, *items(SITE).text] = args",
        "name = items[SITE] = 1",
    ],
)
def test_call_in_an_assignment_target_is_evaluated_once(code: str) -> None:
    assert sites_in_main(code) == [MANY]


@cases(
    ("equal", "if rank == 0: SITE", ONE),
    ("zero first", "if 0 == rank: SITE", ONE),
    ("not", "if not rank: SITE", ONE),
    ("less than one", "if rank < 1: SITE", ONE),
    ("one is more", "if 1 > rank: SITE", ONE),
    ("at most zero", "if rank <= 0: SITE", ONE),
    ("zero is at least", "if 0 >= rank: SITE", ONE),
    ("is zero", "if rank is 0: SITE", ONE),
    ("in a tuple with minus one", "if rank in (-1, 0): SITE", ONE),
    ("in a list", "if rank in [0, -1]: SITE", ONE),
    ("in a set", "if rank in {0}: SITE", ONE),
    ("in with None", "if rank in (None, 0): SITE", ONE),
    ("not in", "if rank not in (-1, 0): return\nSITE", ONE),
    ("else of unequal", "if rank != 0: pass\nelse: SITE", ONE),
    ("else of truth", "if rank: pass\nelse: SITE", ONE),
    ("else of greater", "if rank > 0: pass\nelse: SITE", ONE),
    ("elif", "if flag: pass\nelif rank == 0: SITE", ONE),
    ("nested", "if flag:\n    if rank == 0:\n        with open(name): SITE", ONE),
    ("as text", 'if str(rank) == "0": SITE', ONE),
    ("a certain other one", "if rank == 3: SITE", ONE),
    ("assert", "assert rank == 0\nSITE", ONE),
    ("while", "while rank == 0 and flag: SITE", ONE),
    ("match guard", "match name:\n    case _ if rank == 0: SITE", ONE),
    ("comprehension", "[SITE for out in items if rank == 0]", ONE),
    ("compared with True", "if (rank == 0) is True: SITE", ONE),
    ("compared with False", "if (rank == 0) == False: return\nSITE", ONE),
    ("bool()", "if bool(rank == 0): SITE", ONE),
    ("bitwise", "if flag & (rank == 0): SITE", ONE),
    ("int()", "if int(rank) == 0: SITE", ONE),
    ("number in a variable", "first = 0\nif rank == first: SITE", ONE),
)
def test_branch_conditions(case: Case) -> None:
    assert in_main(case.code) is case.runs


FINALLY = functools.reduce(
    lambda inner, _: f"try: pass\nfinally:\n{indent(inner, '    ')}\n", range(16), "{}"
)
"""Nested `finally`, deeper than the analysis repeats its body for each exit."""


@cases(
    ("return", "if rank != 0: return\nSITE", ONE),
    ("return on truth", "if rank: return\nSITE", ONE),
    ("return on greater", "if rank > 0: return None\nSITE", ONE),
    ("return on not equal", "if not rank == 0: return\nSITE", ONE),
    ("raise", "if rank != 0: raise RuntimeError\nSITE", ONE),
    ("sys.exit", "if rank != 0: sys.exit(0)\nSITE", ONE),
    ("exit", "if rank != 0: exit()\nSITE", ONE),
    ("os._exit", "if rank != 0: os._exit(0)\nSITE", ONE),
    ("raise SystemExit", "if rank != 0: raise SystemExit\nSITE", ONE),
    ("continue", "for item in items:\n    if rank != 0: continue\n    SITE", ONE),
    ("break", "for item in items:\n    if rank != 0: break\n    SITE", ONE),
    ("short-circuit exit", "rank == 0 or sys.exit()\nSITE", ONE),
    ("both ways out", "if rank != 0:\n    if flag: return\n    else: raise ValueError\nSITE", ONE),
    ("in try", "try:\n    if rank != 0: return\n    SITE\nfinally: pass", ONE),
    ("before try", "if rank != 0: return\ntry: SITE\nexcept ValueError: pass", ONE),
    ("in with", "with open(name):\n    if rank != 0: return\n    SITE", ONE),
    ("in the handler", "try:\n    if rank == 0: name.load()\nexcept OSError: SITE", ONE),
    ("the exit is conditional", "if rank != 0:\n    if flag: return\nSITE", MANY),
    ("a loop may not run", "for item in items:\n    if rank != 0: return\nSITE", MANY),
    ("finally runs anyway", "try:\n    if rank != 0: return\nfinally: SITE", MANY),
    ("the main one leaves", "if rank == 0: return\nSITE", OTHERS),
    ("break in no loop, which runs nowhere", "if rank != 0: break\nSITE", ONE),
    (
        "out of a class body",
        "class A:\n    if rank:\n        text = 1\n        raise ImportError(text)\nSITE",
        ONE,
    ),
    ("in what a comprehension goes over", "[1 for item in (items if rank == 0 else sys.exit())]\nSITE", ONE),
    ("in a condition of a comprehension", "[1 for item in items if rank == 0 or sys.exit()]\nSITE", MANY),
    ("in what is stored to", "items[name if rank == 0 else sys.exit()] = 1\nSITE", ONE),
    ("deep in finally", f"chosen = rank == 0\n{FINALLY.format('chosen = flag')}if chosen: SITE", MANY),
    ("deep in finally, the main one", FINALLY.format("rank == 0 or sys.exit(); SITE"), ONE),
)
def test_early_exits(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("and", "if rank == 0 and flag: SITE", ONE),
    ("and, last", "if flag and rank == 0: SITE", ONE),
    ("and of three", "if flag and rank == 0 and name: SITE", ONE),
    ("not or", "if not (rank != 0 or flag): SITE", ONE),
    ("or exit", "if rank != 0 or flag: return\nSITE", ONE),
    ("double negation", "if not (not (rank == 0)): SITE", ONE),
    ("else of or", "if rank or flag: pass\nelse: SITE", ONE),
    ("or a condition", "if rank == 0 or flag: SITE", MANY),
    ("a condition or", "if flag or rank == 0: SITE", MANY),
    ("else of and", "if rank == 0 and flag: pass\nelse: SITE", MANY),
    ("and exit", "if rank != 0 and flag: return\nSITE", MANY),
    ("two ranks", "if rank == 0 or rank == 1: SITE", MANY),
    ("ternary test", "if (rank == 0 if flag else not rank): SITE", ONE),
    ("ternary with True", "if (rank == 0 if flag else True): SITE", MANY),
    ("ternary of calls", "SITE if rank == 0 else None", ONE),
    ("ternary of calls, else", "None if rank != 0 else SITE", ONE),
    ("and call", "rank == 0 and SITE", ONE),
    ("or call", "rank != 0 or SITE", ONE),
    ("and call of three", "flag and rank == 0 and SITE", ONE),
    ("the test comes after", "SITE and rank == 0", MANY),
    ("an argument", "print(rank == 0, SITE)", MANY),
    ("contradiction", "if rank == 0:\n    if rank != 0: pass\n    else: SITE", ONE),
)
def test_boolean_combinations(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("alias", "chosen = rank == 0\nif chosen: SITE", ONE),
    ("two hops", "first = rank == 0\nchosen = first\nif chosen: SITE", ONE),
    ("alias of a rank", "me = rank\nif me == 0: SITE", ONE),
    ("alias of a call", "me = get_rank()\nif me == 0: SITE", ONE),
    ("alias negated", "skipped = rank != 0\nif skipped: return\nSITE", ONE),
    ("alias of and", "chosen = flag and rank == 0\nif chosen: SITE", ONE),
    ("unpacked", "me, size = get_rank(), get_world_size()\nif me == 0: SITE", ONE),
    ("chained", "me = other = get_rank()\nif other == 0: SITE", ONE),
    ("walrus", "if (me := get_rank()) == 0: SITE", ONE),
    ("walrus test", "if chosen := rank == 0: SITE", ONE),
    ("annotated", "chosen: bool = rank == 0\nif chosen: SITE", ONE),
    ("set in a branch", "chosen = False\nif rank == 0: chosen = True\nif chosen: SITE", ONE),
    ("set in both", "if rank == 0: chosen = True\nelse: chosen = False\nif chosen: SITE", ONE),
    ("ternary alias", "chosen = True if rank == 0 else False\nif chosen: SITE", ONE),
    ("default for one process", "chosen = True\nif world_size > 1: chosen = rank == 0\nif chosen: SITE", ONE),
    ("rank with a default", "me = 0\nif dist.is_initialized(): me = dist.get_rank()\nif me == 0: SITE", ONE),
    ("rank or zero", "me = dist.get_rank() if dist.is_initialized() else 0\nif me == 0: SITE", ONE),
    ("rank or minus one", "me = get_rank() if dist.is_initialized() else -1\nif me in (-1, 0): SITE", ONE),
    ("tested before it is reassigned", "chosen = rank == 0\nif not chosen: return\nchosen = flag\nSITE", ONE),
    ("reassigned", "chosen = rank == 0\nchosen = flag\nif chosen: SITE", MANY),
    ("reassigned in the loop", "chosen = rank == 0\nfor chosen in items:\n    if chosen: SITE", MANY),
    ("reassigned somewhere", "chosen = rank == 0\nif flag: chosen = debug\nif chosen: SITE", MANY),
    ("a name alone", "is_main = flag == 3\nif is_main: SITE", MANY),
)
def test_aliased_checks(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("item", 'if int(os.environ["RANK"]) == 0: SITE', ONE),
    ("item as text", 'if os.environ["RANK"] == "0": SITE', ONE),
    ("get", 'if os.environ.get("RANK", "0") == "0": SITE', ONE),
    ("get as number", 'if int(os.environ.get("RANK", 0)) == 0: SITE', ONE),
    ("get or", 'if int(os.environ.get("RANK") or 0) == 0: SITE', ONE),
    ("getenv", 'if os.getenv("RANK", "0") == "0": SITE', ONE),
    ("imported environ", 'if int(environ["RANK"]) == 0: SITE', ONE),
    ("imported getenv", 'if not int(getenv("RANK", 0)): SITE', ONE),
    ("not", 'if not int(os.environ["RANK"]): SITE', ONE),
    ("slurm", 'me = int(os.environ["SLURM_PROCID"])\nif me != 0: return\nSITE', ONE),
    ("open mpi", 'if os.environ.get("OMPI_COMM_WORLD_RANK") in (None, "0"): SITE', ONE),
    ("local", 'if int(os.environ["LOCAL_RANK"]) == 0: SITE', NODE),
    ("slurm local", 'if os.environ.get("SLURM_LOCALID", "0") == "0": SITE', NODE),
    ("size", 'if int(os.environ["WORLD_SIZE"]) > 1 and rank != 0: return\nSITE', ONE),
    ("is it set", 'if "RANK" in os.environ: SITE', MANY),
    ("is it set, by truth", 'if os.environ.get("RANK"): SITE', MANY),
    ("another variable", 'if int(os.environ["DEVICE"]) == 0: SITE', MANY),
    ("the size", 'if int(os.environ["WORLD_SIZE"]) > 1: SITE', MANY),
)
def test_environment_variables(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("alone or first", "if world_size == 1 or rank == 0: SITE", ONE),
    ("several and not first", "if world_size > 1 and rank != 0: return\nSITE", ONE),
    ("initialized and not first", "if dist.is_initialized() and get_rank() != 0: return\nSITE", ONE),
    ("not initialized or first", "if not dist.is_initialized() or get_rank() == 0: SITE", ONE),
    ("available", "if dist.is_available() and dist.is_initialized() and get_rank() > 0: return\nSITE", ONE),
    ("size call", "if get_world_size() < 2 or get_rank() == 0: SITE", ONE),
    ("two branches", "if dist.is_initialized():\n    if get_rank() == 0: SITE", ONE),
    ("not initialized", "if not dist.is_initialized(): SITE", ONE),
    ("alone", "if world_size == 1: SITE", ONE),
    ("several", "if world_size > 1: SITE", MANY),
    ("initialized", "if dist.is_initialized(): SITE", MANY),
    ("not alone", "if world_size == 1: return\nSITE", MANY),
)
def test_world_size_checks(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("local rank", "if args.local_rank == 0: SITE", NODE),
    ("local rank with minus one", "if args.local_rank in (-1, 0): SITE", NODE),
    ("local exit", "if args.local_rank > 0: return\nSITE", NODE),
    ("rank modulo devices", "if rank % torch.cuda.device_count() == 0: SITE", NODE),
    ("local call", "if dist.get_node_local_rank() == 0: SITE", NODE),
    ("local and global", "if args.local_rank == 0 and rank == 0: SITE", ONE),
    ("local or global", "if args.local_rank == 0 or rank == 0: SITE", NODE),
    ("group rank", "if mpu.get_data_parallel_rank() == 0: SITE", GROUP),
    ("group rank by name", "if args.dp_rank == 0: SITE", GROUP),
    ("two groups", "if args.dp_rank == 0 and args.tp_rank == 0: SITE", GROUP),
    ("group and global", "if args.dp_rank == 0 and rank == 0: SITE", ONE),
    ("local and group", "if args.local_rank == 0 and args.dp_rank == 0: SITE", NODE),
    ("last", "if rank == world_size - 1: SITE", ONE),
    ("last by call", "if get_rank() == get_world_size() - 1: SITE", ONE),
    ("all but the last", "if rank == world_size - 1: return\nSITE", MANY),
    ("not the first of a node", "if args.local_rank != 0: SITE", OTHERS),
    ("above one", "if rank > 1: SITE", OTHERS),
    ("above one leave", "if rank > 1: return\nSITE", MANY),
    ("below two", "if rank < 2: SITE", MANY),
    ("a certain local rank", "if args.local_rank == 1: SITE", NODE),
    ("the first local ranks", "if args.local_rank < 2: SITE", MANY),
    ("the first local ranks of a group", "if args.local_rank < 2 and args.dp_rank == 0: SITE", GROUP),
    ("a certain node", "if args.node_rank == 3: SITE", MANY),
    ("a certain worker", "if config.worker_id == 3: SITE", MANY),
)
def test_local_and_group_rank_checks(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("a rank's truth", "if rank: SITE", OTHERS),
    ("unequal", "if rank != 0: SITE", OTHERS),
    ("rank and size", "if rank < world_size: SITE", MANY),
    ("set", "if rank is not None: SITE", MANY),
    ("not set", "if rank is None: return\nSITE", MANY),
    ("at least zero", "if rank >= 0: SITE", MANY),
    ("a flag", "if debug: SITE", MANY),
    ("not a flag", "if not debug: SITE", MANY),
    ("a step", "if step % 10 == 0: SITE", MANY),
    ("a step is zero", "if step == 0: SITE", MANY),
    ("a rank's parity", "if rank % 2 == 0: SITE", MANY),
    ("a text", 'if name == "rank": SITE', MANY),
    ("a text in a name", 'if "rank" in name: SITE', MANY),
    ("a key", 'if "rank" in config: SITE', MANY),
    ("a worker", "if get_worker_info().id == 0: SITE", MANY),
    ("a worker's name", "worker_id = config.worker_id\nif worker_id == 0: SITE", MANY),
    ("a matrix rank", "if torch.linalg.matrix_rank(items) == 0: SITE", MANY),
    ("a number", "if config.count == 0: SITE", MANY),
    ("an empty list", "if not items: SITE", MANY),
    ("a list of ranks", "if rank in items: SITE", MANY),
    ("a negation of nothing", "if not config.enabled or flag: SITE", MANY),
    ("a property that is called", "if args.should_save(): SITE", MANY),
    ("a variable of any name", "if int(os.environ[name]) == 0: SITE", MANY),
    ("all ranks", "for rank in range(world_size): SITE", MANY),
    ("after the branch", "if rank == 0: pass\nSITE", MANY),
    ("both branches meet", "if rank == 0: flag = 1\nelse: flag = 2\nif flag: SITE", MANY),
    ("compared with the size", "if rank == world_size: SITE", MANY),
    wrong={"compared with the size": "any equality with a rank counts as one process"},
)
def test_conditions_that_do_not_select_one_rank(case: Case) -> None:
    assert in_main(case.code) is case.runs


@cases(
    ("attribute", "self.chosen = rank == 0|if self.chosen: SITE", ONE),
    ("rank attribute", "self.me = dist.get_rank()|if self.me == 0: SITE", ONE),
    ("usual name", "self.anything = rank|if self.is_main: SITE", ONE),
    ("usual rank name", "self.anything = 1|if self.rank == 0: SITE", ONE),
    ("usual local name", "self.anything = 1|if self.local_rank == 0: SITE", NODE),
    ("property", "self.me = dist.get_rank()|if self.first: SITE", ONE),
    ("cached property", "self.me = dist.get_rank()|if self.cached: SITE", ONE),
    ("method", "self.me = dist.get_rank()|if self.is_first(): SITE", ONE),
    ("method exit", "self.me = dist.get_rank()|if not self.is_first(): return\nSITE", ONE),
    ("attribute with a default", "self.me = rank if rank is not None else 0|if self.me == 0: SITE", ONE),
    ("an object's", "self.me = 1|if self.trainer.is_global_zero: SITE", ONE),
    ("a method alone", "self.me = 3|if self.is_first: SITE", MANY),
    ("reset elsewhere", "self.chosen = rank == 0|self.chosen = flag\nif self.chosen: SITE", MANY),
)
def test_checks_in_attributes(case: Case) -> None:
    first, _, then = case.code.partition("|")
    text = f"""\
import os
import functools
import torch.distributed as dist

class Saver:
    def __init__(self, rank, flag):
        {first}

    @property
    def first(self):
        return self.me == 0

    @functools.cached_property
    def cached(self):
        return not self.me

    def is_first(self):
        return self.me == 0

    def save(self, out, flag):
{indent(then.replace("SITE", SITE), "        ")}
"""
    assert runs({"main.py": text}) is case.runs


LIBRARIES = [
    ("accelerate", "from accelerate import Accelerator\na = Accelerator()", "a.is_main_process", ONE),
    (
        "accelerate local",
        "from accelerate import Accelerator\na = Accelerator()",
        "a.is_local_main_process",
        NODE,
    ),
    ("accelerate state", "from accelerate import PartialState", "PartialState().is_main_process", ONE),
    (
        "accelerate index",
        "from accelerate import Accelerator\na = Accelerator()",
        "a.process_index == 0",
        ONE,
    ),
    ("horovod", "import horovod.torch as hvd", "hvd.rank() == 0", ONE),
    ("horovod local", "import horovod.torch as hvd", "hvd.local_rank() == 0", NODE),
    ("mpi4py", "from mpi4py import MPI", "MPI.COMM_WORLD.Get_rank() == 0", ONE),
    ("mpi4py alias", "from mpi4py import MPI\ncomm = MPI.COMM_WORLD", "comm.rank == 0", ONE),
    ("jax", "import jax", "jax.process_index() == 0", ONE),
    ("deepspeed", "import deepspeed", "deepspeed.comm.get_rank() == 0", ONE),
    ("torch", "import torch", "torch.distributed.get_rank() == 0", ONE),
    ("torch, as a function", "from torch.distributed import get_rank as me", "me() == 0", ONE),
    ("trainer", "trainer = object()", "trainer.is_world_process_zero()", ONE),
]


@pytest.mark.parametrize(
    ("head", "test", "expected"), [pytest.param(*row[1:], id=row[0]) for row in LIBRARIES]
)
def test_library_rank_checks(head: str, test: str, expected: Runs) -> None:
    assert (
        runs({"main.py": f"import os\n{head}\ndef main(out):\n    if {test}:\n        {SITE}\n"}) is expected
    )


PREDICATE = """\
import torch.distributed as dist

def chosen():
    if not dist.is_initialized():
        return True
    return dist.get_rank() == 0

def skipped():
    return dist.get_rank() != 0

def me():
    return dist.get_rank() if dist.is_initialized() else 0

def me_in_branches():
    if not dist.is_initialized():
        return 0
    return dist.get_rank()

def wrapped():
    return chosen()

def flagged(flag):
    return flag

def first_of_node():
    return dist.get_node_local_rank() == 0

def anybody():
    return dist.get_rank() >= 0

def nobody():
    raise NotImplementedError

def one_of_two(last):
    if last:
        return dist.get_rank() == dist.get_world_size() - 1
    return dist.get_rank() == 0

def below_two():
    return dist.get_rank() < 2

def two(last):
    if last:
        return True
    return dist.get_rank() == 0

def again(deep):
    if deep:
        return again(True)
    return dist.get_rank() == 0

def pair():
    return dist.get_rank(), dist.get_world_size()

def pair_or_none(flag):
    if flag:
        return dist.get_rank(), dist.get_world_size()
    return None
"""


def file_with_check(head: str, test: str) -> str:
    return f"import os\n{head}\n\ndef main(out, flag):\n    if {test}:\n        {SITE}\n"


@pytest.mark.parametrize(
    ("head", "test", "expected"),
    [
        pytest.param("from util import chosen", "chosen()", ONE, id="imported"),
        pytest.param("import util", "util.chosen()", ONE, id="through the module"),
        pytest.param("import util as u", "u.chosen()", ONE, id="through an alias"),
        pytest.param("from util import chosen as ours", "ours()", ONE, id="renamed"),
        pytest.param("from util import *", "chosen()", ONE, id="star import"),
        pytest.param("from util import skipped", "not skipped()", ONE, id="negated"),
        pytest.param("from util import wrapped", "wrapped()", ONE, id="wrapped"),
        pytest.param("from util import me", "me() == 0", ONE, id="rank"),
        pytest.param(
            "from util import me_in_branches", "me_in_branches() == 0", ONE, id="rank with two returns"
        ),
        pytest.param("from util import me", "not me()", ONE, id="negated rank"),
        pytest.param("from util import first_of_node", "first_of_node()", NODE, id="local rank"),
        pytest.param("from util import flagged", "flagged(flag)", MANY, id="returns its argument"),
        pytest.param("from util import anybody", "anybody()", MANY, id="true on every rank"),
        pytest.param("from util import nobody", "nobody()", MANY, id="abstract"),
        pytest.param("from util import one_of_two", "one_of_two(flag)", ONE, id="rank 0 or the last rank"),
        pytest.param("from util import below_two", "below_two()", MANY, id="rank 0 and rank 1"),
        pytest.param("from util import two", "two(flag)", MANY, id="rank 0 or every rank"),
        pytest.param("from util import pair\nme, size = pair()", "me == 0", ONE, id="unpacked tuple"),
        pytest.param(
            "from util import pair_or_none\nme, size = pair_or_none(1)",
            "me == 0",
            MANY,
            id="unpacked tuple or None",
        ),
        pytest.param("from util import again", "again(True)", MANY, id="recursive branch"),
        pytest.param("from util import chosen", "chosen", MANY, id="function not called"),
        pytest.param("from util import chosen", "chosen() or flag", MANY, id="or an unknown condition"),
    ],
)
def test_predicates_in_another_file(head: str, test: str, expected: Runs) -> None:
    assert runs({"util.py": PREDICATE, "main.py": file_with_check(head, test)}) is expected


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(
            {
                "pkg/__init__.py": "",
                "pkg/util.py": PREDICATE,
                "pkg/main.py": file_with_check("from .util import chosen", "chosen()"),
            },
            id="relative",
        ),
        pytest.param(
            {
                "pkg/__init__.py": "",
                "pkg/util.py": PREDICATE,
                "pkg/sub/__init__.py": "",
                "pkg/sub/main.py": file_with_check("from ..util import chosen", "chosen()"),
            },
            id="two levels up",
        ),
        pytest.param(
            {
                "pkg/__init__.py": "",
                "pkg/util.py": PREDICATE,
                "pkg/main.py": file_with_check("from . import util", "util.chosen()"),
            },
            id="relative module",
        ),
        pytest.param(
            {
                "pkg/__init__.py": "from .util import chosen",
                "pkg/util.py": PREDICATE,
                "main.py": file_with_check("from pkg import chosen", "chosen()"),
            },
            id="re-exported",
        ),
        pytest.param(
            {
                "pkg/__init__.py": "from .util import *",
                "pkg/util.py": PREDICATE,
                "main.py": file_with_check("import pkg", "pkg.chosen()"),
            },
            id="re-exported by star",
        ),
        pytest.param(
            {
                "pkg/__init__.py": "from pkg.util import chosen as first",
                "pkg/util.py": PREDICATE,
                "main.py": file_with_check("from pkg import first as ours", "ours()"),
            },
            id="renamed twice",
        ),
        pytest.param(
            {
                "settings.py": "import os\nME = int(os.environ.get('RANK', 0))",
                "main.py": file_with_check("from settings import ME", "ME == 0"),
            },
            id="constant",
        ),
        pytest.param(
            {
                "settings.py": "from os import environ\nME = int(environ['RANK'])\nOURS = ME == 0",
                "main.py": file_with_check("import settings", "settings.OURS"),
            },
            id="constant test",
        ),
        pytest.param(
            {
                "settings.py": "import os\nRANK = int(os.getenv('RANK', '0'))",
                "main.py": file_with_check("from settings import RANK", "RANK == 0"),
            },
            id="global RANK",
        ),
        pytest.param(
            {
                "util.py": "import torch.distributed as dist\nclass State:\n    @property\n"
                "    def ours(self):\n        return dist.get_rank() == 0\nstate = State()",
                "main.py": file_with_check("from util import state", "state.ours"),
            },
            id="property of an imported object",
        ),
        pytest.param(
            {
                "util.py": "import torch.distributed as dist\nclass State:\n    @staticmethod\n"
                "    def ours():\n        return dist.get_rank() == 0",
                "main.py": file_with_check("from util import State", "State.ours()"),
            },
            id="static method",
        ),
        pytest.param(
            {
                "util.py": "import torch.distributed as dist\nours = lambda: dist.get_rank() == 0",
                "main.py": file_with_check("from util import ours", "ours()"),
            },
            id="lambda",
            marks=pytest.mark.xfail(reason="a lambda in a variable of another file is not followed"),
        ),
    ],
)
def test_checks_across_files(files: dict[str, str]) -> None:
    assert runs(files) is ONE


SAVE = f"import os\n\ndef save(out, chosen=False):\n    if chosen: {SITE}\n"
PLAIN = f"import os\n\ndef save(out):\n    {SITE}\n"
KEYWORD = SAVE.replace("chosen=False", "*, chosen=False")
CALLER = """\
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Thread
import torch.distributed as dist
from lib import save

def main(rank, flag, out):
"""


@pytest.mark.parametrize(
    ("library", "calls", "expected"),
    [
        pytest.param(PLAIN, "    if rank == 0: save(out)", ONE, id="guarded call"),
        pytest.param(PLAIN, "    if rank != 0: return\n    save(out)", ONE, id="exit before the call"),
        pytest.param(
            PLAIN, "    if rank == 0: save(out)\n    if not rank: save(flag)", ONE, id="two guarded calls"
        ),
        pytest.param(PLAIN, "    if rank == 0: save(out)\n    save(flag)", MANY, id="one of two guarded"),
        pytest.param(PLAIN, "    save(out)", MANY, id="unguarded call"),
        pytest.param(PLAIN, "    if dist.get_node_local_rank() == 0: save(out)", NODE, id="local guard"),
        pytest.param(PLAIN, "    if rank == 0: save(out)\n    else: save(out)", MANY, id="both branches"),
        pytest.param(PLAIN, "    inner = lambda: save(out)\n    if rank == 0: inner()", ONE, id="lambda"),
        pytest.param(SAVE, "    save(out, chosen=rank == 0)", ONE, id="guard as an argument"),
        pytest.param(
            SAVE, "    save(out, rank == 0)\n    save(flag, not rank)", ONE, id="guard from every caller"
        ),
        pytest.param(SAVE, "    save(out, rank == 0)\n    save(out, flag)", MANY, id="guard from one caller"),
        pytest.param(SAVE, "    save(out, flag)", MANY, id="flag as an argument"),
        pytest.param(
            SAVE, "    save(out, rank == 0)\n    save(flag, rank)", MANY, id="rank 0 and the other ranks"
        ),
        pytest.param(KEYWORD, "    save(out, chosen=rank == 0)", ONE, id="keyword-only argument"),
        pytest.param(
            KEYWORD, "    partial(save, out, chosen=rank == 0)()", ONE, id="keyword argument of partial"
        ),
        pytest.param(
            KEYWORD,
            "    ThreadPoolExecutor().submit(save, out, chosen=not rank)",
            ONE,
            id="keyword argument of submit",
        ),
        pytest.param(
            SAVE, "    Thread(target=save, args=(out, not rank)).start()", ONE, id="argument of a thread"
        ),
        pytest.param(
            SAVE, "    Thread(target=save, args=flag).start()", MANY, id="unknown arguments of a thread"
        ),
        pytest.param(SAVE, "    ThreadPoolExecutor().submit(save, *flag)", MANY, id="unpacked arguments"),
        pytest.param(
            SAVE,
            "    ThreadPoolExecutor().submit(save, *flag, not rank)",
            MANY,
            id="after unpacked arguments",
        ),
        pytest.param(
            SAVE.replace("chosen", "name"),
            "    multiprocessing.Process(target=save, args=(out,), name=rank == 0).start()",
            MANY,
            id="name argument of a process",
        ),
    ],
)
def test_checks_in_callers(library: str, calls: str, expected: Runs) -> None:
    assert runs({"lib.py": library, "main.py": f"{CALLER}{calls}\n"}) is expected


@pytest.mark.parametrize("decorator", ["", "@staticmethod", "@classmethod"])
@pytest.mark.parametrize(
    ("test", "expected"), [("number", OTHERS), ("not number", ONE), ("self", MANY), ("not name", MANY)]
)
def test_spawn_index_of_a_method(decorator: str, test: str, expected: Runs) -> None:
    first = "number, name, self=None" if decorator == "@staticmethod" else "self, number, name"
    text = f"""\
        import os
        import torch.multiprocessing as mp
        class Saver:
            {decorator}
            def save({first}):
                if {test}:
                    {SITE.replace("out", "name")}
            def main(self, name):
                mp.spawn(self.save, args=(name,), nprocs=4)
        """
    assert runs({"main.py": text}) is expected


@pytest.mark.parametrize(
    ("spawn", "expected"),
    [
        ("mp.spawn(save, args=(name, not rank), nprocs=4)", ONE),
        ("mp.spawn(save, (name, not rank), 4)", ONE),
        ("mp.spawn(save, (name, rank != 0), 4)", OTHERS),
        ("mp.spawn(save, name, 4)", MANY),
        ("mp.spawn(save, nprocs=4)", MANY),
        ("mp.spawn(save)", MANY),
    ],
)
def test_spawn_arguments(spawn: str, expected: Runs) -> None:
    text = f"""\
        import os
        import torch.multiprocessing as mp
        def save(number, out, chosen=True):
            if chosen:
                {SITE}
        def main(rank, name):
            {spawn}
        """
    assert runs({"main.py": text}) is expected


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        pytest.param("number", ONE, id="no annotation"),
        pytest.param("number: int", ONE, id="int"),
        pytest.param("number: str", ONE, id="str, which may be parsed"),
        pytest.param("number=None", ONE, id="default None"),
        pytest.param("number: Tool", MANY, id="project class"),
        pytest.param("number: Path", MANY, id="library class"),
        pytest.param("number: Optional[Path] = None", MANY, id="optional library class"),
        pytest.param("number: dict", MANY, id="dict"),
        pytest.param("number=True", MANY, id="bool default"),
    ],
)
def test_parameter_annotated_as_no_number_is_no_rank(parameter: str, expected: Runs) -> None:
    """Its callers are not searched."""
    text = f"""\
        import os
        from pathlib import Path
        from typing import Optional
        import torch.distributed as dist
        class Tool: ...
        def save(out, {parameter}):
            if number == 0:
                {SITE}
        save("a", dist.get_rank())
        """
    assert runs({"main.py": text}) is expected


@pytest.mark.parametrize("test", ["not gpu", "gpu == 0"])
@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("if size > 1: mp.spawn(work, args=(out,), nprocs=size)\n    else: work(0, out)", ONE),
        ("if size > 1: mp.spawn(work, args=(out,), nprocs=size)\n    else: work(None, out)", ONE),
        ("if size > 1: mp.spawn(work, args=(out,), nprocs=size)\n    else: work(out=out)", ONE),
        ("if size > 1: mp.spawn(work, args=(out,), nprocs=size)\n    else: work(size, out)", MANY),
        ("if size > 1: work(0, out)\n    else: work(1, out)", MANY),
        ("work(0, out)", MANY),
        ("work(dist.get_rank(), out)", ONE),
        ("work(dist.get_rank(), out)\n    work(0, out)", MANY),
    ],
)
def test_constant_rank_in_a_single_process(launch: str, expected: Runs, test: str) -> None:
    text = f"""\
import os
import torch.distributed as dist
import torch.multiprocessing as mp

def work(gpu=0, out=None):
    if {test}: {SITE}

def main(size, out):
    {launch}
"""
    assert runs({"main.py": text}) is expected


def test_check_three_calls_up() -> None:
    text = f"""\
        import os
        def main(rank, out):
            if rank == 0:
                one(out)
        def one(out):
            two(out)
        def two(out):
            three(out)
        def three(out):
            {SITE}
        """
    assert runs({"main.py": text}) is ONE


@pytest.mark.parametrize(
    ("decorator", "head", "expected"),
    [
        pytest.param(
            "rank_zero_only", "from pytorch_lightning.utilities import rank_zero_only", ONE, id="lightning"
        ),
        pytest.param("lib.rank_zero_only", "import lib", ONE, id="by name"),
        pytest.param(
            "a.on_main_process", "from accelerate import Accelerator\na = Accelerator()", ONE, id="accelerate"
        ),
        pytest.param(
            "a.on_local_main_process",
            "import accelerate\na = accelerate.Accelerator()",
            NODE,
            id="local rank",
        ),
        pytest.param("functools.cache", "import functools", MANY, id="unrelated decorator"),
        pytest.param("ours", "from util import ours", ONE, id="rank decorator of the project"),
        pytest.param("plain", "from util import plain", MANY, id="plain decorator of the project"),
    ],
)
def test_rank_decorators(decorator: str, head: str, expected: Runs) -> None:
    util = """\
        import functools
        import torch.distributed as dist
        def ours(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                if dist.get_rank() == 0:
                    return function(*args, **kwargs)
                return None
            return wrapper
        def plain(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper
        """
    text = f"import os\n{head}\n\n@{decorator}\ndef save(out):\n    {SITE}\n"
    assert runs({"util.py": util, "main.py": text}) is expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("rank", ONE),
        ("local_rank", NODE),
        ("RANK", ONE),
        ("dp_rank", GROUP),
        ("number", MANY),
        ("worker_id", MANY),
    ],
)
def test_parameters_named_like_a_rank(test: str, expected: Runs) -> None:
    assert (
        runs({"main.py": f"import os\ndef save(out, {test}):\n    if {test} == 0:\n        {SITE}\n"})
        is expected
    )


def test_parameter_value_comes_from_the_callers() -> None:
    text = f"""\
        import os
        import torch.distributed as dist
        def main(out):
            save(out, dist.get_rank())
        def save(out, number):
            if number == 0:
                {SITE}
        """
    assert runs({"main.py": text}) is ONE


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("args.chosen = rank == 0|args.chosen", id="attribute of a parameter"),
        pytest.param("global chosen; chosen = rank == 0|chosen", id="global variable"),
        pytest.param("main.chosen = rank == 0|main.chosen", id="attribute of a function"),
    ],
)
def test_conditional_rebinding_invalidates_the_check(code: str) -> None:
    bound, _, test = code.partition("|")
    assert in_main(f"if flag: {bound}\nif {test}: SITE") is MANY


def test_attribute_rebound_in_another_method() -> None:
    text = f"""\
        import os
        class Saver:
            def __init__(self, flag):
                self.chosen = flag
            def save(self, rank, flag, out):
                if flag:
                    self.chosen = rank == 0
                if self.chosen:
                    {SITE}
        """
    assert runs({"main.py": text}) is MANY


HEIRS = """
import os
import torch.distributed as dist


class Saver:
    {own}

    def save(self, out):
        if self.chosen:
            os.makedirs(out)
"""
BINDING = """
    def __init__(self):
        self.chosen = dist.get_rank() == 0
"""


@pytest.mark.parametrize(
    ("heirs", "own", "expected"),
    [(500, "", ONE), (501, "", MANY), (501, BINDING.strip(), ONE)],
    ids=["at the limit", "above the limit", "above the limit, bound in the base class"],
)
def test_attributes_bound_in_subclasses(heirs: int, own: str, expected: Runs) -> None:
    """Beyond 500 subclasses, what they bind is ignored: it says nothing about a given object."""
    classes = "".join(f"\n\nclass Saver{number}(Saver):{BINDING}" for number in range(heirs))
    assert runs({"saver.py": HEIRS.format(own=own) + classes}) is expected
