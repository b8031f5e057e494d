"""What a catalog entry of each kind says.

A name is either a qualified one (`os.makedirs`, `pathlib.Path.mkdir`) or
`*.last`, which means any callable or attribute of that last name whose owner
could not be determined, or is not known to the catalog.

An argument of a call is written `position:keyword`, where either part may be
missing, or `self` for the object whose method is called: `1:path`, `0`,
`:exist_ok`. Flags are several of these with blanks between them, or `true` for
a call that is so by its nature; `:keep=true` is a flag that is on where the
call does not give it.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from fsrace_lint.config.settings import SettingsError

First: TypeAlias = Literal["global", "local", "group", "filesystem"]
"""Of what a process is the first: the job, its node, its process group, all that share a filesystem."""

RankScope: TypeAlias = Literal["global", "local", "group", "filesystem", "node", "worker"]
"""What a number counts: besides the above, the nodes of a job, and the workers of one process."""

Op: TypeAlias = Literal[
    "probe",
    "list",
    "read",
    "mkdir",
    "create",
    "write",
    "delete",
    "rename",
    "copy",
    "link",
    "extract",
    "download",
    "poll",
    "name",
]

Origin: TypeAlias = Literal["own", "pid", "clock", "chance", "creation", "address"]
"""Why a value differs from process to process."""


class CatalogError(SettingsError):
    """An entry that cannot be read; the message names the file, the kind and the key."""


class CatalogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """What all entries have: the names it is about, where that was read, and what else is worth knowing."""

    names: tuple[str, ...]
    """What it is about: qualified names, or `*.name`."""
    source: str = ""
    """Where that was read: a documentation page, or a repository and a file in it."""
    note: str = ""
    """What else is worth knowing."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ()
    FLAGS: ClassVar[tuple[str, ...]] = ()


class Effect(CatalogEntry, frozen=True, kw_only=True):
    """A call that touches the filesystem."""

    op: Op
    """What it does.

    `probe` tests the path, `list` and `read` use it, `poll` waits for it, `name` makes
    up a free name in that folder and creates nothing, the others change it.
    """
    path: str
    """The argument with the path it tests, makes, changes or removes.

    Behind `=` stands the path it is where that argument is not given: `0:root=data`.
    """
    target: str = ""
    """The argument with the path that a rename makes."""
    mode: str = ""
    """The argument with an open mode, as `1:mode` or `1:mode=w` where that is the default.

    Without `w`, `a`, `x`, `+`, and for databases `c` or `n`, nothing is written; with `r` it is read.
    """
    flags: str = ""
    """The argument with flags of `os.open`."""
    tolerant: bool | str = False
    """The flags of which any makes the call accept what another process did."""
    exclusive: bool | str = False
    """The flags of which any makes the call fail where the path is there."""
    atomic: bool | str = False
    """The flags of which any makes the result appear whole or not at all."""
    tree: bool = False
    """Whether it takes a directory with all that is in it: the copy of a tree, or its removal."""
    condition: str = ""
    """The argument that says whether this process does it at all, as `:is_main_process=true`.

    Without `=true`, nobody does it where the argument is not given.
    """
    guard: First | None = None
    """Of what only the first process touches the path, whoever calls."""
    globally: bool | str = False
    """The flags of which any makes that the first process of all, as `4:global_master`."""
    synchronized: bool | str = False
    """The flags of which any lets several processes call it at once: it locks, or renames when done."""
    skips: bool | str = False
    """The flags of which any makes the call do nothing where the result is there."""
    single_file: bool = False
    """Whether it writes one file, at the path it is given: a fix may hand it another one, and rename that."""
    suffix: str = ""
    """What it adds to a path that does not end in it, as `.npy`."""
    url: str = ""
    """The argument with the address, where it downloads one to one file: a fix may call a helper instead."""
    progress: str = ""
    """The argument that only says how the progress of a download is shown."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("path", "target", "mode", "flags", "url", "progress")
    FLAGS: ClassVar[tuple[str, ...]] = (
        "tolerant",
        "exclusive",
        "atomic",
        "globally",
        "synchronized",
        "skips",
        "condition",
    )


class RankEntry(CatalogEntry, frozen=True, kw_only=True):
    """A call or attribute whose value is the number of this process, its node or its worker."""

    scope: RankScope
    """What the number counts."""
    needs_group: bool = False
    """Whether it is 0 on every process until the process group exists."""


class Guard(CatalogEntry, frozen=True, kw_only=True):
    """A call or attribute that is true for the first process of `scope` alone."""

    scope: First
    """Of what it is the first."""
    is_property: bool = False
    """Whether only the attribute is: a method of that name means something else."""
    needs_group: bool = False
    """Whether it is true on every process until the process group exists."""
    of: tuple[str, ...] = ()
    """The usual names of the object, where it is known by its last name alone."""


class World(CatalogEntry, frozen=True, kw_only=True):
    """A fact about the whole job, equal on all processes: its size, or whether it was set up."""

    kind: Literal["size", "initialized", "runtime"]
    """Which of them; a `runtime` is set up by one process, which hands its work to others."""


class Variable(CatalogEntry, frozen=True, kw_only=True):
    """A usual name of a variable, parameter or attribute, believed where its value is not known."""

    means: Literal["rank", "guard", "size", "initialized", "data", "trainer"]
    """What it usually holds.

    `data` is what is dealt out to the processes, a batch or the name of a sample; a `trainer` works in all
    of them and decides by itself who writes.
    """
    scope: RankScope = "global"
    """What a rank counts, or of what the process is the first where a guard is true."""


class EnvironmentEntry(CatalogEntry, frozen=True, kw_only=True):
    """An environment variable that a launcher sets, or the machine."""

    means: Literal["rank", "size", "host"]
    """What it holds: the number of this process, how many there are, or the name of the machine."""
    scope: RankScope = "global"
    """What the number counts."""


class Decorator(CatalogEntry, frozen=True, kw_only=True):
    """A decorator whose function runs on the first process of `scope` alone."""

    scope: First
    """Of what the process is the first."""
    barrier: bool = False
    """Whether the others wait for it."""
    mutes: bool = False
    """Whether the library's own barriers and collectives return at once in the function."""


