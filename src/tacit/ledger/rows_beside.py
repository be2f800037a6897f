"""A folder beside a ledger with the bounded rows of each version, only if a custodian asked for it.

Beside `survey.ledger` lies `survey.ledger-rows`, which only its owner can enter. The folder itself is the
request: a curator who finds it keeps the bounded rows in it (`tacit.sources.kept`), and reads them from there.
These are rows of real people as declared, without noise. Removing them changes no answer.
"""

from __future__ import annotations

import os
import re
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
    """The folder for bounded rows, if a custodian asked for one; None if it is not safe."""
    folder = _folder(ledger)
    try:
        found = None if folder is None else folder.lstat()
    except OSError:
        return None
    if found is None:
        return None
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return folder if mine and private else None


def _folder(ledger: Ledger) -> Path | None:
    """Its place beside the ledger's file, by any name of the file; None for a ledger in a database."""
    return None if ledger.path is None else Path(f"{os.path.realpath(ledger.path)}{ENDING}")


def keep_rows(ledger: Ledger, *, by: str = CUSTODIAN) -> Path:
    """From now on the bounded rows of each version are kept in a folder beside the ledger, which is returned.

    They describe real people and are not encrypted: the folder is for its owner alone, and belongs on an encrypted
    disk.
    """
    _custodian(ledger, by)
    folder = _folder(ledger)
    if folder is None:
        raise InvalidParameter(
            parameter="ledger", value="a database", must="be a file, beside which rows can be kept",
            hint="a table that lives in a database is bounded there",
        )  # fmt: skip
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
    """Removes the rows of a version, or all of them and the folder; returns the number of removed files.

    It also removes leftovers of a killed writer; a release that is writing rows at that moment keeps none. An
    error says that something could not be removed.
    """
    _custodian(ledger, by)
    folder = _folder(ledger)
    if folder is None or not os.path.lexists(folder):
        return 0
    mark = "[0-9a-f]{16}" if version is None else mark_of(ledger, version)
    ours = re.compile(f"{mark}-.*" + (f"|{LOCK}" if version is None else "")).fullmatch
    gone = 0
    try:
        if folder.is_symlink() or not folder.is_dir():
            raise NotADirectoryError
        # First the lock: a writer looks for it before it gives a file its name. Whoever had looked already may give
        # one while the first listing is read, so that there are two.
        (folder / LOCK).unlink(missing_ok=True)
        for _ in range(2):
            for path in [p for p in folder.iterdir() if ours(p.name)]:
                path.unlink(missing_ok=True)
                gone += not path.suffix and path.name != LOCK
        if version is None:
            folder.rmdir()
    except OSError:
        raise InvalidParameter(
            parameter="ledger", value=str(folder), must="be a folder from which all that was kept can be removed",
            hint="look into it, and remove its contents by hand: they may be rows of people",
        ) from None  # fmt: skip
    ledger.note(REMOVED if version is None else f"{REMOVED}: those of one version", by=by)
    return gone


def mark_of(ledger: Ledger, version: str) -> str:
    """The beginning of the file names of a version, which reveals the version to nobody else."""
    from tacit.exact.canonical import mac

    return mac(ledger.bounding_key, "version of kept rows", version)[:16]


def _custodian(ledger: Ledger, by: str) -> None:
    name = text("by", by)
    ledger._read(lambda state: state.register.custodian(name, "keep or remove rows beside the ledger"))
