"""Holders with known vectors, for tests of the secure sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tacit.parties.holder import Holder, KeptHolder
from tacit.parties.session import Session, Sizes

LENGTH = 6


@dataclass
class Room:
    """Holders with known vectors and a count of how often each one charged."""

    sizes: Sizes
    nonce: bytes = bytes(32)
    charges: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = self.sizes.holders
        self.keys = [Ed25519PrivateKey.from_private_bytes(bytes([i % 256, i // 256]) * 16) for i in range(n)]
        publics = tuple(k.public_key().public_bytes_raw() for k in self.keys)
        self.session = Session(
            sizes=self.sizes, keys=publics, length=LENGTH, about=bytes(32), nonce=self.nonce, graph_delta=1.0
        )
        self.vectors = [np.arange(LENGTH, dtype=np.int64) * (i + 1) - 7 * i for i in range(n)]

    def holder(self, i: int) -> Holder:
        def contribute() -> np.ndarray:
            self.charges[i] = self.charges.get(i, 0) + 1
            return self.vectors[i].view(np.uint64)

        return Holder(session=self.session, index=i, key=self.keys[i], contribute=contribute)

    def kept(self, i: int, folder: Path) -> KeptHolder:
        """A holder whose state lies in a folder of its own."""

        def contribute() -> np.ndarray:
            self.charges[i] = self.charges.get(i, 0) + 1
            return self.vectors[i].view(np.uint64)

        (folder / str(i)).mkdir(parents=True, exist_ok=True)
        return KeptHolder(
            folder / str(i) / "state", session=self.session, index=i, key=self.keys[i], contribute=contribute
        )

    def holders(self) -> dict[int, Holder]:
        return {i: self.holder(i) for i in range(self.sizes.holders)}

    def truth(self, remaining: tuple[int, ...]) -> np.ndarray:
        return sum((self.vectors[i] for i in remaining), np.zeros(LENGTH, dtype=np.int64))


def room(n: int = 6, fewest: int = 4, colluding: int = 1, **more: int) -> Room:
    return Room(Sizes(holders=n, fewest=fewest, colluding=colluding, **more))
