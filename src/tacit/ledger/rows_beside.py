"""A folder beside a ledger, in which engines keep the bounded rows of a version: only if a custodian asked for it.

Beside `survey.ledger` lies `survey.ledger-rows`, which only its owner can enter. That it is there is the request: a
curator who finds it keeps in it what bounding gave (`tacit.sources.kept`), and reads it in place of bounding anew.
These are rows of real people as declared, without noise. Removing them changes no answer.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import InvalidParameter
from tacit.ledger.approvals import CUSTODIAN
from tacit.ledger.entries import text

if TYPE_CHECKING:
    from tacit.ledger.ledger import Ledger

ENDING = "-rows"
ABOUT = ".json"
LOCK = "lock"
KEPT = "bounded rows are kept beside the ledger from now on"
REMOVED = "bounded rows were removed from beside the ledger"


def rows_folder(ledger: Ledger) -> Path | None:
    """The folder for bounded rows, if a custodian asked for one; None if it is not safe to use as well."""
    if ledger.path is None:
        return None
    folder = Path(f"{ledger.path}{ENDING}")
    try:
        found = folder.lstat()
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return folder if mine and private else None


def keep_rows(ledger: Ledger, *, by: str = CUSTODIAN) -> Path:
    """From now on the bounded rows of each version are kept in a folder beside the ledger, which is returned.

    They tell of real people, and are not encrypted: the folder is for its owner alone, and belongs on a disk that is.
    """
    _custodian(ledger, by)
    if ledger.path is None:
        raise InvalidParameter(
            parameter="ledger", value="a database", must="be a file, beside which rows can be kept",
            hint="a table that lives in a database is bounded there",
        )  # fmt: skip
    folder = Path(f"{ledger.path}{ENDING}")
    if rows_folder(ledger) is None:
        try:
            folder.mkdir(mode=0o700)
        except OSError:
            raise InvalidParameter(
                parameter="ledger", value=str(folder), must="be a folder that can be made, for its owner alone",
                hint="something else has this name, or others may enter it: chmod 700",
            ) from None  # fmt: skip
        ledger.note(KEPT, by=by)
    return folder


def remove_rows(ledger: Ledger, *, version: str | None = None, by: str = CUSTODIAN) -> int:
    """Removes the rows of a version, or all of them and the folder, so that none are kept; the number of files gone."""
    _custodian(ledger, by)
    folder = rows_folder(ledger)
    if folder is None:
        return 0
    gone = 0
    for about in sorted(folder.glob(f"*{ABOUT}")):
        if version is None or about.name.startswith(f"{mark_of(ledger, version)}-"):
            gone += _gone(about.with_suffix(""))
            _gone(about)
    if version is None:
        for left in folder.iterdir():
            gone += _gone(left) and left.name != LOCK
        folder.rmdir()
    ledger.note(REMOVED if version is None else f"{REMOVED}: those of one version", by=by)
    return gone


def mark_of(ledger: Ledger, version: str) -> str:
    """The beginning of the names of a version's files, which tells nobody else which version it is."""
    from tacit.exact.canonical import mac

    return mac(ledger.bounding_key, "version of kept rows", version)[:16]


def _custodian(ledger: Ledger, by: str) -> None:
    name = text("by", by)
    ledger._read(lambda state: state.register.custodian(name, "keep or remove rows beside the ledger"))


def _gone(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
