"""Sample paths that the custodian keeps: every process and every later session sees the same path.

f_D is frozen when the path is made, and sealed in the encrypted store beside the ledger. It is never made anew,
because the same noise on changed data would reveal the change. One transaction per call reads the points of
other processes, draws the new values and writes them; the answer leaves after the transaction. A crash before
its end publishes nothing and leaves no trace. Theorems `gaussian-process-online` and `gaussian-process-markov`.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidParameter, TacitError, charge_made
from tacit.exact.arrays import AnyArray, Floats
from tacit.exact.enclosures import Enclosure
from tacit.exact.rounding import Ball, ball
from tacit.functions.boxes import Box
from tacit.functions.kernels import (
    ExponentialKernel,
    GaussianKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    ProductKernel,
    SumKernel,
    TensorProductKernel,
    WrappedGaussianKernel,
)
from tacit.functions.means import KernelCombination, Mean
from tacit.functions.paths.grids import float_constant, round_exactly, rounded
from tacit.functions.paths.markov import ConditionedPath, KeptNormal, MarkovNoise, State, markov_order
from tacit.functions.process import GaussianProcessRelease, PathValues
from tacit.ledger import Ledger, Recorded, Request
from tacit.ledger.encrypted_store import EncryptedStore, StoreTransaction
from tacit.ledger.entries import text
from tacit.noise.source import Source, default_source

# Kernels, releases and means as records, and back: a closed table, never by import or pickle.

Arrays = Mapping[str, npt.NDArray[Any]]


def _parts(record: Mapping[str, Any]) -> tuple[Kernel, ...]:
    return tuple(kernel_from(one) for one in record["kernels"])


_KERNELS: dict[str, Callable[[Mapping[str, Any]], Kernel]] = {
    "gaussian": lambda r: GaussianKernel(bandwidth=r["bandwidth"], dimension=r["dimension"]),
    "exponential": lambda r: ExponentialKernel(length=r["length"], dimension=r["dimension"]),
    "matern": lambda r: MaternKernel(
        length=r["length"], smoothness=r["smoothness"], dimension=r["dimension"]
    ),
    "periodic": lambda r: PeriodicKernel(length=r["length"], period=r["period"]),
    "wrapped gaussian": lambda r: WrappedGaussianKernel(bandwidth=r["bandwidth"], period=r["period"]),
    "polynomial": lambda r: PolynomialKernel(
        degree=r["degree"], offset=r["offset"], box=Box(low=r["low"], high=r["high"])
    ),
    "sum": lambda r: SumKernel(kernels=_parts(r)),
    "product": lambda r: ProductKernel(kernels=_parts(r)),
    "tensor product": lambda r: TensorProductKernel(kernels=_parts(r)),
}


def kernel_from(record: Mapping[str, Any]) -> Kernel:
    """The kernel of `describe()`."""
    make = _KERNELS.get(str(record.get("kernel")))
    if make is None:
        raise _unknown("kernel", sorted(_KERNELS))
    return make(record)


def release_record(release: GaussianProcessRelease) -> dict[str, Any]:
    """A release as plain JSON values, with exact numbers as fractions."""
    return {
        "kernel": release.kernel.to_dict(),
        "rkhs_sensitivity": str(release._sensitivity),
        "noise_std": str(release._noise),
        "low": list(release.domain.lows),
        "high": list(release.domain.highs),
        "spacing": str(release.step),
    }


def release_from(record: Mapping[str, Any]) -> GaussianProcessRelease:
    """The release of a record."""
    from tacit.functions.process import GaussianProcessRelease

    return GaussianProcessRelease(
        kernel=kernel_from(record["kernel"]),
        rkhs_sensitivity=Fraction(record["rkhs_sensitivity"]),
        noise_std=Fraction(record["noise_std"]),
        domain=Box(low=record["low"], high=record["high"]),
        spacing=Fraction(record["spacing"]),
    )


def to_bytes(mean: Mean) -> tuple[dict[str, Any], Arrays]:
    """A mean as plain values and arrays, for the custodian's encrypted store."""
    if type(mean) is not KernelCombination:
        raise _unknown("mean", ["KernelCombination"])
    words = {
        "mean": "kernel combination",
        "kernel": mean.kernel.to_dict(),
        "absolute_sum": str(Fraction(mean.absolute_sum)),
    }
    return words, {"points": mean.at, "coefficients": mean.weights}


