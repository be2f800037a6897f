"""The application: one table of routes, static files, workers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path_

from tacit.server import api, oidc, pages, views
from tacit.server.desk import Desk
from tacit.server.settings import Settings
from tacit.server.web import ANY, PUBLIC, NotFound, Route, WebCall, answer

KEEPS = ("custodian",)
ASKS = ("analyst", "custodian")
READS_LEDGER = ("auditor", "custodian")
DECIDES = ("approver", "custodian")
STATIC = {"desk.css": "text/css", "desk.js": "text/javascript", "desk.svg": "image/svg+xml"}


def health(call: WebCall) -> Response:
    """Is the server there? Says nothing else."""
    return Response("ok\n", media_type="text/plain")


def static(call: WebCall) -> Response:
    """The style sheet and the script of this package."""
    name = call.path["name"]
    if name not in STATIC:
        raise NotFound
    body = (Path(__file__).parent / "static" / name).read_bytes()
    return Response(body, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})


def _page(
    method: str, path: str, roles: tuple[str, ...], call: Callable[[WebCall], Any], **more: Any
) -> Route:
    return Route(method=method, path=path, roles=roles, call=call, name=call.__name__, **more)


def _api(
    method: str, path: str, call: Callable[[WebCall], Any], roles: tuple[str, ...] = ANY, scope: str = "read"
) -> Route:
    return Route(
        method=method,
        path=f"/api/v1{path}",
        roles=roles,
        call=call,
        name=f"api_{call.__name__}",
        api=True,
        scope=scope,
    )


ROUTES: tuple[Route, ...] = (
    _page("GET", "/", PUBLIC, views.home),
    _page("GET", "/health", PUBLIC, health),
    _page("GET", "/static/{name}", PUBLIC, static),
    _page("GET", "/sign-in", PUBLIC, views.sign_in_page),
    _page("POST", "/sign-in", PUBLIC, views.sign_in),
    _page("POST", "/sign-out", ANY, views.sign_out),
    _page("GET", "/welcome", PUBLIC, views.welcome_page),
    _page("POST", "/welcome", PUBLIC, views.welcome),
    _page("GET", "/single-sign-on", PUBLIC, oidc.begin),
    _page("GET", "/single-sign-on/back", PUBLIC, oidc.back),
    _page("POST", "/single-sign-on/bind", ANY, oidc.bind),
    _page("GET", "/account", ANY, views.account_page),
    _page("POST", "/account", ANY, views.account),
    _page("GET", "/people", KEEPS, views.people_page),
    _page("POST", "/people", KEEPS, views.people),
    _page("GET", "/tables", ANY, views.tables),
    _page("GET", "/new-table", KEEPS, views.sources_page),
    _page("GET", "/new-table/declare", KEEPS, views.declare_page),
    _page("POST", "/new-table/declare", KEEPS, views.declare),
    _page("GET", "/tables/{table}", ANY, views.table_page),
    _page("POST", "/tables/{table}", KEEPS, views.table_act),
    _page("GET", "/tables/{table}/ask", ASKS, pages.ask_page),
    _page("POST", "/tables/{table}/ask", ASKS, pages.ask),
    _page("POST", "/tables/{table}/price", ASKS, pages.price),
    _page("GET", "/jobs/{job}", ANY, pages.job_page),
    _page("POST", "/jobs/{job}", ASKS, pages.job_act),
    _page("GET", "/jobs/{job}/events", ANY, pages.job_events, stream=True),
    _page("GET", "/requests", ANY, pages.requests_page),
    _page("GET", "/requests/{table}/{number}", ANY, pages.request_page),
    _page("POST", "/requests/{table}/{number}", ("analyst", "approver", "custodian"), pages.request_act),
    _page("GET", "/releases", ANY, pages.releases_page),
    _page("GET", "/releases/{job}", ANY, pages.release_page),
    _page("POST", "/releases/{job}", ANY, pages.release_act),
    _page("GET", "/releases/{job}/files/{name:path}", ANY, pages.release_file),
    _page("GET", "/ledger/{table}", READS_LEDGER, views.ledger_page),
    _page("GET", "/ledger/{table}/export", READS_LEDGER, views.ledger_export),
    _page("POST", "/ledger/{table}/verify", READS_LEDGER, views.ledger_verify),
    _page("GET", "/audit", READS_LEDGER, views.audit_page),
    _page("GET", "/public", PUBLIC, pages.catalogue),
    _page("GET", "/public/{slug}", PUBLIC, pages.public_page),
    _page("GET", "/public/{slug}/files/{name:path}", PUBLIC, pages.public_file),
    _api("GET", "", api.index, PUBLIC),
    _api("GET", "/openapi.json", api.openapi, PUBLIC),
    _api("GET", "/published", api.published, PUBLIC),
    _api("GET", "/tables", api.tables),
    _api("GET", "/tables/{table}", api.table),
    _api("GET", "/tables/{table}/spent", api.spent),
    _api("GET", "/tables/{table}/left", api.left),
    _api("GET", "/tables/{table}/releases", api.releases),
    _api("GET", "/tables/{table}/ledger", api.ledger, READS_LEDGER),
    _api("POST", "/tables/{table}/preview", api.preview, ASKS, "read"),
    _api("POST", "/tables/{table}/release", api.release, ASKS, "ask"),
    _api("POST", "/tables/{table}/request", api.request, ASKS, "ask"),
    _api("GET", "/jobs/{job}", api.status),
    _api("POST", "/jobs/{job}/cancel", api.cancel, ASKS, "ask"),
    _api("GET", "/jobs/{job}/answer", api.answer),
    _api("GET", "/jobs/{job}/certificate", api.certificate),
)


def _endpoint(desk: Desk, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await answer(desk, route, request)

    return endpoint


def make_app(settings: Settings, *, workers: bool = True) -> Starlette:
    """The application of one server."""
    desk = Desk(settings)
    nothing = Route(method="GET", path="/", roles=PUBLIC, call=_nothing, name="nothing")
    unknown = Route(method="GET", path="/api/v1", roles=PUBLIC, call=_nothing, name="unknown", api=True)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        if workers:
            desk.workers.start()
            desk.pool.warm()
        try:
            yield
        finally:
            desk.close()

    async def missing(request: Request, _: Exception) -> Response:
        return await answer(desk, unknown if request.url.path.startswith("/api/") else nothing, request)

    routes = [
        Path_(r.path, _endpoint(desk, r), methods=[r.method], name=f"{r.method} {r.name}") for r in ROUTES
    ]
    app = Starlette(routes=routes, lifespan=life, exception_handlers={404: missing, 405: missing})
    # A redirect to the path without its slash would be made before the host is checked, and with the host as given.
    app.router.redirect_slashes = False
    app.state.desk = desk
    return app


def _nothing(call: WebCall) -> Response:
    raise NotFound
