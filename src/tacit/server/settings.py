"""The operator's settings of a server: its folder, its address, the places of tables, and its limits.

All settings are in `server.toml` in the server's folder, and in options of `tacit serve`. A browser or the API
can change none of it, in particular no path, pattern or address of a database.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tacit.errors import InvalidParameter, UnknownName
from tacit.exact.data_classes import dataclass

LOOPBACK = ("127.0.0.1", "localhost", "::1")
FILE = "server.toml"
WORDS = ("connections", "database", "ledgers", "limits", "oidc", "public_url", "roots", "workers")
LIMITS = (
    "body_bytes",
    "cells",
    "expression",
    "idle_minutes",
    "preview_seconds",
    "prices_at_once",
    "questions",
    "requests_per_minute",
    "session_hours",
    "tick_seconds",
    "token_days",
)
OIDC = ("client_id", "client_secret_file", "issuer", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes and times. Each cap refuses; none drops or shortens anything silently."""

    body_bytes: int = 262_144
    """Bytes of a request."""
    cells: int = 20_000
    """The largest number of numbers that one query may release, over all its cells."""
    expression: int = 1_000
    """Characters of a filter."""
    questions: int = 20
    """Questions in one basket."""
    preview_seconds: float = 5.0
    """Seconds after which a price is given up."""
    prices_at_once: int = 4
    """Prices that are computed at once for one person."""
    requests_per_minute: int = 1_200
    """Requests of one person, or of one address without an account."""
    session_hours: float = 12.0
    idle_minutes: float = 30.0
    token_days: int = 90
    """The longest life of an API token."""
    tick_seconds: float = 1.0
    """The end of a job shows at 1, 2, 4, 8 ... times this after its start: the time of a read depends on the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """A provider of identities (OpenID Connect)."""

    issuer: str
    client_id: str
    client_secret_file: str = ""
    name: str = "single sign-on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One server."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8484
    public_url: str = ""
    database: str = field(default="", repr=False)
    roots: Mapping[str, Path] = field(default_factory=dict)
    connections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ledgers: Path | None = None
    """A folder for ledgers, where those of the tables cannot be written to."""
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    oidc: Oidc | None = None
    demo: bool = False

    def __post_init__(self) -> None:
        if self.public_url:
            parts = urlsplit(self.public_url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
                _refuse("public_url", self.public_url, "be an address such as https://desk.example.org")
            if parts.scheme == "http" and parts.hostname not in LOOPBACK:
                _refuse("public_url", self.public_url, "begin with https:// outside of the loopback")
        elif self.host not in LOOPBACK:
            _refuse(
                "host", self.host, "be a loopback address where no public_url is given",
                "put a proxy with TLS before the server and say public_url (docs/server.md)",
            )  # fmt: skip

    @property
    def url(self) -> str:
        """The address that people use, without a slash at its end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def secure(self) -> bool:
        """Is the address served over TLS?"""
        return self.url.startswith("https://")

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which the server answers."""
        known = set(LOOPBACK) if self.host in LOOPBACK else {self.host}
        if self.public_url:
            known.add(str(urlsplit(self.public_url).hostname))
        return frozenset(known)

    @property
    def releases(self) -> Path:
        """The folder of the files of releases. They can be made again from the ledgers."""
        return self.folder / "releases"

    @property
    def rehearsals(self) -> Path:
        """The folder of made-up tables for rehearsals."""
        return self.folder / "rehearsals"


def read_settings(folder: Path, **given: Any) -> Settings:
    """The settings of `server.toml` in this folder, and the options that were given beside it."""
    import tomllib

    place = folder / FILE
    said: dict[str, Any] = {}
    if place.exists():
        try:
            said = tomllib.loads(place.read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            _refuse(FILE, str(place), "be a readable TOML file", type(problem).__name__)
    for word in said:
        if word not in WORDS:
            raise UnknownName(what=f"word in {FILE}", name=word, known=WORDS)
    options = {k: v for k, v in given.items() if v not in (None, (), {})}
    roots = _roots(folder, said.get("roots", {})) | _roots(folder, options.pop("roots", {}))
    if not roots:
        roots = {"tables": folder / "tables"}
    database = options.pop("database", said.get("database", ""))
    ledgers = said.get("ledgers", "")
    return Settings(
        folder=folder,
        roots=roots,
        connections=_connections(folder, said.get("connections", {})),
        database=_text("database", database),
        ledgers=(folder / _text("ledgers", ledgers)) if ledgers else None,
        public_url=options.pop("public_url", _text("public_url", said.get("public_url", ""))),
        workers=options.pop("workers", _whole("workers", said.get("workers", 1))),
        limits=_limits(said.get("limits", {})),
        oidc=_oidc(said.get("oidc")),
        **options,
    )


def make_folder(settings: Settings) -> None:
    """The server's folder and the default root, for its owner alone."""
    settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.chmod(settings.folder, 0o700)
    for place in (settings.releases, settings.rehearsals, settings.folder / "tables"):
        place.mkdir(exist_ok=True, mode=0o700)
    for name, root in settings.roots.items():
        if not root.is_dir():
            _refuse(f"roots.{name}", str(root), "be a folder that is there")
    if settings.ledgers is not None:
        settings.ledgers.mkdir(exist_ok=True, mode=0o700)