def mean_from(record: Mapping[str, Any], arrays: Arrays) -> Mean:
    """The mean that was kept."""
    if record.get("mean") != "kernel combination":
        raise _unknown("mean", ["kernel combination"])
    return KernelCombination(
        kernel=kernel_from(record["kernel"]), points=arrays["points"], coefficients=arrays["coefficients"],
        absolute_sum=Fraction(record["absolute_sum"]),
    )  # fmt: skip


def joined(words: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Words and arrays as one text of bytes."""
    out = io.BytesIO()
    text = json.dumps({"words": words, "arrays": sorted(arrays)}, allow_nan=False).encode("utf-8")
    out.write(len(text).to_bytes(8, "little") + text)
    for name in sorted(arrays):
        np.save(out, arrays[name], allow_pickle=False)
    return out.getvalue()


def parted(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Words and arrays of `joined`."""
    source = io.BytesIO(data)
    header = json.loads(source.read(int.from_bytes(source.read(8), "little")))
    return header["words"], {name: np.load(source, allow_pickle=False) for name in header["arrays"]}


def _unknown(what: str, known: list[str]) -> InvalidParameter:
    return InvalidParameter(parameter=what, value="another kind", must=f"be one of {known} to be kept")


Piece = tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]
FINEST = 1 << 48
"""A kept path's grid has at least noise_std / FINEST between its points: the kept part of the noise decides no less."""


