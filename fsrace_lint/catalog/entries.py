"""The kinds of library models, and their keys.

A name is either a qualified name (`os.makedirs`, `pathlib.Path.mkdir`) or
`*.last`. `*.last` matches any callable or attribute with this last name whose
owner is unknown or is not in the library models.

An argument of a call is written `position:keyword`, and either part can be
missing: `1:path`, `0`, `:exist_ok`. `self` is the object whose method is called.
Flags are multiple arguments separated by spaces, or `true` for a call that
always has the property. `:keep=true` is a flag that is on if the call omits it.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

import msgspec

from fsrace_lint.config.validation import SettingsError

First: TypeAlias = Literal["global", "local", "group", "filesystem"]
"""Where a process is rank 0: in the job, its node, its process group, or all that share a filesystem."""

RankScope: TypeAlias = Literal["global", "local", "group", "filesystem", "node", "worker"]
"""What a rank counts: also the nodes of a job, and the workers of one process."""

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
"""Why a value differs between processes."""


class CatalogError(SettingsError):
    """An invalid entry; the message names the file, the kind, and the key."""


class CatalogEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="kebab"):
    """The keys of all entries: the names, the source, and a note."""

    names: tuple[str, ...]
    """The names that the entry describes: qualified names, or `*.name`."""
    source: str = ""
    """The documentation page, or the repository and file, that the entry is based on."""
    note: str = ""
    """Additional information."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ()
    FLAGS: ClassVar[tuple[str, ...]] = ()


ANY_SUFFIX: Final = ".*"
"""The `suffix` of a function that appends one to a path without any."""