class RunOnce(CatalogEntry, frozen=True, kw_only=True):
    """A helper that runs the function it is given on the first process of `scope` alone."""

    scope: First
    """Of what the process is the first."""
    barrier: bool = False
    """Whether the others wait for it."""
    mutes: bool = False
    """Whether the library's own barriers and collectives return at once in the function."""


class Hook(CatalogEntry, frozen=True, kw_only=True):
    """A method that a framework calls on objects of a class derived from its own: `Class.method`."""

    runs: Literal["every", "worker", "global", "local", "group"]
    """Who calls it: every process, every worker of every process, or the first one of a scope."""


class Callback(CatalogEntry, frozen=True, kw_only=True):
    """A call that keeps the function it is given, which another method of the same object runs later."""

    runs_in: str
    """The name of that method: who calls it in the same function runs what was given."""


class FirstContext(CatalogEntry, frozen=True, kw_only=True):
    """A context in which the first process of `scope` runs the body before all others run it too."""

    scope: First
    """Of what the process is the first."""
    waits: Literal["barrier", "file"] = "barrier"
    """What the others wait in: a barrier, or a loop that polls for a file which the first one makes."""
    runs_given: bool = False
    """Whether it is no context, but a call that runs the function it is given in that order."""
    rank: str = ""
    """The argument with the rank; a process that passes a negative one neither waits nor is waited for."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("rank",)


class LockEntry(CatalogEntry, frozen=True, kw_only=True):
    """A lock between processes: a context manager, or a call that acquires or releases it."""

    kind: Literal["context", "acquire", "release", "within"]
    """Which of these; `within` takes a lock and is done with it before it returns."""
    path: str = ""
    """The argument with the path of the file that is the lock."""
    file: str = ""
    """The argument with the open file that is locked, or with its number."""
    marker: bool = False
    """Whether the lock is held while the file is there; else the file may stay, and is locked itself."""
    waits: bool = True
    """Whether it waits for its holder without end, unless the call limits that."""
    timeout: str = ""
    """The argument that limits the wait, in seconds; None and negative numbers do not."""
    blocking: str = ""
    """The flag that is on where it waits at all."""
    flags: str = ""
    """The argument with flags of the system call."""
    trying: tuple[str, ...] = ()
    """The flags with which it does not wait."""
    releasing: tuple[str, ...] = ()
    """The flags with which it releases the lock."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("path", "file", "timeout", "flags")
    FLAGS: ClassVar[tuple[str, ...]] = ("blocking",)


class Returns(CatalogEntry, frozen=True, kw_only=True):
    """A call, or a property, whose result is an object of the class `type`."""

    type: str
    """The qualified name of the class."""
    is_property: bool = False
    """Whether it is a property, which is read and not called."""
    item: str = ""
    """The position of the object in the tuple that is the result; empty where it is the whole result."""


class Collective(CatalogEntry, frozen=True, kw_only=True):
    """A call that every process of a group must make."""

    orders: Literal["all", "source", "destination"] = "all"
    """Who waits: all for all, the receivers for the source, or the destination for the others."""
    when: Literal["always", "model"] = "always"
    """Whether that is always so, or only where it is given a model to divide among the processes."""


class CollectiveSaver(CatalogEntry, frozen=True, kw_only=True):
    """A save or load that every process must call; it decides by itself who writes."""

    when: Literal["always", "sharded"] = "always"
    """Whether that is always so, or only where the model is divided among the processes."""
    unless: str = ""
    """The flags of which any makes it an ordinary call."""
    certain: bool = True
    """Whether it shows that there are several processes, or does its work in one as well."""
    later: bool = False
    """Whether it returns before the files are there, and something else waits for that."""

    FLAGS: ClassVar[tuple[str, ...]] = ("unless",)


