"""Data classes of the standard library whose methods are made when they are first needed.

`dataclasses.dataclass` compiles six methods for every class. The library has some six hundred classes, and a
command uses a few dozen of them. Compiling all of them took half of the time before a command did anything.
This decorator takes the same options and gives a class with the same behaviour. The standard library finds the
fields, so `dataclasses.fields`, `replace`, `asdict` and `is_dataclass` know the class, and standard data
classes can inherit from it. Only `__init__` has source text, compiled at the first instance; the other methods
are closures. The fields of an ordinary class are found at their first use, since its slots need the names alone.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from operator import attrgetter
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

__all__ = ["dataclass"]

_MISSING = dataclasses.MISSING


class _Factory:
    """Represents a default from a factory, in signatures as in the standard library's."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Kinds:
    """The standard library's names for declarations that are not fields."""

    shared: ClassVar[int]
    passed_on: dataclasses.InitVar[int]


_READ: Any = _Kinds.__dict__["__dataclass_fields__"]
_CLASS_VARIABLE, _PASSED_ON = _READ["shared"]._field_type, _READ["passed_on"]._field_type


class _LazyFields:
    """Stands for `__dataclass_fields__` in its class until its first use."""

    __slots__ = ("_bare", "_home", "_kw_only")

    def __init__(self, bare: dict[str, Any], kw_only: bool) -> None:
        self._bare, self._kw_only = bare, kw_only
        self._home: Any = None

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        home = self._home
        fields = _inherited(home)
        fields.update(_read(home.__name__, self._bare, self._kw_only).__dataclass_fields__)
        if isinstance(home.__dict__.get("__dataclass_fields__"), _LazyFields):
            type.__setattr__(home, "__dataclass_fields__", fields)
        return fields


class _LazyInit:
    """Stands for `__init__` in its class until its first use."""

    __slots__ = ("_home",)

    def __init__(self, home: type) -> None:
        self._home = home

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = _init(self._home)
        if isinstance(self._home.__dict__.get("__init__"), _LazyInit):
            type.__setattr__(self._home, "__init__", made)
        return made if instance is None else made.__get__(instance, owner)


def _data_class(
    cls: type | None = None,
    /,
    *,
    init: bool = True,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
) -> Any:
    """The decorator; see the options of the same names in the standard library."""
    if cls is None:
        return lambda found: _processed(found, init=init, eq=eq, frozen=frozen, kw_only=kw_only, slots=slots)
    return _processed(cls, init=init, eq=eq, frozen=frozen, kw_only=kw_only, slots=slots)


def _processed(cls: type, *, init: bool, eq: bool, frozen: bool, kw_only: bool, slots: bool) -> type:
    found = cls.__dict__
    bases = [base for base in cls.__mro__[:0:-1] if "__dataclass_fields__" in base.__dict__]
    _check_bases(bases, frozen)
    bare = _bare(cls)
    names = _ordinary(cls, bare, bases, kw_only)
    lazy = _LazyFields(bare, kw_only) if names is not None else None
    added: dict[str, Any] = {"__dataclass_params__": _params(init, eq, frozen, kw_only, slots)}
    if lazy is not None and names is not None:
        added["__dataclass_fields__"] = lazy
        places = () if kw_only else names
    else:
        own = _read(cls.__name__, bare, kw_only).__dataclass_fields__
        fields = added["__dataclass_fields__"] = _inherited(cls) | own
        _check_order(fields, init)
        for name, one in own.items():
            if isinstance(found.get(name), dataclasses.Field):
                if one.default is _MISSING:
                    type.__delattr__(cls, name)
                else:
                    type.__setattr__(cls, name, one.default)
        names = tuple(name for name, one in fields.items() if _is_stored(one))
        places = tuple(
            name for name, one in fields.items() if _is_argument(one) and one.init and not one.kw_only
        )
        if not found.get("__doc__"):
            added["__doc__"] = (
                f"{cls.__name__}({', '.join(name for name, one in fields.items() if one.init)})"
            )
    if "__match_args__" not in found:
        added["__match_args__"] = places
    home = _with_slots(cls, added, names, frozen) if slots else _with(cls, added)
    if lazy is not None:
        lazy._home = home
    methods: dict[str, Any] = {"__repr__": _representation(home)}
    if init:
        methods["__init__"] = _LazyInit(home)
    if eq:
        methods["__eq__"] = _equality(home)
        if not _hash_is_given(found):
            type.__setattr__(home, "__hash__", _hashing(home) if frozen else None)
    if frozen:
        if "__setattr__" in found or "__delattr__" in found:
            raise TypeError(f"cannot overwrite attribute __setattr__ in class {cls.__name__}")
        methods |= _freezing(home)
    for name, method in methods.items():
        if name not in found:
            if not isinstance(method, _LazyInit):
                method.__name__, method.__qualname__ = name, f"{home.__qualname__}.{name}"
                method.__module__ = home.__module__
            type.__setattr__(home, name, method)
    return home


