"""The driver over sockets with TLS 1.3: one aggregator, and each holder in a process of its own.

The aggregator has a certificate that holders are given beforehand and compare: nothing else is trusted. Messages are
signed anyway, so that TLS hides who takes part and what fails, and stops nobody that signatures would not stop.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tacit.errors import BadMessage, InvalidParameter
from tacit.exact.checks import positive
from tacit.parties.aggregator import Aggregator, SecureSum
from tacit.parties.kept import KeptHolder, locked, write_private
from tacit.parties.messages import read
from tacit.parties.session import Session

__all__ = ["make_certificate", "serve", "take_part"]


def make_certificate(folder: Path, *, host: str = "127.0.0.1", days: int = 30) -> tuple[Path, Path]:
    """A certificate of the aggregator's own making and its private key, as PEM files."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tacit aggregator")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    paths = folder / "aggregator.pem", folder / "aggregator.key"
    write_private(paths[0], made.public_bytes(form.Encoding.PEM))
    write_private(
        paths[1],
        key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()),
    )
    return paths


def _most(session: Session) -> int:
    """What a message of this session may be long at most, by what is agreed."""
    return 8 * session.length + 4096 * session.sizes.holders + (1 << 16)


def _send(link: socket.socket, raw: bytes) -> None:
    link.sendall(len(raw).to_bytes(8, "big") + raw)


def _receive(link: socket.socket, most: int) -> bytes:
    size = int.from_bytes(_exactly(link, 8), "big")
    if size > most:
        raise BadMessage(what="a message", reason="it is longer than any of this session")
    return _exactly(link, size)


def _exactly(link: socket.socket, count: int) -> bytes:
    body = bytearray()
    while len(body) < count:
        part = link.recv(min(count - len(body), 1 << 20))
        if not part:
            raise ConnectionError("the other side is gone")
        body += part
    return bytes(body)


def serve(
    session: Session,
    *,
    certificate: Path,
    key: Path,
    host: str = "127.0.0.1",
    port: int = 0,
    patience: float = 60.0,
    ready: Callable[[int], None] | None = None,
) -> SecureSum:
    """Collect each stage until all have answered or `patience` seconds are over, then go on with who is there."""
    wait, most = positive("patience", patience), _most(session)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError):
        raise InvalidParameter(
            parameter="certificate", value=str(certificate), must="be a certificate with its key, in PEM"
        ) from None
    arrived: queue.Queue[tuple[socket.socket, bytes]] = queue.Queue()
    links: dict[int, socket.socket] = {}
    opened: list[socket.socket] = []

    def listen(link: socket.socket) -> None:
        """All that one connection sends; what is broken ends it, and nobody else."""
        with contextlib.suppress(OSError, BadMessage, ssl.SSLError):
            inside = context.wrap_socket(link, server_side=True)
            opened.append(inside)
            while True:
                arrived.put((inside, _receive(inside, most)))

    def accept(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                link, _ = server.accept()
                link.settimeout(wait * 6)
                threading.Thread(target=listen, args=(link,), daemon=True).start()

    aggregator = Aggregator(session=session)
    with socket.create_server((host, port), backlog=session.sizes.holders) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        if ready is not None:
            ready(server.getsockname()[1])
        try:
            expected = session.sizes.holders
            while True:
                until = time.monotonic() + wait
                while aggregator.arrived < expected and (left := until - time.monotonic()) > 0:
                    try:
                        link, raw = arrived.get(timeout=left)
                        message = read(raw, session=session.id, keys=list(session.keys))
                        aggregator.handle(raw)
                    except (queue.Empty, BadMessage):
                        continue
                    if message.kind == "keys":
                        links.setdefault(message.sender, link)
                sent = aggregator.advance()
                if aggregator.stage == "done":
                    return aggregator.result()
                expected = 0
                for i, raw in sent.items():
                    with contextlib.suppress(OSError):
                        _send(links[i], raw)
                        expected += 1
        finally:
            for link in opened:
                with contextlib.suppress(OSError):
                    # A thread that waits for bytes would keep a socket open that is only closed.
                    link.shutdown(socket.SHUT_RDWR)
                link.close()


def take_part(
    holder: KeptHolder, *, address: tuple[str, int], certificate: Path, patience: float = 360.0
) -> None:
    """Answer the aggregator at this address, which must have that certificate, until this holder has revealed.

    The holder's state lies in a file: a process that is started again goes on with the lists that it signed.
    """
    if not isinstance(holder, KeptHolder):
        raise InvalidParameter(
            parameter="holder", value=type(holder).__name__, must="be one whose state is kept in a file",
            hint="agreement.kept_holder(curator, state=..., ...): one that forgot what it signed could sign twice",
        )  # fmt: skip
    inner = holder.holder
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(certificate)
    except (OSError, ssl.SSLError):
        raise InvalidParameter(
            parameter="certificate", value=str(certificate), must="be the aggregator's certificate, in PEM"
        ) from None
    try:
        with (
            locked(holder.path.parent),
            socket.create_connection(address, timeout=positive("patience", patience)) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as link,
        ):
            _send(link, holder.start())
            while inner.state != "revealed":
                _send(link, holder.handle(_receive(link, _most(inner.session))))
            with contextlib.suppress(OSError):
                _exactly(
                    link, 1
                )  # until the aggregator hangs up: else it might not have read the last message
    except ssl.SSLCertVerificationError:
        raise BadMessage(
            what="the aggregator's certificate", reason="it is not the one that was given beforehand"
        ) from None
    except (OSError, ssl.SSLError):
        raise inner._refused("the connection to the aggregator is lost") from None
