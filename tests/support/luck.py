"""No test depends on luck: what a test draws follows from its name.

Releases draw from the process's cryptographic source. Here its stream is given a key that is a hash of the name of the
test, or of the fixture, before it begins: everything else is what users run. Threads and processes that a test starts
have keys of their own, from the system; what is asserted of them must hold with a stated probability.
"""

from __future__ import annotations

import hashlib

from tacit.noise import source


def settle(name: str) -> None:
    """From here on, in this thread, the words that belong to the name."""
    key = hashlib.sha256(b"tacit test\0" + name.encode(errors="surrogatepass")).digest()
    source.default_source()._local.stream = source._Stream(key, bytes(16))
