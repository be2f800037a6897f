"""Our data classes behave as the standard library's: every shape of class is built by both and compared."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tacit.exact.data_classes import dataclass as ours

SRC = Path(__file__).parents[2] / "src" / "tacit"
NAN = float("nan")


def plain(decorate: Any) -> Any:
    @decorate
    class Made:
        """A class."""

        left: int
        right: float = 2.5
        shared: ClassVar[int] = 7

    return Made


def with_factory(decorate: Any) -> Any:
    @decorate
    class Made:
        """A class."""

        left: int
        seen: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)
        told: int = dataclasses.field(default=1, hash=False)

    return Made


def with_derived(decorate: Any) -> Any:
    @decorate
    class Made:
        """A class."""

        left: int
        factor: dataclasses.InitVar[int] = 2
        right: int = dataclasses.field(init=False)
        fixed: int = dataclasses.field(init=False, default=9)
        own: dict[str, int] = dataclasses.field(init=False, default_factory=dict)

        def __post_init__(self, factor: int) -> None:
            object.__setattr__(self, "right", self.left * factor)

    return Made


def with_methods(decorate: Any) -> Any:
    @decorate
    class Made:
        """A class."""

        left: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    return Made


def with_own_hash(decorate: Any) -> Any:
    @decorate
    class Made:
        """A class."""

        left: int

        def __hash__(self) -> int:
            return 5

    return Made


def heir(decorate: Any) -> Any:
    @decorate
    class Base:
        """A base."""

        left: int
        right: int = 2

        @property
        def late(self) -> int:
            return 1

    @decorate
    class Made(Base):
        """A class."""

        right: int = 4
        more: int = 5

    return Made


def empty(decorate: Any) -> Any:
    @decorate
    class Made:
        """A class."""

    return Made


SHAPES = [plain, with_factory, with_derived, with_methods, with_own_hash, heir]
OPTIONS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True, "kw_only": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True, "eq": False},
    {"frozen": True},
    {"slots": True},
    {"slots": True, "kw_only": True},
    {},
]


def hashed(instance: Any) -> int | str:
    try:
        return hash(instance)
    except TypeError as problem:
        return str(problem)


def both(shape: Callable[[Any], Any], options: dict[str, bool]) -> tuple[Any, Any]:
    return shape(dataclasses.dataclass(**options)), shape(ours(**options))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_class_is_the_standard_librarys(shape: Any, options: dict[str, bool]) -> None:
    theirs, made = both(shape, options)
    assert str(inspect.signature(made)) == str(inspect.signature(theirs))
    assert made.__init__.__annotations__ == theirs.__init__.__annotations__
    assert made.__init__.__qualname__ == theirs.__init__.__qualname__
    assert (made.__name__, made.__qualname__, made.__doc__) == (
        theirs.__name__,
        theirs.__qualname__,
        theirs.__doc__,
    )
    assert made.__match_args__ == theirs.__match_args__
    assert made.__dict__.get("__slots__") == theirs.__dict__.get("__slots__")
    assert [repr(one) for one in dataclasses.fields(made)] == [
        repr(one) for one in dataclasses.fields(theirs)
    ]
    assert (made.__hash__ is None) == (theirs.__hash__ is None)
    assert repr(made.__dataclass_params__) == repr(theirs.__dataclass_params__)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_instances_are_the_standard_librarys(shape: Any, options: dict[str, bool]) -> None:
    theirs, made = both(shape, options)
    one, other, again, third = theirs(left=1), made(left=1), made(left=1), made(left=2)
    assert repr(other) == repr(one)
    assert dataclasses.asdict(other) == dataclasses.asdict(one)
    assert (other == again) == (one == theirs(left=1))
    assert (other == third) == (one == theirs(left=2))
    assert (other == one) == (one == other)
    if options.get("eq", True):
        assert hashed(other) == hashed(one)
    if shape is not with_derived:  # an InitVar has no value to copy
        assert repr(dataclasses.replace(other, left=5)) == repr(dataclasses.replace(one, left=5))
    for wrong in ({}, {"left": 1, "nothing": 2}):
        with pytest.raises(TypeError) as expected:
            theirs(**wrong)
        with pytest.raises(TypeError) as found:
            made(**wrong)
        assert str(found.value) == str(expected.value)
    for call in (lambda which: setattr(which, "left", 4), lambda which: delattr(which, "left")):
        if options.get("frozen"):
            with pytest.raises(dataclasses.FrozenInstanceError) as expected_frozen:
                call(one)
            with pytest.raises(dataclasses.FrozenInstanceError) as found_frozen:
                call(other)
            assert str(found_frozen.value) == str(expected_frozen.value)
        else:
            call(other)
    assert hasattr(made(left=1), "__dict__") == hasattr(theirs(left=1), "__dict__")


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_a_class_without_fields(options: dict[str, bool]) -> None:
    theirs, made = both(empty, options)
    assert (repr(made()), hash(made()), made() == made()) == (repr(theirs()), hash(theirs()), True)


@ours(frozen=True, slots=True, kw_only=True)
class Kept:
    """A class that pickles find by its name."""

    left: int
    right: tuple[float, ...] = ()


def test_frozen_slots_survive_pickles_and_copies() -> None:
    kept = Kept(left=3, right=(1.5,))
    assert pickle.loads(pickle.dumps(kept)) == kept
    assert copy.deepcopy(kept) == kept == copy.copy(kept)


def test_identical_values_are_equal_as_in_tuples() -> None:
    made = plain(ours(frozen=True))
    assert made(left=NAN) == made(left=NAN)
    assert made(left=float("nan")) != made(left=NAN)


def test_an_instance_within_itself_has_a_representation() -> None:
    made = plain(ours())
    one = made(left=1)
    one.left = one
    assert "left=..." in repr(one)


def test_nobody_sets_a_new_attribute_of_a_frozen_instance() -> None:
    one = Kept(left=1)
    with pytest.raises(AttributeError):
        one.other = 1  # type: ignore[attr-defined]

    class Loose(Kept):
        pass

    loose = Loose(left=1)
    loose.other = 2  # type: ignore[attr-defined]
    assert loose.other == 2  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        loose.left = 2  # type: ignore[misc]


@pytest.mark.parametrize("first", [dataclasses.dataclass, ours])
@pytest.mark.parametrize("second", [dataclasses.dataclass, ours])
@pytest.mark.parametrize("frozen", [False, True])
def test_inheritance_across_both_and_no_frozen_from_loose(first: Any, second: Any, frozen: bool) -> None:
    @first(frozen=frozen, slots=True)
    class Base:
        left: int

    @second(frozen=frozen, slots=True)
    class Heir(Base):
        right: int

    assert repr(Heir(1, 2)).endswith("Heir(left=1, right=2)")
    assert Heir.__slots__ == ("right",)
    assert Base.__doc__
    with pytest.raises(TypeError, match="frozen"):

        @second(frozen=not frozen)
        class Wrong(Base):
            right: int


@pytest.mark.parametrize("decorate", [dataclasses.dataclass, ours])
def test_wrong_classes_are_refused_when_they_are_made(decorate: Any) -> None:
    with pytest.raises(TypeError, match="follows default"):
        decorate(
            types.new_class("Wrong", (), {}, lambda n: n.update(__annotations__={"a": int, "b": int}, a=1))
        )
    with pytest.raises(ValueError, match="mutable default"):
        decorate(types.new_class("Wrong", (), {}, lambda n: n.update(__annotations__={"a": list}, a=[])))
    with pytest.raises(TypeError, match="no type annotation"):
        decorate(types.new_class("Wrong", (), {}, lambda n: n.update(a=dataclasses.field(default=1))))
    with pytest.raises(TypeError, match="__slots__"):
        decorate(slots=True)(
            types.new_class("Wrong", (), {}, lambda n: n.update(__slots__=("a",), __annotations__={"b": int}))
        )
    with pytest.raises(TypeError, match="overwrite"):
        decorate(frozen=True)(
            types.new_class("Wrong", (), {}, lambda n: n.update(__setattr__=lambda *_: None))
        )


def test_methods_compile_once_and_threads_share_them() -> None:
    made = plain(ours(frozen=True, slots=True))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(made(left=1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(one == found[0] for one in found)
    assert inspect.isfunction(made.__dict__["__init__"])


def test_a_base_is_initialised_through_super() -> None:
    base = plain(ours(kw_only=True))

    class Heir(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(left=4)

    assert Heir().left == 4
    assert Heir().right == 2.5


def test_super_works_in_a_class_with_slots() -> None:
    class Base:
        __slots__ = ()

        def told(self) -> str:
            return "base"

        @property
        def seen(self) -> str:
            return "base"

    @ours(frozen=True, slots=True)
    class Heir(Base):
        left: int

        def told(self) -> str:
            return super().told() + " and heir"

    @ours(frozen=True, slots=True)
    class Other(Base):
        @property
        def seen(self) -> str:
            return super().seen + " and other"

    assert Heir(1).told() == "base and heir"
    assert Other().seen == "base and other"


def test_every_data_class_of_the_library_is_made_so() -> None:
    """The standard decorator compiles six methods a class, which every command would wait for."""
    stray = []
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and "dataclass" in names:
                stray.append(str(path.relative_to(SRC)))
    assert stray == ["exact/data_classes.py"]


def test_the_module_of_a_class_need_not_be_known() -> None:
    made = plain(ours(frozen=True))
    made.__module__ = "nowhere.at.all"
    assert "nowhere.at.all" not in sys.modules
    assert made(left=1).left == 1
