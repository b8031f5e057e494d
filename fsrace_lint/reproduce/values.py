"""Arguments for a call, as Python text: from annotations, defaults, names, and how the code uses them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from fsrace_lint.reproduce.usage import Use, parameters, uses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fsrace_lint.reproduce.target import Function

_PATH_NAME: Final = re.compile(
    r"(^|_)(path|paths|dir|dirs|directory|folder|file|filename|fname|fpath|root|prefix|out|output|dest"
    r"|destination|cache|save|ckpt|checkpoint|logdir|workdir|location)$|(path|dir|file|folder)$"
)
_NUMBER_NAME: Final = re.compile(
    r"(^|_)(step|steps|epoch|epochs|iter|iters|iteration|num|n|count|size|idx|index|seed|port|id|max|min"
    r"|total|length|batch)(_|$)"
)
_TRUTH_NAME: Final = re.compile(r"^(is|use|do|no|has|with|should|enable)_|^(verbose|force|debug|overwrite)$")
_FILE_NAME: Final = re.compile(r"(^|_)(file|filename|fname|fpath)s?$|file$")
_RANKS: Final = (
    "rank",
    "local_rank",
    "global_rank",
    "rank_id",
    "process_index",
    "gpu",
    "local_process_index",
)
_SIZES: Final = ("world_size", "num_processes", "nprocs", "num_replicas", "ngpus_per_node")
_SIMPLE: Final[dict[str, str]] = {
    "int": "1",
    "float": "1.0",
    "bool": "True",
    "bytes": 'b"data"',
    "list": "[]",
    "List": "[]",
    "Sequence": "[]",
    "Iterable": "[]",
    "Iterator": "iter([])",
    "tuple": "()",
    "Tuple": "()",
    "set": "set()",
    "Set": "set()",
    "dict": "{}",
    "Dict": "{}",
    "Mapping": "{}",
    "MutableMapping": "{}",
    "Callable": "StandIn()",
    "Any": "StandIn()",
    "object": "StandIn()",
}
_WRAPPERS: Final = ("Optional", "Union", "Annotated", "Final", "ClassVar")


class Maker:
    """Makes the values of one scenario.

    Args:
        functions: The functions of the module, by name.
        classes: The classes of the module, by name.

    Attributes:
        guessed: The names of values whose type nothing shows.
        files: The paths below the root that must exist at first. A directory ends with a slash.
        names: The classes of the module that the values need.
    """

    def __init__(self, functions: Mapping[str, Function], classes: Mapping[str, ast.ClassDef]) -> None:
        """Create a maker that has made nothing yet."""
        self.functions, self._classes = functions, classes
        self.guessed: list[str] = []
        self.files: dict[str, None] = {}
        self.names: dict[str, None] = {}

    def arguments(self, function: Function, methods: Mapping[str, Function], *, skip_first: bool) -> str:
        """Return the arguments of a call.

        Args:
            function: The function to call.
            methods: The methods of its class.
            skip_first: Whether the first parameter is the object.

        Returns:
            The arguments, separated by commas.
        """
        used = uses(function, self.functions, methods)
        names = function.args
        defaults = _defaults(function)
        given: list[str] = []
        for parameter in parameters(function)[1 if skip_first else 0 :]:
            default = defaults.get(parameter.arg)
            use = used.get(parameter.arg, Use())
            if default is not None and not self._needs(parameter, default, use):
                continue
            value = self.value(parameter.arg, parameter.annotation, use)
            is_positional = parameter in names.posonlyargs
            given.append(value if is_positional else f"{parameter.arg}={value}")
        return ", ".join(given)

    def _needs(self, parameter: ast.arg, default: ast.expr, use: Use) -> bool:
        """Return whether a default is replaced: None, or an absolute path, for a path that the code uses."""
        is_path = self._is_path(parameter.arg, use) or "Path" in _words(parameter.annotation)
        if not is_path or not isinstance(default, ast.Constant):
            return False
        return default.value is None or (isinstance(default.value, str) and default.value[:1] in ("/", "~"))

    def instance(self, owner: ast.ClassDef, used: Use, methods: Mapping[str, Function]) -> Iterator[str]:
        """Yield the lines that make an object without its `__init__`, with the attributes that are used.

        Args:
            owner: The class.
            used: How the method uses the object.
            methods: The methods of the class.
        """
        known = {*methods, *(name for each in owner.body for name in _assigned(each))}
        yield f"owner = {owner.name}.__new__({owner.name})"
        initial = methods.get("__init__")
        annotations = _annotations(owner, initial)
        for name, use in sorted(used.attributes.items()):
            if name in known or name.startswith("__") or use.kinds == {"stored"}:
                continue
            yield f"owner.{name} = {self.value(name, annotations.get(name), use)}"

    def value(self, name: str, annotation: ast.expr | None, use: Use, depth: int = 3) -> str:
        """Return a value for a name.

        Args:
            name: The name of the parameter or attribute.
            annotation: Its annotation, if it has one.
            use: How the code uses it.
            depth: How many attributes of attributes are made.

        Returns:
            Python text.
        """
        last = name.lower().rstrip("_").lstrip("_")
        if last in _RANKS:
            return "rank"
        if last in _SIZES:
            return "PROCESSES"
        words = _words(annotation)
        made = self._annotated(name, words, use)
        if made is None:
            made = self._used(name, use, depth)
        if made is None:
            made = self._named(name, last)
        return made

    def _annotated(self, name: str, words: list[str], use: Use) -> str | None:
        if not words:
            return None
        if any(word in ("Path", "PurePath", "PathLike") for word in words):
            return self._path(name, use, is_object="str" not in words)
        if words[0] == "str":
            return self._path(name, use, is_object=False) if self._is_path(name, use) else f'"{name}"'
        if words[0] in _SIMPLE and words[0] not in ("Any", "object"):
            if use.keys and words[0].lower() in ("dict", "mapping"):
                return None
            return _SIMPLE[words[0]]
        owner = self._classes.get(words[0])
        if owner is not None and _is_enum(owner):
            self.names[owner.name] = None
            return f"next(iter({owner.name}))"
        return self._dataclass(owner) if owner is not None and _is_dataclass(owner) else None

    def _dataclass(self, owner: ast.ClassDef) -> str:
        """Return an object of a dataclass, with values for the fields that have no default."""
        self.names[owner.name] = None
        fields = [
            f"{each.target.id}={self.value(each.target.id, each.annotation, Use())}"
            for each in owner.body
            if isinstance(each, ast.AnnAssign) and each.value is None and isinstance(each.target, ast.Name)
        ]
        return f"{owner.name}({', '.join(fields)})"

    def _used(self, name: str, use: Use, depth: int) -> str | None:
        kinds = use.kinds
        if kinds & {"Path"}:
            return self._path(name, use, is_object=True)
        if kinds & {"path", "created", "listed", "read", "joined"}:
            return self._path(name, use, is_object=False)
        if use.keys and depth:
            items = [f'"{key}": {self.value(key, None, each, depth - 1)}' for key, each in use.keys.items()]
            return "{" + ", ".join(items) + "}"
        if "dict" in kinds:
            return "{}"
        if "text" in kinds:
            return self._path(name, use, is_object=False) if self._is_path(name, use) else f'"{name}"'
        if "number" in kinds:
            return "1"
        if "list" in kinds:
            return "[]"
        if "call" in kinds and not use.attributes:
            return "StandIn()"
        if use.attributes and depth:
            return self._object(use, depth)
        if kinds == {"truth"} and not _PATH_NAME.search(name.lower()):
            return "True"
        return None

    def _object(self, use: Use, depth: int) -> str:
        parts = []
        for name, each in sorted(use.attributes.items()):
            if each.kinds == {"stored"}:
                continue
            made = "StandIn()" if each.kinds == {"call"} else self.value(name, None, each, depth - 1)
            parts.append(f"{name}={made}")
        return f"SimpleNamespace({', '.join(parts)})"

    def _named(self, name: str, last: str) -> str:
        if _TRUTH_NAME.search(last):
            return "True"
        if _PATH_NAME.search(last):
            return self._path(name, Use(), is_object=False)
        if _NUMBER_NAME.search(last):
            return "1"
        self.guessed.append(name)
        return "StandIn()"

    def _is_path(self, name: str, use: Use) -> bool:
        is_used = bool(use.kinds & {"path", "created", "listed", "read", "Path", "joined"})
        return is_used or bool(_PATH_NAME.search(name.lower()))

    def _path(self, name: str, use: Use, *, is_object: bool) -> str:
        shown = name.strip("_") or "path"
        is_plain = not use.kinds & {"path", "read", "created"} and not _FILE_NAME.search(name.lower())
        if "created" not in use.kinds and (use.kinds & {"joined", "listed"} or is_plain):
            self.files[f"{shown}/"] = None
        elif "read" in use.kinds and "created" not in use.kinds:
            self.files[shown] = None
        return f'root / "{shown}"' if is_object else f'str(root / "{shown}")'


def _defaults(function: Function) -> dict[str, ast.expr]:
    positional = [*function.args.posonlyargs, *function.args.args]
    found = {
        parameter.arg: default
        for parameter, default in zip(reversed(positional), reversed(function.args.defaults), strict=False)
    }
    for parameter, given in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if given is not None:
            found[parameter.arg] = given
    return found


def _annotations(owner: ast.ClassDef, initial: Function | None) -> dict[str, ast.expr]:
    """Return the annotations of attributes: of the class, or of parameters that `__init__` only stores."""
    found = {
        each.target.id: each.annotation
        for each in owner.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    if initial is None:
        return found
    of = {each.arg: each.annotation for each in parameters(initial)}
    for node in ast.walk(initial):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            annotation = of.get(node.value.id)
            for target in node.targets:
                if isinstance(target, ast.Attribute) and annotation is not None:
                    found[target.attr] = annotation
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            found[node.target.attr] = node.annotation
    return found


def _assigned(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        yield from (each.id for each in statement.targets if isinstance(each, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from [statement.target.id] if isinstance(statement.target, ast.Name) else []


def _words(annotation: ast.expr | None) -> list[str]:
    """Return the class names in an annotation, without wrappers such as `Optional`."""
    if annotation is None:
        return []
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    names = re.findall(r"[A-Za-z_][\w.]*", str(text))
    return [last for each in names if (last := each.rpartition(".")[2]) not in (*_WRAPPERS, "None")]


def _is_dataclass(owner: ast.ClassDef) -> bool:
    names = [each.func if isinstance(each, ast.Call) else each for each in owner.decorator_list]
    return any(ast.unparse(name).rpartition(".")[2] == "dataclass" for name in names)


def _is_enum(owner: ast.ClassDef) -> bool:
    return any(ast.unparse(base).rpartition(".")[2] in ("Enum", "StrEnum", "IntEnum") for base in owner.bases)
