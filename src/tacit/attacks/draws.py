"""Randomness of attackers and of the systems they attack: a hash of a seed, so that every attack can be repeated.

It is public by construction and never becomes noise of a release of ours.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tacit.exact.checks import whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tacit.exact.arrays import Floats, Integers


__all__ = ["Draws"]


class Draws:
    """A stream of numbers from a seed and a label; the same two give the same stream."""

    def __init__(self, seed: int = 0, label: str = "") -> None:
        self._key = f"{whole('seed', seed, least=0)}/{label}/".encode()
        self._block = 0

    def _words(self, count: int) -> npt.NDArray[np.uint64]:
        import numpy as np

        self._block += 1
        taken = hashlib.shake_256(self._key + str(self._block).encode()).digest(8 * count)
        return np.frombuffer(taken, dtype="<u8")

    def uniforms(self, *shape: int) -> Floats:
        """Uniform on (0, 1), on the midpoints of 2^53 cells."""
        import numpy as np

        words = self._words(int(np.prod(shape, dtype=np.int64)))
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5).reshape(shape) / 2.0**53

    def dyadic(self, *shape: int) -> Floats:
        """Uniform on the multiples of 2^-53 in (0, 1], as textbook samplers take them."""
        import numpy as np

        words = self._words(int(np.prod(shape, dtype=np.int64)))
        return ((words >> np.uint64(11)).astype(np.float64) + 1.0).reshape(shape) / 2.0**53

    def normals(self, *shape: int) -> Floats:
        """Standard normal, by inversion."""
        import numpy as np
        from scipy.special import ndtri

        return np.asarray(ndtri(self.uniforms(*shape)), dtype=np.float64)

    def laplace(self, *shape: int) -> Floats:
        """Laplace of scale 1."""
        import numpy as np

        u = self.uniforms(*shape)
        return np.asarray(np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u))), dtype=np.float64)

    def bits(self, *shape: int) -> Integers:
        """Fair bits."""
        return (self.uniforms(*shape) < 0.5).astype("int64")

    def integers(self, below: int, *shape: int) -> Integers:
        """Uniform on 0, ..., below - 1 (to within 2^-53 · below, which no attack here can tell)."""
        import numpy as np

        return np.minimum((self.uniforms(*shape) * below).astype(np.int64), below - 1)

    def permutation(self, size: int) -> Integers:
        """A uniform order of 0, ..., size - 1."""
        import numpy as np

        return np.argsort(self.uniforms(size), kind="stable").astype(np.int64)
