"""Start a server: settings, folder, database, the first link, and uvicorn."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.server.accounts import FIRST_FILE
from tacit.server.settings import Settings, make_folder, read_settings
from tacit.server.store import checked_database

Ready = Callable[[dict[str, Any]], None]


def run(folder: Path, *, ready: Ready, demo: bool = False, check: bool = False, **given: Any) -> None:
    """Serve until somebody ends it."""
    settings = prepared(folder, demo=demo, **given)
    from tacit.server.app import make_app
    from tacit.server.demo import checked, fill

    if check:
        desk = make_app(settings, workers=False).state.desk
        try:
            checked(desk)
        finally:
            desk.close()
        ready(
            {
                "url": settings.url,
                "folder": str(settings.folder),
                "first_link": "",
                "notes": ["settings and database hold"],
            }
        )
        return
    with bound(settings) as listening:
        if not settings.port:
            settings = replace(settings, port=int(listening.getsockname()[1]))
        app = make_app(settings)
        desk = app.state.desk
        notes: list[str] = []
        try:
            checked(desk)
            notes = fill(desk) if demo else []
        except BaseException:
            desk.close()
            raise
        link = desk.accounts.first_link(settings.folder, settings.url)
        told = {
            "url": settings.url, "folder": str(settings.folder),
            "first_link": str(settings.folder / FIRST_FILE) if link else "", "notes": notes,
        }  # fmt: skip
        ready(told)
        server_of(app).run(sockets=[listening])


def prepared(folder: Path, *, demo: bool = False, **given: Any) -> Settings:
    """The settings, and the folder that they name."""
    try:
        settings = read_settings(folder, demo=demo, **given)
        if settings.database:
            checked_database(settings.database)
        make_folder(settings)
    except OSError as problem:
        raise InvalidParameter(
            parameter="--folder", value=str(folder), must="be a folder that can be written to",
            hint=(problem.strerror or "").lower(),
        ) from None  # fmt: skip
    return settings


def bound(settings: Settings) -> socket.socket:
    """The socket to listen on; a used port gives one clear sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as problem:
        listening.close()
        raise InvalidParameter(
            parameter="--port", value=settings.port, must="be free", hint=(problem.strerror or "").lower()
        ) from None
    listening.listen(256)
    return listening


def server_of(app: Any) -> Any:
    """Uvicorn for the application; it writes no log, since addresses may hold one-time codes."""
    import uvicorn

    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, server_header=False, date_header=True,
        proxy_headers=False,
        timeout_keep_alive=30, timeout_graceful_shutdown=10, lifespan="on", ws="none", limit_concurrency=500,
    )  # fmt: skip
    return uvicorn.Server(config)