class Effect(CatalogEntry, frozen=True, kw_only=True):
    """A call that touches the filesystem."""

    op: Op
    """The operation.

    `probe` checks the path, `list` and `read` use it, and `poll` waits for it. `name` returns an
    unused name in that directory and creates nothing. The other operations change the path.
    """
    path: str
    """The argument with the path that the call checks, creates, changes, or deletes.

    The default path follows after `=`: `0:root=data`.
    """
    fallback: str = ""
    """The argument with the path if the call omits that one, or passes None."""
    beside: str = ""
    """The argument with a file, whose directory is the path if the call omits the path, or passes None."""
    target: str = ""
    """The argument with the new path of a rename."""
    mode: str = ""
    """The argument with an open mode: `1:mode`, or `1:mode=w` if `w` is the default.

    The call writes if the mode contains `w`, `a`, `x`, or `+`, or for databases `c` or `n`. It reads if
    the mode contains `r`.
    """
    flags: str = ""
    """The argument with the flags of `os.open`."""
    tolerant: bool | str = False
    """Flags that make the call accept the result of another process (any one is enough)."""
    exclusive: bool | str = False
    """Flags that make the call fail if the path exists (any one is enough)."""
    atomic: bool | str = False
    """Flags that make the result appear atomically (any one is enough)."""
    tree: bool = False
    """Whether it copies or deletes a directory with its whole content."""
    saves_model: bool = False
    """Whether it saves the weights of a model, or the state of a run, to load them later."""
    condition: str = ""
    """The argument that decides whether this process does it at all: `:is_main_process=true`.

    Without `=true`, no process does it if the call omits the argument.
    """
    otherwise: Op | None = None
    """The operation if the call omits that argument, or passes false."""
    within: str = ""
    """The directory that contains the path, if the call names it without one."""
    guard: First | None = None
    """The scope in which only rank 0 accesses the path, even if all ranks call it."""
    globally: bool | str = False
    """Flags that change that scope to the whole job: `4:global_master` (any one is enough)."""
    synchronized: bool | str = False
    """Flags that make concurrent calls safe: it locks, or renames at the end (any one is enough)."""
    skips: bool | str = False
    """Flags that make the call do nothing if the result exists (any one is enough)."""
    single_file: bool = False
    """Whether it writes one file, at the path it gets. A fix can pass another path and rename that."""
    suffix: str = ""
    """What it appends to a path that does not end with it: `.npy`. `.*` if any suffix will do."""
    by_suffix: bool = False
    """Whether it chooses the format or the compression by the suffix of the path."""
    url: str = ""
    """The argument with the URL, if it downloads one URL to one file. A fix can call a helper instead."""
    progress: str = ""
    """The argument that only controls how the progress of a download is shown."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = (
        "path",
        "fallback",
        "beside",
        "target",
        "mode",
        "flags",
        "url",
        "progress",
    )
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
    """A call or attribute whose value is the rank of this process, or the number of its node or worker."""

    scope: RankScope
    """What the rank counts."""
    needs_group: bool = False
    """Whether it is 0 on every process until the process group exists."""


class Guard(CatalogEntry, frozen=True, kw_only=True):
    """A rank check: a call or attribute that is true only on rank 0 of `scope`."""

    scope: First
    """The group in which the process is rank 0."""
    is_property: bool = False
    """Whether only the attribute is a rank check; a method of that name means something else."""
    needs_group: bool = False
    """Whether it is true on every process until the process group exists."""
    of: tuple[str, ...] = ()
    """The usual names of the object, for a name of the form `*.last`."""


class World(CatalogEntry, frozen=True, kw_only=True):
    """A fact about the job, equal on all processes: the world size, or whether it is initialized."""

    kind: Literal["size", "initialized", "runtime"]
    """Which fact. A `runtime` is initialized by one process, which sends work to other processes."""


class Variable(CatalogEntry, frozen=True, kw_only=True):
    """A usual name of a variable, parameter, or attribute, used if its value is unknown."""

    means: Literal["rank", "guard", "size", "initialized", "data", "part", "job", "trainer"]
    """The usual value.

    `data` is distributed over the processes, such as a batch or the name of a sample. A `part` is the number
    of the part of the work that a process gets, and a `job` the number of a job. A `trainer` runs in all
    processes and decides itself which process writes.
    """
    scope: RankScope = "global"
    """What a rank counts, or the group in which the process is rank 0 if a guard is true."""


class EnvironmentEntry(CatalogEntry, frozen=True, kw_only=True):
    """An environment variable that a launcher or the machine sets."""

    means: Literal["rank", "size", "host", "job", "address"]
    """The value: the rank of this process, the world size, the host name, the number of a job, or the address
    at which the processes of a job meet."""
    scope: RankScope = "global"
    """What the rank counts."""


class Decorator(CatalogEntry, frozen=True, kw_only=True):
    """A decorator whose function runs only on rank 0 of `scope`."""

    scope: First
    """The group in which the process is rank 0."""
    barrier: bool = False
    """Whether the other ranks wait for it."""
    mutes: bool = False
    """Whether the barriers and collectives of the library return immediately in the function."""


class RunOnce(CatalogEntry, frozen=True, kw_only=True):
    """A helper that runs the function passed to it only on rank 0 of `scope`."""

    scope: First
    """The group in which the process is rank 0."""
    barrier: bool = False
    """Whether the other ranks wait for it."""
    mutes: bool = False
    """Whether the barriers and collectives of the library return immediately in the function."""


class Hook(CatalogEntry, frozen=True, kw_only=True):
    """A method that a framework calls on objects of a subclass of its own class: `Class.method`.

    Also a function in a configuration file that a server calls: `gunicorn.conf.post_fork` in the file
    `gunicorn.conf.py` or `gunicorn-conf.py`. The name of the code of the file is `__code__`.
    """

    runs: Literal["every", "worker", "global", "local", "group"]
    """Which processes call it: every process, every worker of every process, or rank 0 of a scope."""
    barrier: bool = False
    """Whether all processes wait for it before they call other hooks of the object."""
    restores: bool = False
    """Whether it restores a state that an earlier part of the job, or an earlier job, left on disk."""


class Callback(CatalogEntry, frozen=True, kw_only=True):
    """A call that stores the function passed to it, which another method of the same object runs later."""

    runs_in: str
    """The name of that method. A call of it in the same function, or else in the file, runs the function."""


class FirstContext(CatalogEntry, frozen=True, kw_only=True):
    """A context manager in which rank 0 of `scope` runs the body before all other ranks run it."""

    scope: First
    """The group in which the process is rank 0."""
    waits: Literal["barrier", "file"] = "barrier"
    """How the other ranks wait: in a barrier, or in a loop that polls for a file that rank 0 creates."""
    runs_given: bool = False
    """Whether it is a call that runs a function in this order, instead of a context manager."""
    rank: str = ""
    """The argument with the rank. A process with a negative rank does not wait, and no rank waits for it."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("rank",)