class PathStore:
    """The online paths beside one ledger, each under its name.

    `make` freezes f_D and charges nothing: call it between `reserve` and `commit`, or let `charged` do all three.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._encrypted = ledger, EncryptedStore(ledger)

    def names(self) -> list[str]:
        """The paths that are kept."""
        found = self._encrypted.read(lambda transaction: transaction.names())
        return sorted(n.removeprefix(_PREFIX) for n in found if n.startswith(_PREFIX))

    def __contains__(self, name: str) -> bool:
        return text("name", name) in self.names()

    def make(
        self, name: str, *, release: GaussianProcessRelease, mean: Mean, source: Source | None = None
    ) -> OnlinePath:
        """Freezes f_D under this name; an existing path is opened instead, and `mean` is ignored.

        A name belongs to one release: another kernel, noise, domain or grid is refused.
        """
        release._of(mean)
        _check_grid(release)
        words, arrays = to_bytes(mean)
        body = joined({"release": release_record(release), **words}, arrays)

        def work(transaction: StoreTransaction) -> None:
            if not transaction.parts(_PREFIX + text("name", name)):
                transaction.append(_PREFIX + name, 0, body)

        self._encrypted.write(work)
        return self._same(self.open(name, source=source), release)

    def _same(self, path: OnlinePath, release: GaussianProcessRelease) -> OnlinePath:
        if release_record(path.release) != release_record(release):
            raise InvalidParameter(
                parameter="name", value=path.name, must="belong to one release",
                hint="a path with other noise has this name; give the new one another name",
            )  # fmt: skip
        return path

    def open(self, name: str, *, source: Source | None = None) -> OnlinePath:
        """The path of this name, with the f_D that was frozen then."""
        parts = self._encrypted.read(lambda transaction: transaction.parts(_PREFIX + text("name", name)))
        if not parts:
            raise InvalidParameter(
                parameter="name", value=name, must="be the name of a stored path", hint="make it first"
            )
        return OnlinePath(self._encrypted, name, parts, source if source is not None else default_source())

    def charged(
        self, name: str, *, release: GaussianProcessRelease, mean: Callable[[], Mean], request: Request
    ) -> OnlinePath:
        """The path of this name; a new one is charged first, and only then is `mean` called and frozen.

        All later questions are free: they are about the same path. A crash after the charge leaves it spent. A request
        whose charge does not follow from the release's guarantee is refused.
        """
        if name in self:
            return self._same(self.open(name), release)
        _check_grid(release)
        _check_charge(release, request)
        ticket = self._ledger.reserve(request)
        if isinstance(ticket, Recorded):
            return self._same(self.open(name), release)
        with charge_made():
            try:
                path = self.make(name, release=release, mean=mean())
            except BaseException:
                with suppress(TacitError):
                    self._ledger.fail(ticket)
                raise
            self._ledger.commit(ticket, {"path": name, **release_record(release)})
        return path


_PREFIX = "path "


class OnlinePath:
    """One sample path of f_D + noise_std G; the same in every process that opens it."""

    def __init__(self, store: EncryptedStore, name: str, parts: list[bytes], source: Source) -> None:
        self._encrypted, self.name, self._source = store, name, source
        self._lock = threading.RLock()
        words, arrays = parted(parts[0])
        self.release = release_from(words["release"])
        self._mean = mean_from(words, arrays)
        self._known: dict[bytes, int] = {}
        self._publishable, self._parts = True, 1
        sampler = _Markov if markov_order(self.release.kernel) else _Conditioned
        self._sampler: _Markov | _Conditioned = sampler(self.release, self._mean)
        for part in parts[1:]:
            self._take(parted(part))

    @property
    def asked(self) -> int:
        """The number of different points with a value."""
        return len(self._known)

    def ask(self, points: npt.ArrayLike) -> PathValues:
        """f_D + noise at the points, on the grid. New values are durable before they are returned."""
        at = self.release._asked(self._mean, points)
        with self._lock:
            if not all(x.tobytes() in self._known for x in at):
                piece = self._encrypted.write(lambda transaction: self._extended(transaction, at))
                if piece is not None:
                    self._take(piece, own=True)
            values = _integers([self._known[x.tobytes()] for x in at])
        return PathValues(
            points=at, values=values, spacing=self.release.step, numerical_delta=0.0, publishable=self._publishable
        )  # fmt: skip

    def _extended(self, transaction: StoreTransaction, at: Floats) -> Piece | None:
        """Inside the transaction it reads the points of others, draws the new ones and keeps them; a repeated
        transaction draws again.
        """
        self._sampler.forget()
        for part in transaction.parts(_PREFIX + self.name, after=self._parts - 1):
            self._take(parted(part))
        new = np.unique(
            np.array([x for x in at if x.tobytes() not in self._known]).reshape(-1, at.shape[1]), axis=0
        )
        if not new.shape[0]:
            return None
        values, words, kept = self._sampler.draw(new, self._source)
        # However large a value is, it is kept: a refusal that depends on it would tell of it, and draw it anew.
        words = {**words, "publishable": self._source.publishable}
        piece = words, {"points": new, **kept}
        told = _integers(values)
        if told.dtype == object:
            words["values"] = values
        else:
            piece[1]["values"] = told
        transaction.append(_PREFIX + self.name, self._parts, joined(*piece))
        return piece

    def _take(self, piece: Piece, *, own: bool = False) -> None:
        """Adds a durable piece to the known values; `own` means that this process drew it just now."""
        words, arrays = piece
        self._sampler.take(words, arrays, own=own)
        keys = (x.tobytes() for x in arrays["points"])
        values = words["values"] if "values" in words else arrays["values"].tolist()
        self._known.update(zip(keys, values, strict=True))
        self._publishable = self._publishable and bool(words["publishable"])
        self._parts += 1

    def __repr__(self) -> str:
        return f"OnlinePath({self.name!r}, {self.asked} points)"

    def __reduce__(self) -> Any:
        raise TypeError("a kept path is not copied or pickled: open it again where it is needed")


Drawn = tuple[list[int], dict[str, Any], dict[str, npt.NDArray[Any]]]
"""Values, and the part of their noise that must be kept: words and arrays."""


class _Markov:
    """Exponential and Matern kernels on a line: G is kept, and f_D is added when a value is made."""

    def __init__(self, release: GaussianProcessRelease, mean: Mean) -> None:
        self._release, self._mean = release, mean
        self._noise = MarkovNoise(release.kernel)
        self._fresh: list[State] = []

    def forget(self) -> None:
        """Forgets values that were drawn and not used."""
        self._fresh = []

    def draw(self, points: Floats, source: Source) -> Drawn:
        sigma = self._release._noise
        at = points[:, 0].tolist()
        states = self._noise.draw(at, source)
        # A float is within 2^-53 of the middle, and the radius is below 2^-96.
        floats = np.array([float(s[0].mid()) for s in states])
        path = Enclosure(floats, np.abs(floats) * 2.0**-52 + 2.0**-90)
        reals = path * float_constant(sigma) + self._mean.enclosed(points)

        def exact(i: int) -> Ball:
            return self._mean.ball(points[i]) + ball(sigma) * states[i][0]

        # The bits of a state are fixed; those of f_D grow with the working precision.
        values = round_exactly(reals, self._release.step, exact, lambda _: None)
        self._fresh = states
        return values.tolist(), {}, {"states": np.frombuffer(self._noise.pack(states), dtype=np.uint8)}

    def take(self, words: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], *, own: bool) -> None:
        states = self._fresh if own else self._noise.unpack(arrays["states"].tobytes())
        self._noise.join(arrays["points"][:, 0].tolist(), states)


class _Conditioned:
    """Any kernel: Cholesky's rows are made anew from the points and the normals that are kept."""

    def __init__(self, release: GaussianProcessRelease, mean: Mean) -> None:
        self._step = release.step
        self._path = ConditionedPath(kernel=release.kernel, mean=mean, noise_std=release._noise)
        self._taken = 0

    def forget(self) -> None:
        """Forgets values that were drawn and not used."""
        self._path.forget(self._taken)

    def draw(self, points: Floats, source: Source) -> Drawn:
        self.forget()
        values, own = [], []
        for i, x in enumerate(points):
            before = self._path.rank
            values.append(rounded(self._path.value(x, source), self._step))
            if self._path.rank > before:
                own.append(i)
        kept = [n.packed() for n in self._path.normals(self._taken)]
        return values, {"normals": kept}, {"own": np.array(own, dtype=np.int64)}

    def take(self, words: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], *, own: bool) -> None:
        if not own:
            normals = [KeptNormal.from_packed(n) for n in words["normals"]]
            self._path.restore(arrays["points"][arrays["own"]], normals)
        self._taken = self._path.rank


def _integers(values: list[int]) -> AnyArray:
    """int64 if all fit with room, else whole numbers of any size."""
    return np.array(values, dtype=object if any(abs(v) >= 1 << 62 for v in values) else np.int64)


def _check_grid(release: GaussianProcessRelease) -> None:
    if release._noise > release.step * FINEST:
        raise InvalidParameter(
            parameter="spacing",
            value=release.step,
            must="be at least noise_std / 2^48 for a path that is kept",
        )


def _check_charge(release: GaussianProcessRelease, request: Request) -> None:
    """The charge must follow from the path's promise: a smaller charge would not be the path's price."""
    charge = request.charge
    promised = replace(charge, bound=release.bound)
    if not promised.implies(charge).holds:
        raise InvalidParameter(
            parameter="request", value=str(charge.bound), must="charge at least what the release promises",
            hint=f"the release has {release.bound}",
        )  # fmt: skip
