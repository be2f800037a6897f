"""`tacit.connect`: a curator from afar. The same verbs, tables and reprs, over HTTP with a token.

    survey = tacit.connect("https://desk.example.org", token="tacit_...", table="survey")
    survey.preview(tacit.mean("income", by="region"), epsilon=0.1)
    answer = survey.release(tacit.mean("income", by="region"), epsilon=0.1)
    answer.table

It needs no package of the server. A question is sent as the words of a plan's [[release]]. Data, schema, unit,
version and budget are the custodian's, and cannot be sent.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import field
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from tacit import errors
from tacit.errors import InvalidParameter, LedgerError, NotReachable, TacitError
from tacit.exact.data_classes import dataclass

if TYPE_CHECKING:
    import pandas as pd

    from tacit.guarantees import Guarantee

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 64 << 20
PAID = ("epsilon", "delta", "rho", "mu")


def connect(url: str, *, token: str, table: str = "", wait_seconds: float = 600.0) -> RemoteCurator:
    """A curator on a server. `table` is its name there, and may be omitted for a token of one table."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise InvalidParameter(
            parameter="url", value="a text", must="be an address such as https://desk.example.org"
        )
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise InvalidParameter(
            parameter="url", value=parts.hostname, must="begin with https://",
            hint="anybody can read a token that travels unencrypted",
        )  # fmt: skip
    if (
        not isinstance(token, str)
        or not token.startswith("tacit_")
        or not token.isascii()
        or not token.isprintable()
    ):
        raise InvalidParameter(
            parameter="token", value="a text", must="be a token of the page Account; it begins with tacit_"
        )
    service = _Service(url.rstrip("/"), token, wait_seconds)
    known = {str(t["name"]): t for t in service.get("/tables")["tables"]}
    if not table:
        if len(known) != 1:
            listed = ", ".join(sorted(known)) or "none"
            raise InvalidParameter(
                parameter="table", value=None, must="be named", hint=f"the token sees {listed}"
            )
        table = next(iter(known))
    if table not in known:
        raise errors.UnknownName(what="table on the server", name=table, known=known)
    return RemoteCurator(service, known[table])


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Service:
    """The server's `/api/v1`."""

    def __init__(self, url: str, token: str, wait_seconds: float) -> None:
        self.url, self._token, self.wait = url, token, wait_seconds
        # Nothing that the environment names comes between: a proxy would see the token.
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))

    def __repr__(self) -> str:
        return f"the server at {self.url}"

    def get(self, path: str) -> Any:
        return self._call("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("POST", path, json.dumps(body, allow_nan=False).encode())

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data=body, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
        status, text = 0, b""
        try:
            with self._opener.open(request, timeout=120) as response:
                text = response.read(MOST_BYTES)
                status = response.status
        except urllib.error.HTTPError as problem:
            status, text = problem.code, problem.read(MOST_BYTES)
        except (OSError, HTTPException):
            status = 0
        if not status:
            raise LedgerError(
                ledger=self.url, reason="cannot be reached", hint="nothing is known to be charged; ask again with the "
                "same question, which is free if it was answered",
            )  # fmt: skip
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        if 200 <= status < 300 and said is not None:
            return said
        raise _error(said if isinstance(said, dict) else {}, status)


def _error(said: Mapping[str, Any], status: int) -> TacitError:
    """The error of the server as one of ours, so that `except tacit.BudgetExceeded` works from afar."""
    name = str(said.get("error", ""))
    kind = getattr(errors, name, None) if name in errors.__all__ else None
    made = TacitError.__new__(kind if isinstance(kind, type) and issubclass(kind, TacitError) else TacitError)
    message = str(said.get("message") or f"the server answered with status {status}")
    TacitError.__init__(made, message, hint=str(said.get("hint", "")))
    if said.get("charged") is True:
        made.mark_charged()
    return made


# --- what is asked -----------------------------------------------------------------------------------------
def words_of(asked: Any) -> dict[str, Any]:
    """A statistic or query as the words of a [[release]]; refuses it if these words describe another one."""
    from tacit.curator.plan_files import asks_in
    from tacit.curator.request import Query
    from tacit.statistics import Statistic

    if isinstance(asked, Mapping):
        return dict(asked)
    if not isinstance(asked, Statistic | Query):
        raise InvalidParameter(
            parameter="asked",
            value=type(asked).__name__,
            must="be a statistic, a query, or the words of a release",
        )
    query = asked if isinstance(asked, Query) else None
    statistic: Any = asked.statistic if isinstance(asked, Query) else asked
    found = _statistic(statistic.to_dict())
    if getattr(statistic, "interval", True) is False:
        found["interval"] = False
    if query is not None:
        if query.public is not None or query.given is not None:
            raise InvalidParameter(
                parameter="asked", value=query.name or "a query", must="not state assumptions about the data",
                hint="that is declared by the custodian",
            )  # fmt: skip
        plain = {
            "name": query.name,
            "consistent": query.consistent,
            "sampling": query.sampling,
            "agree": query.agree,
            "noise": query.noise,
            "rows": query.rows,
        }
        found |= {k: v for k, v in plain.items() if v}
        for word, value, usual in (("weight", query.weight, 1), ("target", query.target, None)):
            if value != usual and value is not None:
                found[word] = float(value)
        if float(query.confidence) != 0.95:
            found["interval"] = float(query.confidence)
        if query.price is not None:
            own = {
                w: getattr(query.price, w) for w in (*PAID, "within") if getattr(query.price, w) is not None
            }
            found |= {w: float(v) for w, v in own.items()}
            if query.price.within is not None:
                found["confidence"] = float(query.price.confidence)
                found |= {"simultaneous": True} if query.price.simultaneous else {}
    again = asks_in([found])[0]
    if again.statistic != statistic:
        raise NotReachable(
            what="these words of a plan for the statistic", hint="send the words of a [[release]] yourself"
        )
    return found


def _statistic(said: Mapping[str, Any]) -> dict[str, Any]:
    from tacit.curator.plan_files import KINDS

    words: dict[str, Any] = {k: _bins(v) for k, v in said.items() if v not in (None, [], ())}
    kind, over = str(words["kind"]), words.pop("over", [])
    if kind == "variance" and words.pop("root", False):
        words["kind"] = "standard_deviation"
    if kind == "ranges" and "edges" in words:
        words["bins"] = words.pop("edges")
    if kind == "count" and over:
        words.pop("of", None)
        by = words.pop("by")
        if len(over) == len(by):
            words |= {"kind": "contingency", "columns": by}
        else:
            last = by[-1]
            words |= {"kind": "histogram", "column": last["column"], "bins": last["bins"]}
            words |= {"by": by[:-1]} if by[:-1] else {}
        if len(by) == 1 and isinstance(by[0], dict):
            words = {k: v for k, v in words.items() if k != "columns"}
            words |= {"kind": "histogram", "column": by[0]["column"], "bins": by[0]["bins"]}
    takes = inspect.signature(KINDS[str(words["kind"])]).parameters
    return {"kind": words["kind"], **{k: v for k, v in words.items() if k in takes}}


def _bins(value: Any) -> Any:
    if isinstance(value, list):
        return [
            {"column": v["column"], "bins": v["edges"]} if isinstance(v, Mapping) and "edges" in v else v
            for v in value
        ]
    return value


# --- the curator -------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePlan:
    """A price and expected errors; no value."""

    said: Mapping[str, Any] = field(repr=False)
    sent: Mapping[str, Any] = field(repr=False)
    single: bool = False

    @property
    def digest(self) -> str:
        """The digest of the request."""
        return str(self.said["digest"])

    @property
    def charge(self) -> Guarantee:
        """What it costs."""
        from tacit.guarantees.guarantee import from_record

        return from_record(self.said["charge"])

    @property
    def releases(self) -> list[dict[str, Any]]:
        """Each release: cells, guarantee, mechanism, error, lower bound."""
        return list(self.said["releases"])

    def __str__(self) -> str:
        return str(self.said["text"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(self.said["html"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRelease:
    """The release: `table` has the keys, value, low and high of every cell."""

    said: Mapping[str, Any] = field(repr=False)
    replayed: bool
    corrections: tuple[str, ...] = ()
    made_up: bool = False

    @property
    def name(self) -> str:
        """The release's name."""
        return str(self.said["name"])

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The cells as columns."""
        return {k: list(v) for k, v in self.said["columns"].items()}

    @property
    def table(self) -> pd.DataFrame:
        """The cells as a pandas DataFrame; its `attrs` say if it was withdrawn or replaced."""
        import pandas as pd

        made = pd.DataFrame(self.columns)
        if self.corrections:
            made.attrs["corrections"] = "; ".join(self.corrections)
        return made

    @property
    def value(self) -> float:
        """The single value of a release with one cell."""
        return self._only("value")

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of a release with one cell."""
        return self._only("low"), self._only("high")

    def _only(self, name: str) -> float:
        values = self.said["columns"][name]
        if len(values) != 1:
            raise InvalidParameter(
                parameter="release",
                value=f"{len(values)} cells",
                must="have one cell",
                hint="read .table instead",
            )
        return math.nan if values[0] is None else float(values[0])

    @property
    def quality(self) -> list[str]:
        """For each cell "good", "use with care", "too noisy to use", "no value" or "no interval"."""
        return list(self.said["quality"])

    @property
    def guarantee(self) -> Guarantee:
        """The privacy loss of this release, and the protected unit."""
        from tacit.guarantees.guarantee import from_record

        return from_record(self.said["guarantee"])

    @property
    def certificate(self) -> dict[str, Any]:
        """Mechanisms, privacy loss and assumptions of a release."""
        return dict(self.said["certificate"])

    def __str__(self) -> str:
        return str(self.said["text"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(self.said["html"])


class RemoteCurator:
    """A table on a server."""

    def __init__(self, service: _Service, said: Mapping[str, Any]) -> None:
        self._service, self._said = service, dict(said)
        self._path = f"/tables/{quote(str(said['name']), safe='')}"

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self._said["name"])

    @property
    def declared(self) -> dict[str, Any]:
        """The custodian's declarations: unit, schema, version, budget."""
        return dict(self._said)

    @property
    def spent(self) -> dict[str, float]:
        """The amount of the budget that everybody spent."""
        return dict(self._service.get(f"{self._path}/spent")["spent"])

    @property
    def remaining(self) -> dict[str, float]:
        """The amount left for the token's owner."""
        return dict(self._service.get(f"{self._path}/left")["left"])

    def releases(self) -> list[dict[str, Any]]:
        """Jobs so far, newest first."""
        return list(self._service.get(f"{self._path}/releases")["releases"])

    def _sent(self, asked: Any, paid: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        if isinstance(asked, RemotePlan):
            if any(v is not None for v in paid.values()):
                raise InvalidParameter(
                    parameter="plan", value="a price", must="be alone: it has its own price"
                )
            return dict(asked.sent), asked.single
        many = isinstance(asked, Sequence) and not isinstance(asked, str | Mapping)
        questions = [words_of(a) for a in (asked if many else [asked])]
        spend = {word: float(paid[word]) for word in PAID if paid.get(word) is not None}
        if paid.get("within") is not None:
            own = {"within": float(paid["within"]), "confidence": float(paid.get("confidence") or 0.95)}
            questions = [
                {**q, **own, **({"simultaneous": True} if paid.get("simultaneous") else {})}
                for q in questions
            ]
        return {"releases": questions, **({"spend": spend} if spend else {})}, not many

    def preview(self, asked: Any, **paid: Any) -> RemotePlan:
        """Price and expected error; reads no row and spends nothing. The price is stated as for a Curator."""
        sent, single = self._sent(asked, _price(paid))
        return RemotePlan(said=self._service.post(f"{self._path}/preview", sent), sent=sent, single=single)

    def fit(self, plan: RemotePlan) -> dict[str, Any]:
        """The amount left at this moment, and whether the plan fits."""
        return dict(self._service.post(f"{self._path}/preview", plan.sent)["fit"])

    def request(self, plan: RemotePlan, *, note: str = "") -> int:
        """Ask for an approval of exactly this plan; the number of the request."""
        return int(self._service.post(f"{self._path}/request", {**plan.sent, "note": note})["request"])

    def release(self, asked: Any, *, rehearsal: bool = False, **paid: Any) -> Any:
        """Pays, waits, and returns the answer: one release for one statistic, a tuple of them for a list."""
        sent, single = self._sent(asked, _price(paid))
        # One number for this call: a request that was sent twice is one job.
        body = {**sent, "key": os.urandom(12).hex(), **({"rehearsal": True} if rehearsal else {})}
        job = self._service.post(f"{self._path}/release", body)
        found = self.answer(str(job["job"]))
        return found[0] if single else found

    def answer(self, job: str) -> tuple[RemoteRelease, ...]:
        """The answer of a job, once it is there."""
        until, pause = time.monotonic() + self._service.wait, 0.1
        path = f"/jobs/{quote(job, safe='')}"
        while True:
            said = self._service.get(path)
            if said["state"] not in ("queued", "running"):
                break
            if time.monotonic() > until:
                raise NotReachable(what="an answer in time", hint=f"it may come later: .answer({job!r})")
            time.sleep(pause)
            pause = min(1.0, pause * 1.5)
        if said["state"] != "done":
            kind = "ReadFailed" if said["charged"] else "Refused"
            told = {"error": kind, "message": said["message"] or said["words"], "charged": said["charged"]}
            raise _error(told, 409)
        answer = self._service.get(f"{path}/answer")
        return tuple(
            RemoteRelease(
                said=one, replayed=bool(answer["replayed"]), corrections=tuple(answer["corrections"]),
                made_up=bool(answer["made_up"]),
            )
            for one in answer["releases"]
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"RemoteCurator({self.name!r} on {self._service.url})"


def _price(paid: Mapping[str, Any]) -> dict[str, Any]:
    known = (*PAID, "confidence", "simultaneous", "within")
    for word in paid:
        if word not in known:
            raise errors.UnknownName(what="word of a price", name=word, known=known)
    return dict(paid)