class LockEntry(CatalogEntry, frozen=True, kw_only=True):
    """A lock between processes: a context manager, or a call that acquires or releases the lock."""

    kind: Literal["context", "acquire", "release", "within", "enter"]
    """Which of these. `within` acquires and releases a lock before it returns. `enter` enters the context
    manager that it is passed, which can be a lock."""
    path: str = ""
    """The argument with the path of the lock file."""
    file: str = ""
    """The argument with the open file that is locked, or with its file descriptor."""
    marker: bool = False
    """Whether the lock is held while the file exists. Otherwise, the file itself is locked and can stay."""
    waits: bool = True
    """Whether it waits forever, unless the call limits the wait."""
    timeout: str = ""
    """The argument that limits the wait, in seconds. None and negative numbers are no limit."""
    blocking: str = ""
    """The flag that makes it wait at all."""
    flags: str = ""
    """The argument with the flags of the system call."""
    trying: tuple[str, ...] = ()
    """The flags with which it does not wait."""
    releasing: tuple[str, ...] = ()
    """The flags with which it releases the lock."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("path", "file", "timeout", "flags")
    FLAGS: ClassVar[tuple[str, ...]] = ("blocking",)


class Returns(CatalogEntry, frozen=True, kw_only=True):
    """A call or property whose result is an object of the class `type`."""

    type: str
    """The qualified name of the class."""
    named_by: str = ""
    """The argument with the name of a more specific class, also as a key of a dictionary that is passed."""
    is_property: bool = False
    """Whether it is a property."""
    item: str = ""
    """The position of the object in the resulting tuple. Empty if the object is the whole result."""
    protocol: str = ""
    """The argument with the protocol that decides the class, such as `s3`."""
    url: str = ""
    """The argument with the URL whose protocol decides the class. Without one, it is `file`."""
    by_protocol: tuple[str, ...] = ()
    """The class for each protocol, written `file=library.LocalFiles`. For others, the class is `type`."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("protocol", "url")


class Collective(CatalogEntry, frozen=True, kw_only=True):
    """A call that every process of a group must make."""

    orders: Literal["all", "source", "destination"] = "all"
    """Which ranks wait: all for all, the receivers for the source, or the destination for the other ranks."""
    when: Literal["always", "model"] = "always"
    """Whether this is always so, or only if a model to divide among the processes is passed."""


class Agreement(CatalogEntry, frozen=True, kw_only=True):
    """An attribute that all ranks must read or set together, because collectives depend on it."""

    use: Literal["read", "set"]
    """What they must do together: reading it calls a collective, or its value decides how long they train."""
    of: tuple[str, ...] = ()
    """The usual names of the object, for a name of the form `*.last`."""


class Signal(CatalogEntry, frozen=True, kw_only=True):
    """A call that lets other processes continue, which wait in a call of the same object or module."""

    awaited_in: tuple[str, ...]
    """The last names of the calls that wait for it."""


class CollectiveSaver(CatalogEntry, frozen=True, kw_only=True):
    """A save or load that every process must call. The library decides which process writes."""

    when: Literal["always", "sharded"] = "always"
    """Whether this is always so, or only if the model is divided among the processes."""
    unless: str = ""
    """Flags that make it an ordinary call (any one is enough)."""
    certain: bool = True
    """Whether it shows that there are multiple processes. Otherwise, it also works in a single process."""
    later: bool = False
    """Whether it returns before the files are written, and another call waits for them."""

    FLAGS: ClassVar[tuple[str, ...]] = ("unless",)


class Launch(CatalogEntry, frozen=True, kw_only=True):
    """A call that shows that multiple processes run the surrounding code."""

    certain: bool = True
    """Whether it shows this for certain.

    Otherwise, multiple processes are only possible, as with a trainer that also runs on one device.
    """
    creates_group: bool = False
    """Whether this call creates the process group."""
    count: str = ""
    """The argument with the number of processes. A value of 1 means a single process."""
    rank: str = ""
    """The argument with the rank of the process in the group."""
    address: str = ""
    """The argument with the address at which the processes meet."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("count", "rank", "address")


class Spawn(CatalogEntry, frozen=True, kw_only=True):
    """A call that starts processes, which run the function passed to it."""

    single: bool = False
    """Whether one call starts one process."""
    passes_rank: bool = False
    """Whether the function receives its rank as the first argument."""
    starts_job: bool = False
    """Whether the processes are the ranks of a job, also if the function does not receive its rank."""
    passes_object: bool = False
    """Whether the function receives an object of the library as the first argument."""
    count: str = ""
    """The argument with the number of processes: `2:nprocs`, or `2:nprocs=1` if the default is 1."""
    each: bool = False
    """Whether each call of the function receives one element of each of the other arguments."""
    curried: bool = False
    """Whether the returned object is called with the arguments of the function."""
    runner: str = ""
    """The call that runs the function passed to this one."""
    threads: tuple[str, ...] = ()
    """The keywords, such as `backend=threading`, that make the runner start threads, not processes."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("count",)


