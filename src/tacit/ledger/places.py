"""Where a ledger lies, in words that may be shown: a URL without the name and the password in it."""

from __future__ import annotations

import re

__all__ = ["without_credentials"]

# Everything between the scheme and the last @ is somebody's; what follows a question mark may be.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:.*@)?(?P<rest>[^?\n]*)(?:\?.*)?", re.DOTALL)


def without_credentials(place: str) -> str:
    """A path as it is; of a URL the scheme, the host and the database, without user, password and options."""
    return _URL.sub(lambda url: url["scheme"] + url["rest"], place)