def _roots(folder: Path, given: Any) -> dict[str, Path]:
    if not isinstance(given, Mapping):
        _refuse(
            "roots",
            type(given).__name__,
            "be a table of names and folders",
            '[roots] surveys = "/data/surveys"',
        )
    return {_name("roots", n): (folder / _text(f"roots.{n}", str(p))).resolve() for n, p in given.items()}


def _connections(folder: Path, given: Any) -> dict[str, dict[str, Any]]:
    """Named data: the words of a plan's [data], with paths that the operator writes."""
    if not isinstance(given, Mapping) or not all(isinstance(v, Mapping) for v in given.values()):
        _refuse("connections", type(given).__name__, "be tables: [connections.visits]")
    out: dict[str, dict[str, Any]] = {}
    for name, words in given.items():
        if "path" not in words:
            _refuse(f"connections.{name}.path", None, "be given")
        paths = words["path"] if isinstance(words["path"], list) else [words["path"]]
        there = [str((folder / _text(f"connections.{name}.path", p)).resolve()) for p in paths]
        out[_name("connections", name)] = {
            **words,
            "path": there if isinstance(words["path"], list) else there[0],
        }
    return out


def _limits(given: Any) -> Limits:
    if not isinstance(given, Mapping):
        _refuse("limits", type(given).__name__, "be a table")
    for word, value in given.items():
        if word not in LIMITS:
            raise UnknownName(what="word in [limits]", name=word, known=LIMITS)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            _refuse(f"limits.{word}", value, "be a positive number")
    return Limits(**given)


def _oidc(given: Any) -> Oidc | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        _refuse("oidc", type(given).__name__, "be a table")
    for word in given:
        if word not in OIDC:
            raise UnknownName(what="word in [oidc]", name=word, known=OIDC)
    for word in ("issuer", "client_id"):
        if word not in given:
            _refuse(f"oidc.{word}", None, "be given")
    return Oidc(**{k: _text(f"oidc.{k}", v) for k, v in given.items()})


def _name(where: str, name: str) -> str:
    if not name or len(name) > 60 or not all(c.isalnum() or c in "-_ " for c in name):
        _refuse(where, name, "have names of letters, digits, blanks, - and _")
    return name


def _text(where: str, value: Any) -> str:
    if not isinstance(value, str):
        _refuse(where, value, "be a text")
    return str(value)


def _whole(where: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 64:
        _refuse(where, value, "be a whole number from 0 to 64")
    return int(value)


def _refuse(parameter: str, value: object, must: str, hint: str = "") -> None:
    raise InvalidParameter(parameter=parameter, value=value, must=must, hint=hint)