def _bare(cls: type) -> dict[str, Any]:
    """The annotations and defaults that a class declares itself, as the members of a class without bases and methods.

    The standard library finds the fields in such a class and compiles nothing.
    """
    annotations = inspect.get_annotations(cls)
    for name, value in cls.__dict__.items():
        if isinstance(value, dataclasses.Field) and name not in annotations:
            raise TypeError(f"{name!r} is a field but has no type annotation")
    bare: dict[str, Any] = {"__module__": cls.__module__, "__doc__": "fields", "__annotations__": annotations}
    for name in annotations:
        default = getattr(cls, name, _MISSING)
        if default is not _MISSING:
            bare[name] = default
    return bare


def _read(name: str, bare: dict[str, Any], kw_only: bool) -> Any:
    """A class of these annotations and defaults whose fields the standard library found."""
    return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(
        type(name, (), dict(bare))
    )


def _inherited(cls: type) -> dict[str, Any]:
    """The fields of all bases, the farthest first."""
    fields: dict[str, Any] = {}
    for base in cls.__mro__[:0:-1]:
        if "__dataclass_fields__" in base.__dict__:
            fields.update(base.__dataclass_fields__)  # type: ignore[attr-defined]
    return fields


def _ordinary(cls: type, bare: dict[str, Any], bases: list[type], kw_only: bool) -> tuple[str, ...] | None:
    """The names of the fields of a class that the standard library would accept; None for any other class.

    Its fields have no options (`field`, `InitVar`), and no base adds a positional field or one without a slot. A
    `ClassVar` is known by its name if the module has that of `typing`.
    """
    if not cls.__dict__.get("__doc__"):
        return None
    if any(base.__match_args__ or "__slots__" not in base.__dict__ for base in bases):  # type: ignore[attr-defined]
        return None
    if bases and not kw_only:
        return None
    module = sys.modules.get(cls.__module__)
    names = []
    given = False
    for name, kind in bare["__annotations__"].items():
        if not isinstance(kind, str) or "InitVar" in kind or "KW_ONLY" in kind:
            return None
        if "ClassVar" in kind:
            if not kind.startswith("ClassVar") or getattr(module, "ClassVar", None) is not ClassVar:
                return None
            if isinstance(bare.get(name), dataclasses.Field):
                return None
            continue
        default = bare.get(name, _MISSING)
        if isinstance(default, types.MemberDescriptorType):
            default = _MISSING
        if isinstance(default, dataclasses.Field) or default.__class__.__hash__ is None:
            return None
        if default is _MISSING and given and not kw_only:
            return None
        given = given or default is not _MISSING
        names.append(name)
    return tuple(names)


@functools.cache
def _params(init: bool, eq: bool, frozen: bool, kw_only: bool, slots: bool) -> Any:
    """The options of a class as the standard library keeps them."""
    params = _read("Options", {"__module__": __name__, "__doc__": "options"}, kw_only).__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = init, True, eq, frozen
    if hasattr(params, "slots"):  # from Python 3.12 on
        params.slots = slots
    return params


def _check_bases(bases: Iterable[type], frozen: bool) -> None:
    for base in bases:
        theirs = base.__dict__.get("__dataclass_params__")
        if theirs is None:
            continue
        if theirs.frozen and not frozen:
            raise TypeError("cannot inherit non-frozen dataclass from a frozen one")
        if frozen and not theirs.frozen:
            raise TypeError("cannot inherit frozen dataclass from a non-frozen one")


def _check_order(fields: dict[str, Any], init: bool) -> None:
    """A positional field without a default cannot follow one that has a default."""
    seen = False
    for name, one in fields.items():
        if init and _is_argument(one) and one.init and not one.kw_only:
            given = one.default is not _MISSING or one.default_factory is not _MISSING
            if seen and not given:
                raise TypeError(f"non-default argument {name!r} follows default argument")
            seen = seen or given


def _is_argument(one: Any) -> bool:
    """Whether a declaration is a field or an InitVar, and no ClassVar."""
    return one._field_type is not _CLASS_VARIABLE


def _is_passed_on(one: Any) -> bool:
    """Whether a declaration is an InitVar: an argument of `__post_init__` that no instance keeps."""
    return one._field_type is _PASSED_ON


def _hash_is_given(found: Any) -> bool:
    """Python itself writes `__hash__ = None` into a class that defines `__eq__` alone."""
    return "__hash__" in found and not (found["__hash__"] is None and "__eq__" in found)


def _with(cls: type, added: dict[str, Any]) -> type:
    for name, value in added.items():
        type.__setattr__(cls, name, value)
    return cls