class Launch(CatalogEntry, frozen=True, kw_only=True):
    """A call that shows that several processes run the code around it."""

    certain: bool = True
    """Whether it shows that, or only that several could (a trainer that also runs on one device)."""
    creates_group: bool = False
    """Whether the process group exists only from then on."""
    count: str = ""
    """The argument with the number of processes; where it is given as 1, there is one."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("count",)


class Spawn(CatalogEntry, frozen=True, kw_only=True):
    """A call that starts processes which run the function it is handed."""

    single: bool = False
    """Whether one call starts one process."""
    passes_rank: bool = False
    """Whether the function gets its number as its first argument."""
    passes_object: bool = False
    """Whether the function gets an object of the library as its first argument."""
    count: str = ""
    """The argument with the number of processes, as `2:nprocs`, or `2:nprocs=1` where that is the default."""
    each: bool = False
    """Whether the function gets, call by call, the elements of what is handed over beside it."""
    curried: bool = False
    """Whether what it returns is called with the arguments of the function."""
    runner: str = ""
    """What is called to run what was handed to this one."""
    threads: tuple[str, ...] = ()
    """With which keywords, as `backend=threading`, the runner starts threads instead of processes."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("count",)


class Private(CatalogEntry, frozen=True, kw_only=True):
    """A call or attribute whose value differs from process to process, node to node or job to job."""

    scope: Literal["process", "node", "job"] = "process"
    """From what to what it differs; between jobs: it is equal on the ranks of each."""
    by: Origin = "own"
    """Why: it is a process id, what the clock says, chance, newly created, an address, or else its own."""
    folder: str = ""
    """The argument with the folder it lies in; where that is not given, it lies on the node's own disk."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("folder",)


class PathWord(CatalogEntry, frozen=True, kw_only=True):
    """A word in the name of a file or folder that tells what it is for."""

    means: Literal["pointer", "record", "description", "checkpoint", "data", "number", "scratch"]
    """What such a file is.

    A `pointer` is overwritten and read back to find out where to go on, a `record` for
    what it says of the run, a `description` for what it says of other files; a
    `checkpoint` is what is gone on from, `data` is neither. A `number` tells one of a
    series, of which none is overwritten, and `scratch` is soon gone.
    """


class PlainEntry(CatalogEntry, frozen=True, kw_only=True):
    """An entry of which only the names matter."""


class Response(PlainEntry, frozen=True, kw_only=True):
    """A call whose result is what a server answered, or what it is read from."""


class Barrier(PlainEntry, frozen=True, kw_only=True):
    """A call at which every process waits for all others."""


class InProcess(PlainEntry, frozen=True, kw_only=True):
    """A module whose locks and barriers hold threads or tasks of one process apart, not processes."""


class Program(PlainEntry, frozen=True, kw_only=True):
    """A call that runs the program in its first argument."""


class NodeLocalEntry(PlainEntry, frozen=True, kw_only=True):
    """A place on the node's own disk: a folder (`/tmp`), an environment variable (`$TMPDIR`) or a call."""


class Exit(PlainEntry, frozen=True, kw_only=True):
    """A call that never returns."""


class Random(PlainEntry, frozen=True, kw_only=True):
    """A call that draws a number which is the same in all processes only where they have set one seed."""


class Seed(PlainEntry, frozen=True, kw_only=True):
    """A name by which a program sets seeds: of a call, a method, or what it keeps the seed in."""


class SleepEntry(PlainEntry, frozen=True, kw_only=True):
    """A call that does nothing but let some seconds pass, which are its first argument."""


class IteratorEntry(CatalogEntry, frozen=True, kw_only=True):
    """A call for loops that adds nothing to what it goes over, such as a progress bar."""

    yields: Literal["argument", "numbers"]
    """What a loop gets: the elements of the first argument in their order, or numbers as from `range`."""


class Pure(PlainEntry, frozen=True, kw_only=True):
    """A call whose result depends on its arguments alone: equal on all processes where they are."""


class Suppressor(PlainEntry, frozen=True, kw_only=True):
    """A context that handles the exceptions it is given."""


class ObjectStore(PlainEntry, frozen=True, kw_only=True):
    """A usual name of an object whose methods are named like pathlib's, but that is no path."""


class IdiomEntry(CatalogEntry, frozen=True, kw_only=True):
    """What a module or an object offers to pick a process and to wait for all: how fixes spell it.

    Each is written behind the name of the module or object, as in `.get_rank() == 0`.
    """

    first: str = ""
    """What is true on the first process of the job alone."""
    barrier: str = ""
    """The call at which every process waits for all others."""
    needs_group: bool = False
    """Whether they fail until the process group exists."""


class Sink(PlainEntry, frozen=True, kw_only=True):
    """A thing that is written to without making a file."""
