"""A release as bytes and back: what the ledger keeps, so that a repeated question is answered from the record.

Only noisy numbers and released keys are kept; values and intervals are made of them anew. Beside them stands what
made them (`made`): when, by which entry of the ledger, with which noise, engine and versions. A certificate of a
replayed answer is made of that, and so says what that of the first one said.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tacit.curator.treatments import Noisy
from tacit.errors import InvalidParameter

__all__ = ["decode", "encode"]

FORMAT = 2


def encode(answers: list[Noisy], made: dict[str, Any]) -> bytes:
    """A line of JSON that describes the arrays, then the arrays."""
    blobs: list[bytes] = []
    described = []
    for answer in answers:
        parts: dict[str, Any] = {}
        for name, values in answer.parts.items():
            array = np.asarray(values)
            shape = list(array.shape)
            if array.dtype == object:
                parts[name] = {"shape": shape, "numbers": [str(int(v)) for v in array.ravel()]}
                continue
            body = np.ascontiguousarray(array, dtype="<f8" if array.dtype.kind == "f" else "<i8").tobytes()
            kind = "f8" if array.dtype.kind == "f" else "i8"
            parts[name] = {"shape": shape, "type": kind, "bytes": len(body)}
            blobs.append(body)
        keys = None if answer.keys is None else [[_plain(v) for v in column] for column in answer.keys]
        described.append({"parts": parts, "keys": keys})
    head = json.dumps(
        {"format": FORMAT, "made": made, "answers": described}, separators=(",", ":"), allow_nan=False
    )
    return head.encode("ascii") + b"\n" + b"".join(blobs)


def decode(data: bytes) -> tuple[list[Noisy], dict[str, Any]]:
    """The answers that were encoded, and what made them."""
    if not isinstance(data, bytes):
        raise InvalidParameter(
            parameter="key", value="that of something else", must="be the key of a release",
            hint="what is on record under it is a part of a joint session, or a path; it has no values to give again",
        )  # fmt: skip
    head, _, body = data.partition(b"\n")
    try:
        told = json.loads(head)
    except ValueError:
        told = {}
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise InvalidParameter(
            parameter="answer", value="a recorded answer", must=f"be of format {FORMAT}",
            hint="it was written by another version of tacit; read it with that version",
        )  # fmt: skip
    start, out = 0, []
    for answer in told["answers"]:
        parts: dict[str, Any] = {}
        for name, said in answer["parts"].items():
            if "numbers" in said:
                array = np.empty(len(said["numbers"]), dtype=object)
                array[:] = [int(v) for v in said["numbers"]]
            else:
                array = np.frombuffer(
                    body, dtype="<" + said["type"], count=said["bytes"] // 8, offset=start
                ).copy()
                start += said["bytes"]
            parts[name] = array.reshape(said["shape"])
        keys = answer["keys"]
        out.append(Noisy(parts=parts, keys=None if keys is None else tuple(tuple(k) for k in keys)))
    return out, told["made"]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