class Remote(Spawn, frozen=True, kw_only=True):
    """A method of a decorated function or class that runs it in another process: `task.remote(value)`."""

    one: bool | str = False
    """Flags in `task.options(…)` that make all calls use one process (any one is enough)."""

    FLAGS: ClassVar[tuple[str, ...]] = ("one",)


class Private(CatalogEntry, frozen=True, kw_only=True):
    """A call or attribute whose value differs between processes, nodes, or jobs."""

    scope: Literal["process", "node", "job"] = "process"
    """What the value differs between. A value that differs between jobs is equal on all ranks of a job."""
    by: Origin = "own"
    """Why it differs: a process ID, the clock, chance, a new path, an address, or another reason (`own`)."""
    folder: str = ""
    """The argument with the parent directory. If the call omits it, the path is on the disk of the node."""
    is_fine: bool = False
    """Whether the value is a time with fractions of a second, so that no two processes get the same."""
    is_day: bool = False
    """Whether the value is a date, which is the same in all processes that start together."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("folder",)


class PathWord(CatalogEntry, frozen=True, kw_only=True):
    """A word in the name of a file or directory that shows its purpose."""

    means: Literal[
        "pointer", "record", "description", "settings", "checkpoint", "share", "data", "number", "scratch"
    ]
    """The purpose.

    Three kinds of files are overwritten and read back. A `pointer` says where to continue, a `record`
    describes the run, and a `description` describes other files. The `settings` of a run are read to use its
    results. A run continues from a `checkpoint`; `data` is none of these. A `share` is what each process
    makes of its part of the work. A `number` identifies one file of a series, whose files are not
    overwritten. A `scratch` file is soon deleted.
    """


class PlainEntry(CatalogEntry, frozen=True, kw_only=True):
    """An entry that has only names."""


class Response(PlainEntry, frozen=True, kw_only=True):
    """A call whose result is the response of a server, or the stream to read it from."""


class Barrier(CatalogEntry, frozen=True, kw_only=True):
    """A call in which every process waits for all other processes."""

    bare: bool = False
    """Whether only a call without arguments waits."""


class InProcess(PlainEntry, frozen=True, kw_only=True):
    """A module whose locks and barriers coordinate threads or tasks of one process, not processes."""


class Program(CatalogEntry, frozen=True, kw_only=True):
    """A call that runs the program in its first argument: a list of words, or a text for a shell."""

    spread: bool = False
    """Whether the words are the positional arguments of the call, and not one argument."""
    checked: bool | str = False
    """Flags that make the call raise an exception if the program fails (any one is enough)."""

    FLAGS: ClassVar[tuple[str, ...]] = ("checked",)


class CommandEntry(CatalogEntry, frozen=True, kw_only=True):
    """A command that a program or a shell runs, and what it does to a path.

    The name is the program, with the words that choose what it does: `git clone`. Places in a command are
    options, or the number of an argument that is not an option: `-O --output-document`, `1`, or `-1` for the
    last one. The first one that the command contains counts. Instead of options, `true` means always.
    """

    op: Op | None = None
    """The operation; none for a command that only runs another one."""
    runs: Literal["words", "text"] | None = None
    """How it contains another command that it runs, at `path`: as the remaining words, or as a text."""
    path: str = ""
    """The place of the path that it creates, changes, or deletes."""
    folder: str = ""
    """The options with the directory in which it works."""
    here: str = ""
    """Options with which it creates files in its directory if `path` is missing (any one is enough)."""
    target: str = ""
    """The place of the new path of a rename."""
    least: int = 0
    """The minimum number of arguments that are not options."""
    most: int = 0
    """The maximum number of these arguments; 0 if there is none."""
    values: str = ""
    """The options that take a value, in addition to those in `path` and `folder`."""
    needs: str = ""
    """The options without which it does nothing (any one is enough)."""
    without: str = ""
    """The options with which it does something else."""
    remote: str = ""
    """Prefixes of paths on another host. It downloads from such a path to one without a prefix."""
    letters: bool = True
    """Whether one-letter options can be combined in one word, as in `-xzf`."""
    dashless: bool = False
    """Whether the first word can consist of one-letter options without a dash, as in `tar xf`."""
    tolerant: str = ""
    """Options with which it accepts the result of another process (any one is enough)."""
    exclusive: bool = False
    """Whether it fails if the path exists."""
    atomic: bool = False
    """Whether each file appears atomically."""
    in_place: str = ""
    """The options with which it does not."""
    appends: str = ""
    """Options with which it keeps the content of the file (any one is enough)."""
    tree: str = ""
    """Options with which it copies or deletes a directory with its whole content (any one is enough)."""


class Driver(PlainEntry, frozen=True, kw_only=True):
    """A call that one process makes to start the processes of a cluster, or to send work to them."""


class Rerun(CatalogEntry, frozen=True, kw_only=True):
    """A call that starts the other ranks of a job: processes that run the program from its beginning.

    If a launcher has started all ranks, it starts none.
    """


class ArgumentParser(CatalogEntry, frozen=True, kw_only=True):
    """A call that describes the arguments of the program, or parses them."""

    does: Literal["parse", "add", "add-commands", "add-command", "set-defaults", "define", "flags"]
    """What the call does.

    `parse` returns the parsed arguments. `add` describes an argument, `add-commands` the argument that names
    a subcommand, and `add-command` one subcommand. `set-defaults` sets values, such as the function that runs
    a subcommand. `define` describes an option of the whole program, by its name and its default, and `flags`
    is the object with the values of these options.
    """
    value: Literal["text", "flag", "other"] = "other"
    """What an option holds that `define` describes: the word in the command, or whether it is on."""

    words: str = ""
    """The argument with the words to parse. If the call omits it, the words are those of the command."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("words",)