def _with_slots(cls: type, added: dict[str, Any], names: tuple[str, ...], frozen: bool) -> type:
    """The same class once more, with a slot for each field that no base has."""
    if "__slots__" in cls.__dict__:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    namespace = dict(cls.__dict__) | added
    inherited: set[str] = set()
    for base in cls.__mro__[1:-1]:
        theirs = base.__dict__.get("__slots__", ())
        inherited.update((theirs,) if isinstance(theirs, str) else theirs)
    namespace["__slots__"] = tuple(name for name in names if name not in inherited)
    for name in (*names, "__dict__", "__weakref__"):
        namespace.pop(name, None)
    made: type = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    _move_class_cell(cls, made)
    if frozen:
        for name, method in (("__getstate__", _state), ("__setstate__", _set_state)):
            if name not in namespace:
                type.__setattr__(made, name, method)
    return made


_NO_METHODS = frozenset(
    {str, int, float, tuple, dict, type(None), type, types.MemberDescriptorType, _LazyFields}
)


def _move_class_cell(cls: type, made: type) -> None:
    """Let `super()` in the methods mean the class with slots; all methods of a class share one cell for it."""
    for member in made.__dict__.values():
        kind = type(member)
        if kind in _NO_METHODS:
            continue
        if kind is FunctionType:
            methods: tuple[Any, ...] = (member,)
        else:
            methods = tuple(getattr(member, name, None) for name in ("fget", "func", "__func__"))
        for method in methods:
            names = method.__code__.co_freevars if isinstance(method, FunctionType) else ()
            if "__class__" in names:
                cell = method.__closure__[names.index("__class__")]
                if cell.cell_contents is cls:
                    cell.cell_contents = made
                    return


def _is_stored(one: Any) -> bool:
    return _is_argument(one) and not _is_passed_on(one)


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The values of these fields as a tuple; tuples compare identical values as equal, even a NaN."""
    if len(names) > 1:
        return attrgetter(*names)
    if names:
        get = attrgetter(names[0])
        return lambda instance: (get(instance),)
    return lambda instance: ()


def _representation(home: Any) -> Any:
    names: list[str] | None = None

    def represented(self: Any) -> str:
        nonlocal names
        if names is None:
            names = [one.name for one in dataclasses.fields(home) if one.repr]
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({told})"

    return recursive_repr()(represented)


def _equality(home: Any) -> Any:
    values: Any = None

    def equal(self: Any, other: Any) -> Any:
        nonlocal values
        if other.__class__ is not self.__class__:
            return NotImplemented
        if values is None:
            values = _values([one.name for one in dataclasses.fields(home) if one.compare])
        return values(self) == values(other)

    return equal


def _hashing(home: Any) -> Any:
    values: Any = None

    def hashed(self: Any) -> int:
        nonlocal values
        if values is None:
            fields = dataclasses.fields(home)
            values = _values([one.name for one in fields if (one.compare if one.hash is None else one.hash)])
        return hash(values(self))

    return hashed


def _freezing(home: Any) -> dict[str, Any]:
    """The methods of a frozen class. They refuse to change a field, and on an instance of exactly this class they
    refuse any change.
    """

    def is_field(name: str) -> bool:
        return any(one.name == name for one in dataclasses.fields(home))

    def set_field(self: Any, name: str, value: Any) -> None:
        if type(self) is home or is_field(name):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(home, self).__setattr__(name, value)

    def delete_field(self: Any, name: str) -> None:
        if type(self) is home or is_field(name):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(home, self).__delattr__(name)

    return {"__setattr__": set_field, "__delattr__": delete_field}


def _init(cls: Any) -> Any:
    """Compile `__init__` of a class from its fields."""
    declared = [one for one in cls.__dataclass_fields__.values() if _is_argument(one)]
    frozen = cls.__dataclass_params__.frozen
    slotted = "__slots__" in cls.__dict__
    me = "self" if all(one.name != "self" for one in declared) else "_self"
    constants: dict[str, Any] = {"_set_field": object.__setattr__, "_factory": _FACTORY}
    places: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for one in declared:
        name, given = one.name, f"_default_of_{one.name}"
        makes = one.default_factory is not _MISSING
        has = makes or one.default is not _MISSING
        if has:
            constants[given] = one.default_factory if makes else one.default
        if one.init:
            default = "" if not has else "=_factory" if makes else f"={given}"
            (keywords if one.kw_only else places).append(name + default)
            value = f"{given}() if {name} is _factory else {name}" if makes else name
        elif makes:
            value = f"{given}()"
        elif has and slotted:
            value = given
        else:
            continue
        if not _is_passed_on(one):
            body.append(f"_set_field({me}, {name!r}, {value})" if frozen else f"{me}.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append(f"{me}.__post_init__({', '.join(one.name for one in declared if _is_passed_on(one))})")
    arguments = ", ".join([me, *places, *(["*", *keywords] if keywords else [])])
    text = f"def _make({', '.join(constants)}):\n  def __init__({arguments}):\n"
    text += "".join(f"    {line}\n" for line in body or ["pass"]) + "  return __init__\n"
    module = sys.modules.get(cls.__module__)
    scope: dict[str, Any] = {}
    exec(text, {} if module is None else module.__dict__, scope)
    made = scope["_make"](**constants)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for one in declared if one.init} | {"return": None}
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _data_class
