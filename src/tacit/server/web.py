"""One request: the caller, the input, the rights, and the headers of every response.

Every route is a row of one table (`Route`): path, method, permitted callers, and the function. The function
gets a `WebCall` and runs in a thread. Before it runs, in this order: the host is checked, the size, the rate,
the session or the token, the role, the CSRF token. A response has a strict content security policy; pages with
anything private are never stored.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response

from tacit.errors import InvalidParameter, TacitError
from tacit.exact.data_classes import dataclass
from tacit.server.accounts import CROWDED, SLOW, Member, WebSession, same
from tacit.server.pool import RemoteProblem
from tacit.server.store import new_secret

if TYPE_CHECKING:
    from tacit.server.desk import Desk

COOKIE, BEFORE = "tacit-session", "tacit-form"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
"""For reports, which carry their own style sheet and no script."""
PRIVATE = "no-store"
REVALIDATED = "no-cache"
ANY = ("analyst", "approver", "auditor", "custodian")
PUBLIC = ("public",)
MOST_FIELDS = 3_000


class NotFound(Exception):
    """The page does not exist, or this person may not see it; the response is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row of the table of routes. `roles` may call it; "public" means everybody."""

    method: str
    path: str
    roles: tuple[str, ...]
    call: Callable[[WebCall], Any]
    name: str
    api: bool = False
    scope: str = "read"
    stream: bool = False
    summary: str = ""


@dataclass(slots=True, kw_only=True)
class WebCall:
    """A request that may be answered."""

    desk: Desk
    request: Request
    route: Route
    session: WebSession | None
    path: Mapping[str, str]
    query: Mapping[str, str]
    fields: Sequence[tuple[str, str]] = ()
    body: Any = None
    cookies: dict[str, str | None] = field(default_factory=dict)
    """Cookies to set with the response; None removes one."""

    @property
    def person(self) -> Member:
        """Who calls. A route without a role asks for none."""
        if self.session is None:
            raise NotFound
        return self.session.person

    @property
    def address(self) -> str:
        """The address from which the request came."""
        return self.desk.address_of(self.request)

    def field(self, name: str, default: str = "") -> str:
        """One field of a form."""
        return next((v for n, v in self.fields if n == name), default)

    def all_fields(self, name: str) -> list[str]:
        """All values of a field."""
        return [v for n, v in self.fields if n == name]

    # --- responses -----------------------------------------------------------------------------------
    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """An HTML page."""
        from tacit.server.views import context

        text = self.desk.templates.get_template(template).render(**context(self), **values)
        return HTMLResponse(text, status_code=status)

    def to(self, path: str, notice: str = "") -> Response:
        """Goes to another page, with a sentence to show there once."""
        if notice:
            self.cookies["tacit-notice"] = quote(notice[:300])
        return RedirectResponse(path, status_code=303)


def json_reply(data: Any, status: int = 200) -> Response:
    """JSON with numbers at full precision."""
    return JSONResponse(data, status_code=status)


# --- errors ---------------------------------------------------------------------------------------------
def status_of(error: TacitError) -> int:
    """The HTTP status of an error of ours."""
    kinds = (
        error.kinds if isinstance(error, RemoteProblem) else tuple(c.__name__ for c in type(error).__mro__)
    )
    if "NotAllowed" in kinds:
        return 429 if any(word in error.message for word in (SLOW, CROWDED)) else 403
    if "LedgerError" in kinds:
        return 503
    if "Refused" in kinds:
        return 409
    if "InvalidInput" in kinds:
        return 422
    return 500


def kind_of(error: TacitError) -> str:
    """The name of its class in `tacit.errors`."""
    return error.kind if isinstance(error, RemoteProblem) else type(error).__name__


def error_json(error: TacitError, desk: Desk) -> dict[str, Any]:
    """An error for programs."""
    return {
        "error": kind_of(error), "message": desk.unplaced(error.message), "hint": desk.unplaced(error.hint),
        "exit_code": error.exit_code, "charged": error.after_charge,
    }  # fmt: skip


TITLES = {
    400: "This request cannot be read",
    403: "You may not do this",
    404: "There is nothing here",
    409: "Refused",
    413: "This is too large",
    422: "Something is not right yet",
    429: "Please wait a moment",
    500: "Something went wrong",
    503: "The desk cannot be reached at this moment",
}


def failure(
    call: WebCall | None, desk: Desk, api: bool, status: int, error: str, message: str, hint: str
) -> Response:
    """An error as a page or as JSON."""
    if api:
        said = {"error": error, "message": message, "hint": hint, "exit_code": 2, "charged": False}
        return JSONResponse(said, status_code=status)
    title = TITLES.get(status, TITLES[500])
    if call is None:
        return PlainTextResponse(f"{title}. {message}. {hint}\n", status_code=status)
    return call.page("error.html", status=status, title=title, message=message, hint=hint)


# --- the door -------------------------------------------------------------------------------------------
class Rates:
    """Requests of one caller in the last minute, in this process."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._minute, self._counts = 0, dict[str, int]()

    def allows(self, who: str) -> bool:
        """Counts one attempt; returns whether it is within the limit."""
        minute = int(time.monotonic() // 60)
        with self._lock:
            if minute != self._minute:
                self._minute, self._counts = minute, {}
            if len(self._counts) > 100_000:
                return False
            self._counts[who] = self._counts.get(who, 0) + 1
            return self._counts[who] <= self._most


async def _body(request: Request, most: int) -> bytes | None:
    """The body, or None if it is too large."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > most:
        return None
    found = b""
    async for part in request.stream():
        found += part
        if len(found) > most:
            return None
    return found


def _fields(body: bytes) -> list[tuple[str, str]]:
    try:
        found = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise InvalidParameter(parameter="form", value="a body", must="be a form in UTF-8") from None
    if any("\0" in text for field in found for text in field):
        raise InvalidParameter(parameter="form", value="a text", must="have no character of the code 0")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant) if body else {}
    except (ValueError, RecursionError):
        raise InvalidParameter(parameter="body", value="a text", must="be JSON in UTF-8") from None


def _cookies(request: Request) -> dict[str, str]:
    # Not with `http.cookies`: it stops at an odd cookie of another program of this host, and loses those behind it.
    return dict(request.cookies)


def host_of(request: Request) -> str:
    """The host's name in a request, without a port."""
    given = request.headers.get("host", "")
    try:
        return (urlsplit(f"//{given}").hostname or "").lower()
    except ValueError:
        return ""


def same_site(request: Request, desk: Desk) -> bool:
    """Whether a request that changes something comes from a page of this server, according to the browser."""
    site = request.headers.get("sec-fetch-site", "")
    if site and site not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin", "")
    if origin in ("", "null"):
        return origin == ""
    return (urlsplit(origin).hostname or "").lower() in desk.settings.hosts


async def answer(desk: Desk, route: Route, request: Request) -> Response:
    """The response to a request for this route, in every case."""
    call: WebCall | None = None
    try:
        if host_of(request) not in desk.settings.hosts:
            return _dressed(
                desk, failure(None, desk, route.api, 400, "InvalidInput", "unknown host", ""), route, None
            )
        body = await _body(request, desk.settings.limits.body_bytes)
        if body is None:
            hint = f"send at most {desk.settings.limits.body_bytes} bytes"
            return _dressed(
                desk,
                failure(None, desk, route.api, 413, "InvalidInput", "the request is too large", hint),
                route,
                None,
            )
        call = WebCall(
            desk=desk, request=request, route=route, session=None, path=dict(request.path_params),
            query=dict(request.query_params),
        )  # fmt: skip
        response = await run_in_threadpool(_answer, call, body)
    except Exception:
        # Words of others may hold anything: one fixed sentence, and nothing in a log.
        desk.note_failure(route.name)
        told = (
            "the server could not do this",
            "nothing was charged by this page; try again, or ask who runs the server",
        )
        response = failure(call, desk, route.api, 500, "InternalError", *told)
    return _dressed(desk, response, route, call)


def _answer(call: WebCall, body: bytes) -> Response:
    desk, route, request = call.desk, call.route, call.request
    try:
        cookies = {} if route.api else _cookies(request)
        if route.api:
            given = request.headers.get("authorization", "")
            token = given[7:].strip() if given[:7].lower() == "bearer " else ""
            call.session = desk.accounts.token(token, call.address) if token else None
        else:
            call.session = desk.accounts.session(cookies.get(COOKIE, ""))
        who = call.session.person.name if call.session else call.address
        if not desk.rates.allows(who):
            return failure(call, desk, route.api, 429, "NotAllowed", "too many requests", "wait a minute")
        if (refused := _refused(call, cookies)) is not None:
            return refused
        if call.session is not None and not route.api:
            desk.accounts.seen(call.session)
        # PostgreSQL takes no such character: it would say that it cannot be reached.
        if any("\0" in text for text in (*map(str, call.path.values()), *call.query.values())):
            raise NotFound
        if route.method == "POST":
            if route.api:
                call.body = _json(body)
            else:
                call.fields = _fields(body)
                if (refused := _forged(call, cookies)) is not None:
                    return refused
        response = route.call(call)
        return response if isinstance(response, Response) else json_reply(response)
    except NotFound:
        if call.session is not None and "{" in route.path and "public" not in route.roles:
            # What is not there and what is not for them look alike, here too.
            about = f"{route.method} {quote(str(request.scope['path']))}"
            desk.store.audit(call.session.person.name, "refused: nothing there for them", about, call.address)
        return failure(
            call,
            desk,
            route.api,
            404,
            "NotFound",
            "there is nothing here, or you may not see it",
            "see /api/v1/openapi.json" if route.api else "go back, or begin at the start",
        )
    except TacitError as error:
        status = status_of(error)
        if status == 403:
            who = call.session.person.name if call.session else ""
            desk.store.audit(who, "refused", f"{route.method} {route.path}", call.address)
        if route.api:
            return JSONResponse(error_json(error, desk), status_code=status)
        return call.page(
            "error.html",
            status=status,
            title=TITLES.get(status, TITLES[500]),
            message=desk.unplaced(error.message),
            hint=desk.unplaced(error.hint),
        )


def _refused(call: WebCall, cookies: Mapping[str, str]) -> Response | None:
    """The refusal for callers without the right to this route, without a reason."""
    route, session, desk = call.route, call.session, call.desk
    if "public" in route.roles:
        return None
    if session is None:
        if route.api:
            told = "NotAllowed", "a valid token is needed", "Authorization: Bearer tacit_..."
            response = failure(call, desk, True, 401, *told)
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if call.request.method == "GET":
            call.cookies[COOKIE] = None if COOKIE in cookies else call.cookies.get(COOKIE)
            after = "" if call.request.url.path == "/" else f"?next={quote(call.request.url.path)}"
            return RedirectResponse(f"/sign-in{after}", status_code=303)
        told = "NotAllowed", "you are signed out", "sign in, and do it again; nothing was sent"
        return failure(call, desk, False, 403, *told)
    if route.api and route.scope not in session.scopes:
        about = f"{route.method} {route.path}"
        desk.store.audit(session.person.name, "refused: scope of the token", about, call.address)
        return failure(
            call, desk, True, 403, "NotAllowed", f"the token does not have the scope {route.scope!r}", ""
        )
    if not session.person.is_(*route.roles):
        desk.store.audit(session.person.name, "refused", f"{route.method} {route.path}", call.address)
        hint = f"it takes the role of {' or '.join(route.roles)}"
        return failure(call, desk, route.api, 403, "NotAllowed", "you do not have the role for this", hint)
    return None


def _forged(call: WebCall, cookies: Mapping[str, str]) -> Response | None:
    """A form that did not come from a page of ours, or from an old session."""
    given = call.field("csrf")
    wanted = call.session.csrf if call.session is not None else cookies.get(BEFORE, "")
    if not wanted or not same(given, wanted) or not same_site(call.request, call.desk):
        if call.session is not None:
            about = f"{call.route.method} {call.route.path}"
            call.desk.store.audit(
                call.session.person.name, "refused: not a form of ours", about, call.address
            )
        hint = "open the page again and send the form once more; nothing was done"
        return failure(
            call,
            call.desk,
            False,
            403,
            "NotAllowed",
            "this form is too old, or comes from another page",
            hint,
        )
    return None


def _dressed(desk: Desk, response: Response, route: Route, call: WebCall | None) -> Response:
    """The headers of every response."""
    head = response.headers
    head.setdefault("Content-Security-Policy", POLICY)
    head["X-Content-Type-Options"] = "nosniff"
    head["Referrer-Policy"] = "same-origin"
    head["Cross-Origin-Opener-Policy"] = "same-origin"
    head["Cross-Origin-Resource-Policy"] = "same-origin"
    head["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
    head.setdefault("Cache-Control", PRIVATE)
    if desk.settings.secure:
        head["Strict-Transport-Security"] = "max-age=31536000"
    if call is not None and not route.api:
        for name, value in call.cookies.items():
            about: dict[str, Any] = {
                "httponly": True,
                "samesite": "lax",
                "secure": desk.settings.secure,
                "path": "/",
            }
            if value is None:
                response.delete_cookie(name, **about)
            else:
                response.set_cookie(name, value, **about)
    return response


def form_token(call: WebCall) -> str:
    """The CSRF token for the forms of a page: of the session, or of a cookie for callers without a session."""
    if call.session is not None:
        return call.session.csrf
    if BEFORE not in call.cookies:
        call.cookies[BEFORE] = _cookies(call.request).get(BEFORE) or new_secret()
    return call.cookies[BEFORE] or ""
