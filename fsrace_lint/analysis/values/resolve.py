"""Resolution of names and attributes to symbols of libraries and of the project."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from fsrace_lint.analysis.values.abstract_values import (
    REBOUND,
    Annotated,
    Argument,
    ContextResult,
    Environment,
    Expression,
    IterationElement,
    Narrowed,
    Union,
    UnpackedPart,
)
from fsrace_lint.analysis.values.call_arguments import library_argument
from fsrace_lint.analysis.values.container_elements import Elements, common, step_to
from fsrace_lint.analysis.values.module_members import ModuleMembers
from fsrace_lint.analysis.values.type_hints import TypeHints, tested_class
from fsrace_lint.engine.query import query, recursive_query
from fsrace_lint.program.modules import LinkedClass, LinkedFunction, Module
from fsrace_lint.program.symbols import (
    ClassObject,
    ExternalName,
    Instance,
    ModuleVariable,
    Symbol,
    as_function,
    is_class,
    is_property,
    qualified_name,
)
from fsrace_lint.syntax import model as m
from fsrace_lint.syntax.annotations import EACH
from fsrace_lint.syntax.ast_names import (
    as_attribute,
    dotted,
    is_super,
    last_name,
    mapping_items,
    only_result,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fsrace_lint.analysis.interpretation import Interpretation
    from fsrace_lint.analysis.values.abstract_values import Binding
    from fsrace_lint.catalog import Catalog
    from fsrace_lint.catalog.entries import Returns
    from fsrace_lint.engine.cycles import CycleDetector
    from fsrace_lint.program.module_table import ModuleTable

_PARTIAL: Final = "functools.partial"
_MOST_HEIRS: Final = 20
"""The number of classes, with all subclasses, whose bases are searched for the members of a mixin."""
_NARROWING: Final = "isinstance"
_CASTS: Final = frozenset({"typing.cast", "typing_extensions.cast"})


class Resolver(ModuleMembers):
    """Resolves expressions in the environments of a project."""

    def __init__(
        self,
        table: ModuleTable,
        catalog: Catalog,
        interpretation: Interpretation,
        cycles: CycleDetector,
    ) -> None:
        """Initialize for a project.

        Args:
            table: The modules.
            catalog: The library models.
            interpretation: The bindings and return values of functions.
            cycles: Detects whether a result is final.
        """
        super().__init__(table, interpretation, cycles)
        self.catalog = catalog
        self.declared = TypeHints(self)
        self.elements = Elements(self, self.declared, self.budget)

    def qualify(self, expr: m.Expr, scope: Environment) -> str | None:
        """Return the qualified name of the symbol of an expression, as the library models spell it."""
        return qualified_name(self.symbol(expr, scope))

    def callee(self, call: m.Call, scope: Environment) -> LinkedFunction | None:
        """Return the function of the project that a call runs. For a class, this is its `__init__`."""
        return as_function(self.symbol(call.function, scope))

    def symbol(self, expr: m.Expr, scope: Environment, depth: int = 0) -> Symbol | None:
        """Return the symbol that an expression denotes.

        Args:
            expr: The expression.
            scope: The environment in which it is evaluated.
            depth: The number of steps so far. Beyond a limit, the result is None.

        Returns:
            The symbol, or None if unknown.
        """
        if self.budget.exhausted(depth):
            return None
        if isinstance(expr, m.Name):
            return self._name(expr.id, scope, depth + 1)
        return self._entity(expr, scope, depth) if depth else self.denoted(expr, scope)

    @query(shared=True, keep=200_000)
    def denoted(self, expr: m.Expr, scope: Environment) -> Symbol | None:
        """Return the symbol that an expression other than a name denotes, with the full depth budget."""
        return self._entity(expr, scope, 0)

    def _entity(self, expr: m.Expr, scope: Environment, depth: int) -> Symbol | None:  # one line per kind
        match expr:
            case m.Attribute(value=value, name=name):
                return self._attribute(value, name, scope, depth + 1)
            case m.Call():
                return self._of_call(expr, scope, depth + 1)
            case m.Lambda(function=index):
                return scope.function.module.functions[index]
            case m.Binary(operator="/", left=left, right=right):
                return self._division(left, right, scope, depth + 1)
            case m.Conditional(body=body, orelse=orelse):
                return self.symbol(body, scope, depth + 1) or self.symbol(orelse, scope, depth + 1)
            case m.Boolean(operator="or", values=values):
                return _first(self.symbol(value, scope, depth + 1) for value in values)
            case m.Walrus(value=value):
                return self.symbol(value, scope, depth + 1)
            case m.Subscript(value=value, index=index):
                of = self.symbol(value, scope, depth + 1)
                if is_class(of):
                    return of
                if isinstance(index, m.Constant) and (
                    item := self._item(value, index.value, scope, depth + 1)
                ):
                    return self._kept(item, depth + 1)
                return self.elements.part(value, scope, (step_to(index),), depth + 1)
            case _:
                return None

    def _of_call(self, call: m.Call, scope: Environment, depth: int) -> Symbol | None:
        """Return the symbol of a result, also of `getattr(value, "name")` and `items.get("key")`."""
        read = as_attribute(call)
        if read is not call:
            return self.symbol(read, scope, depth)
        match call:
            case m.Call(function=m.Attribute(value=value, name="get"), arguments=[m.Constant(value=key), *_]):
                item = self._item(value, key, scope, depth + 1)
                return self._result(call, scope, depth) if item is None else self._kept(item, depth)
            case _:
                return self._result(call, scope, depth)

    def _item(self, whole: m.Expr, key: object, scope: Environment, depth: int) -> Expression | None:
        """Return the item of a variable that is bound to a dictionary display, at a literal key."""
        if not isinstance(whole, (m.Name, m.Attribute)):
            return None
        bound = self.binding(whole.id, scope) if isinstance(whole, m.Name) else None
        made = bound or self.variable(self.symbol(whole, scope, depth))
        items = mapping_items(made.expr) if isinstance(made, Expression) else {}
        return Expression(items[key], made.scope) if isinstance(made, Expression) and key in items else None

    def _kept(self, item: Expression, depth: int) -> Symbol | None:
        """Return the symbol of an item. Calls of it there use none of its names."""
        found = self.symbol(item.expr, item.scope, depth)
        return ClassObject(found) if isinstance(found, LinkedClass) else found

    @recursive_query(beyond=None)
    def of_binding(self, binding: Binding, depth: int = 0) -> Symbol | None:
        """Return the symbol that a binding denotes."""
        match binding:
            case Annotated(expr=expr, scope=scope):
                found = self.symbol(expr, scope, depth + 1)
                return found or self.declared.annotated(binding, depth + 1)
            case Expression(expr=expr, scope=scope):
                return self.symbol(expr, scope, depth + 1)
            case ContextResult(source=context):
                return self._entered(context, depth + 1)
            case IterationElement():
                return self.elements.bound(binding, (), depth + 1)
            case Argument(function=function, parameter=parameter):
                return self.declared.argument(function, parameter, depth + 1)
            case Union(options=options):
                return _first(self.of_binding(option, depth + 1) for option in options)
            case UnpackedPart():
                return self.elements.bound(binding, (), depth + 1)
            case _:
                return None

    def _entered(self, context: Expression, depth: int) -> Symbol | None:
        """Return what `with context as name` binds: the result of `__enter__`, or the yielded value."""
        expr, scope = context.expr, context.scope
        entity = self.symbol(expr, scope, depth)
        class_ = self.class_of(entity) if isinstance(entity, Instance) else None
        enter = None if class_ is None else class_.method("__enter__")
        if enter is not None:
            return self._returned_by(enter, depth)
        if entity is None and isinstance(expr, m.Call):
            return self.elements.part(expr, scope, (EACH,), depth) or self._yielded(expr, scope, depth)
        return entity

    def _yielded(self, call: m.Call, scope: Environment, depth: int) -> Symbol | None:
        """Return the symbol of a value that the generator function which a call runs yields, or None."""
        callee = self.symbol(call.function, scope, depth)
        points = self.interpretation.yield_points(callee) if isinstance(callee, LinkedFunction) else ()
        return _first(
            self.symbol(each.value, each.state.scope, depth + 2) for each in points if each.value is not None
        )

    def binding(self, name: str, scope: Environment) -> Binding | None:
        """Return the binding of a variable that is local, of an enclosing function, or of the module."""
        function: LinkedFunction | None = scope.function
        local: Environment | None = scope
        while function is not None:
            found = None if local is None else local.get(name)
            if found is not None:
                outside = function.index == 0 and function is not scope.function
                return self._from_module(found, function.module, name) if outside else found
            function = function.enclosing
            local = None if function is None else self.interpretation.final_environment(function)
        return None

    @query
    def either(self, options: tuple[Binding, ...]) -> Union:
        """Return the union of some bindings. Equal bindings give the same object."""
        return Union(options)

    def _from_module(self, found: Binding, module: Module, name: str) -> Binding:
        """Return the binding of a module variable, including those by functions that declare it `global`."""
        options = [found]
        for function in module.functions[1:] if name in module.rebound else ():
            if name in function.facts.outer_names:
                final = self.interpretation.final_environment(function)
                options.append((None if final is None else final.get(name)) or REBOUND)
        return found if len(options) == 1 else self.either(tuple(options))

    def variable(self, entity: Symbol | None) -> Binding | None:
        """Return the binding of a module variable, or None for other symbols."""
        if not isinstance(entity, ModuleVariable):
            return None
        final = self.interpretation.final_environment(entity.module.code)
        found = None if final is None else final.get(entity.name)
        return None if found is None else self._from_module(found, entity.module, entity.name)

    @staticmethod
    def type_name(entity: Symbol | None) -> str | None:
        """Return the qualified name of a symbol. For an instance, this is the name of its class."""
        return qualified_name(entity.of if isinstance(entity, Instance) else entity)

    @staticmethod
    def class_of(entity: Symbol | None) -> LinkedClass | None:
        """Return the class of the project that a symbol is, or is an instance of."""
        if isinstance(entity, (Instance, ClassObject)):
            entity = entity.of
        return entity if isinstance(entity, LinkedClass) else None

    def _name(self, name: str, scope: Environment, depth: int) -> Symbol | None:
        function: LinkedFunction | None = scope.function
        local: Environment | None = scope
        while function is not None:
            found = None if local is None else local.get(name)
            if found is not None and local is not None:
                return self._narrowed(name, local, self.of_binding(found, depth), depth)
            if name in function.nested:
                return function.nested[name]
            function = function.enclosing
            local = None if function is None else self.interpretation.final_environment(function)
        module = scope.function.module
        entity = self.member(module, name, depth)
        return ExternalName(name) if entity is None else entity

    def _narrowed(self, name: str, scope: Environment, found: Symbol | None, depth: int) -> Symbol | None:
        """Return the symbol of a variable, as far as `isinstance()` tells more about it."""
        if _NARROWING not in scope.function.facts.referenced_names:
            return found
        told = scope.get(tested_class(name))
        if not isinstance(told, Narrowed) or told.bound is not scope.get(name):
            return found
        return self.declared.narrowed(told, found, depth)

    def _attribute(self, value: m.Expr, name: str, scope: Environment, depth: int) -> Symbol | None:
        found = self._attribute_of(value, name, scope, depth)
        chain = dotted(value) if _NARROWING in scope.function.facts.referenced_names else None
        return found if chain is None else self._narrowed(f"{chain}.{name}", scope, found, depth)

    def _attribute_of(self, value: m.Expr, name: str, scope: Environment, depth: int) -> Symbol | None:
        if isinstance(value, m.Name):
            bound = scope.get(f"{value.id}.{name}")
            if bound is not None:
                return self.of_binding(bound, depth)
        if is_super(value):
            return self._inherited(scope.function, name, depth)
        owner = self.symbol(value, scope, depth)
        return self._step(self.declared.namesake(value, scope) if owner is None else owner, name, depth)

    def _inherited(self, function: LinkedFunction | None, name: str, depth: int) -> Symbol | None:
        """Return the symbol that `super().name` denotes in a function."""
        while function is not None and function.owner is None:
            function = function.enclosing
        if function is None or function.owner is None:
            return None
        return function.owner.inherited(name) or self._from_library(function.owner, name, depth)

    def _step(self, entity: Symbol | None, name: str, depth: int) -> Symbol | None:
        match entity:
            case Module():
                return self.member(entity, name, depth) or ExternalName(f"{entity.name}.{name}")
            case ExternalName(name=owner):
                return ExternalName(f"{owner}.{name}")
            case (LinkedClass() as class_) | ClassObject(of=class_):
                return class_.method(name)
            case Instance(of=LinkedClass() as class_):
                own = class_.method(name) or self.elements.of_attribute(class_, name, (), depth)
                return own or self._from_library(class_, name, depth)
            case LinkedFunction() if is_property(entity):
                return self._step(self._returned_by(entity, depth + 1), name, depth + 1)
            case Instance(of=ExternalName(name=owner)):
                return self._returned(f"{owner}.{name}") or ExternalName(f"{owner}.{name}")
            case ModuleVariable():
                bound = None if self.budget.exhausted(depth) else self.variable(entity)
                return (
                    None if bound is None else self._step(self.of_binding(bound, depth + 1), name, depth + 1)
                )
            case _:
                return None

    def _returned(self, qualified: str) -> Instance | None:
        """Return the value of a property of a library class, such as `Path.parent`, or None."""
        entry = self.catalog.exact("returns", qualified)
        return None if entry is None or not entry.is_property else Instance(ExternalName(entry.type))

    def _from_library(self, class_: LinkedClass, name: str, depth: int) -> ExternalName | Instance | None:
        """Return what a class of the project inherits from a library class in the library models, or None.

        The class itself can also be in the library models, if the project is that library. Of a mixin, the
        subclasses inherit it.
        """
        heirs = itertools.islice(class_.descendants(), _MOST_HEIRS)
        names = (self.known_as(each, depth) for each in heirs)
        for owner in dict.fromkeys(itertools.chain.from_iterable(names)):
            if self.catalog.is_listed(f"{owner}.{name}"):
                return self._returned(f"{owner}.{name}") or ExternalName(f"{owner}.{name}")
        return None

    @recursive_query(beyond=())
    def known_as(self, class_: LinkedClass, depth: int) -> tuple[str, ...]:
        """Return the qualified names of a class and of its ancestors, including library classes."""
        names: dict[str, None] = {}
        for relative in class_.ancestors():
            outer = self.interpretation.final_environment(relative.module.functions[relative.facts.parent])
            bases = () if outer is None else (self.symbol(b, outer, depth + 1) for b in relative.facts.bases)
            named = (relative.qualified, *map(qualified_name, bases))
            names.update(dict.fromkeys(name for name in named if name is not None))
        return tuple(names)

    @query(shared=True)
    def attribute_values(self, class_: LinkedClass, name: str) -> list[Binding]:
        """Return the bindings of `self.name` in a class and its relatives, in bodies and methods."""
        found: list[Binding] = []
        for relative in class_.relatives:
            if self.dependencies is not None and (relative.may_set(name) or any(relative.binding(name))):
                self.dependencies.file(relative.module.relative)
            if relative.may_set(name):
                outer = relative.module.functions[relative.facts.parent]
                constant = relative.constant(name)
                bound = self._bound_by(outer, f"{relative.facts.name}.{name}", constant)
                is_field = any(name == each for each, _ in relative.facts.annotated)
                found += (value for each in bound for value in self._at_first(each, is_field=is_field))
            for method in relative.binding(name):
                own = f"{method.facts.parameters[0].name}.{name}"
                constant = relative.constant_of_objects(method, name)
                found += self._bound_by(method, own, constant)
        return found

    def _at_first(self, bound: Binding, *, is_field: bool) -> Iterator[Binding]:
        """Yield the value of an attribute in a class body, or what the factory of a field creates.

        Fields without a factory get their values from callers.
        """
        match bound:
            case Expression(expr=m.Call() as call, scope=scope) if (
                last_name(call.function) in self.catalog.last_names["field"]
            ):
                entry = self.catalog.exact("field", self.qualify(call.function, scope) or "")
                factory = None if entry is None else library_argument(call, entry.factory)
                if factory is not None:
                    yield Expression(m.Call(factory, (), (), call.span), scope)
            case _ if not is_field:
                yield bound

    def _bound_by(
        self, function: LinkedFunction, name: str, constant: m.Constant | None
    ) -> tuple[Binding, ...]:
        """Return the binding of a name in a function. A constant needs no analysis of the function."""
        if constant is not None:
            return (Expression(constant, Environment(function, {})),)
        final = self.interpretation.final_environment(function)
        bound = None if final is None else final.get(name)
        return () if bound is None else (bound,)

    def _result(self, call: m.Call, scope: Environment, depth: int) -> Symbol | None:
        entity = self.symbol(call.function, scope, depth)
        match entity:
            case (LinkedClass() as class_) | ClassObject(of=class_):
                return Instance(class_)
            case ExternalName(name=name):
                entry = self.catalog.exact("returns", name)
                if entry is not None and entry.named_by:
                    return self._named_in(call, entry.named_by, scope, depth + 1)
                if entry is not None:
                    return self._made_by(entry, call, scope) if not entry.item else None
                if name == _PARTIAL and call.arguments:
                    made = self.symbol(call.arguments[0], scope, depth)
                    known = (
                        isinstance(made, ExternalName) and self.catalog.find("private", made.name) is not None
                    )
                    return made if known else None
                if name in _CASTS and call.arguments:
                    return self.declared.object_of(call.arguments[0], scope.function, depth)
                return Instance(entity) if is_class(entity) else None
            case LinkedFunction():
                found = self._returned_by(entity, depth) or self._listed(entity)
                return self._built(call.function, scope, depth) if _is_own(found, entity) else found
            case _:
                return None

    def library_item(self, name: str, call: m.Call, scope: Environment, index: int | str) -> Instance | None:
        """Return an item of the result of a library function, or None if no library model lists it."""
        entry = self.catalog.exact("returns", name)
        return self._made_by(entry, call, scope) if entry is not None and entry.item == str(index) else None

    def _made_by(self, entry: Returns, call: m.Call, scope: Environment) -> Instance:
        """Return the result of a call in the library models, whose class a protocol can decide."""
        given = library_argument(call, entry.protocol or entry.url)
        bound = self.binding(given.id, scope) if isinstance(given, m.Name) else None
        value = bound.expr if isinstance(bound, Expression) else given
        if isinstance(value, m.Format):
            value = next(iter(value.parts), None)
        text = value.value if isinstance(value, m.Constant) and isinstance(value.value, str) else ""
        before, is_url, _ = text.partition("://")
        protocol = before if entry.protocol or is_url else "file" if text else ""
        classes = dict(pair.split("=", 1) for pair in entry.by_protocol)
        return Instance(ExternalName(classes.get(protocol, entry.type)))

    def _named_in(self, call: m.Call, key: str, scope: Environment, depth: int) -> Instance | None:
        """Return the instance of the class whose name a call passes, as an argument or in a dictionary."""
        config = next(iter(call.arguments), None)
        bound = self.binding(config.id, scope) if isinstance(config, m.Name) else None
        told = config if bound is None else bound.expr if isinstance(bound, Expression) else None
        passed = {} if told is None else mapping_items(told)
        name = next((each.value for each in call.keywords if each.name == key), passed.get(key))
        if not isinstance(name, m.Constant) or not isinstance(name.value, str):
            return None
        module, _, last = name.value.rpartition(".")
        found = self.table.find(module, scope.function.module)
        named = ExternalName(name.value) if found is None else self.member(found, last, depth)
        return Instance(named) if is_class(named) else None

    def _listed(self, function: LinkedFunction) -> Instance | None:
        """Return the result of a function of the project that the library models list, or None."""
        entry = self.catalog.exact("returns", function.qualified)
        return None if entry is None or entry.item else Instance(ExternalName(entry.type))

    def _built(self, called: m.Expr, scope: Environment, depth: int) -> Symbol | None:
        """Return the result of `Class.build()`: an instance of the class that it is called on."""
        receiver = self.symbol(called.value, scope, depth) if isinstance(called, m.Attribute) else None
        class_ = self.class_of(receiver)
        return None if class_ is None else Instance(class_)

    @recursive_query(beyond=None)
    def _returned_by(self, function: LinkedFunction, depth: int = 0) -> Symbol | None:
        if function.facts.is_generator:
            return None
        if function.is_stub:
            declared = self.elements.result(function, None, depth + 2)
            return declared or common(self._returned_by(each, depth + 1) for each in function.overrides)
        result = only_result(function.facts.body)
        final = None if result is None else self.interpretation.final_environment(function)
        found = None if result is None or final is None else self.symbol(result, final, depth + 2)
        is_object = found is None or isinstance(found, Instance)
        return self.elements.result(function, found, depth + 2) if is_object else found

    def _division(self, left: m.Expr, right: m.Expr, scope: Environment, depth: int) -> Symbol | None:
        path = Instance(ExternalName("pathlib.Path"))
        if isinstance(right, m.Format) or (isinstance(right, m.Constant) and isinstance(right.value, str)):
            return path
        return path if path in {self.symbol(left, scope, depth), self.symbol(right, scope, depth)} else None

    def named(self, chain: str, module: Module, depth: int) -> Symbol | None:
        """Return the symbol that `a.b.c` denotes in a module."""
        first, *rest = chain.split(".")
        entity = self.member(module, first, depth)
        for name in rest:
            entity = self._step(entity, name, depth)
        return entity


def _is_own(found: Symbol | None, function: LinkedFunction) -> bool:
    """Return whether a symbol is the result of a class method that returns an instance of its own class."""
    decorators = {dotted(decorator) for decorator in function.facts.decorators}
    owner = function.owner
    return owner is not None and "classmethod" in decorators and found == Instance(owner)


def _first(entities: Iterable[Symbol | None]) -> Symbol | None:
    return next((entity for entity in entities if entity is not None), None)