class NodeLocalEntry(PlainEntry, frozen=True, kw_only=True):
    """A place on the disk of a node: a directory (`/tmp`), an environment variable (`$TMPDIR`), or a call."""


class Exit(PlainEntry, frozen=True, kw_only=True):
    """A call that never returns."""


class Random(PlainEntry, frozen=True, kw_only=True):
    """A call that draws a random number, which is equal in all processes only if they use the same seed."""


class Seed(PlainEntry, frozen=True, kw_only=True):
    """A name with which a program sets seeds: a call, a method, or the variable that contains the seed."""


class SleepEntry(PlainEntry, frozen=True, kw_only=True):
    """A call that only waits for the number of seconds in its first argument."""


class IteratorEntry(CatalogEntry, frozen=True, kw_only=True):
    """A call that a loop iterates over and that yields what it wraps, such as a progress bar."""

    yields: Literal["argument", "batches", "numbers", "share"]
    """What the loop receives.

    `argument` means the elements of the first argument in order, `numbers` numbers as from `range`, and
    `share` elements that no other process gets. `batches` means batches of samples, which differ between
    processes only if `sampled` is true.
    """

    sampled: bool | str = False
    """Whether a sampler divides the samples among the processes, or the arguments with such a sampler."""

    FLAGS: ClassVar[tuple[str, ...]] = ("sampled",)


class Field(CatalogEntry, frozen=True, kw_only=True):
    """A call in the body of a class that declares a field and describes its default value."""

    factory: str
    """The argument with the function that creates the default value for each object."""

    ARGUMENTS: ClassVar[tuple[str, ...]] = ("factory",)


class Pure(PlainEntry, frozen=True, kw_only=True):
    """A call whose result depends only on its arguments: equal on all processes if they are."""


class Suppressor(PlainEntry, frozen=True, kw_only=True):
    """A context manager that handles the exceptions passed to it."""


class ObjectStore(PlainEntry, frozen=True, kw_only=True):
    """A usual name of an object with methods like those of `pathlib.Path` that is not a path."""


class IdiomEntry(CatalogEntry, frozen=True, kw_only=True):
    """The rank check and the barrier that a module or an object offers, as fixes write them.

    Each is written after the name of the module or object: `.get_rank() == 0`.
    """

    first: str = ""
    """The expression that is true only on rank 0 of the job."""
    barrier: str = ""
    """The call in which every process waits for all other processes. `{function}` is the name of the
    function that makes the call."""
    needs_group: bool = False
    """Whether they fail until the process group exists."""
    not_with: tuple[str, ...] = ()
    """Libraries whose import in the same file leaves open which library starts the processes."""
    exists: str = ""
    """The expression that is true if the process group exists."""


class Sink(PlainEntry, frozen=True, kw_only=True):
    """An object that is written to without creating a file."""
