"""Over localhost with TLS: holders in processes of their own, the right certificate and no other."""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from support.parties import room
from tacit.errors import BadMessage, InvalidParameter, JointRefused
from tacit.parties.aggregator import make_certificate, serve, take_part

HOLDER = textwrap.dedent(
    """
    import sys
    sys.path.insert(0, {tests!r})
    from support.parties import room
    from tacit.parties.aggregator import take_part
    from pathlib import Path
    at = room(3, 2, 0)
    take_part(at.kept({index}, Path({home!r})), address=("127.0.0.1", {port}), certificate=Path({certificate!r}))
    assert at.charges == {{{index}: 1}}
    """
)


@pytest.mark.slow
def test_three_processes_over_tls(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    at, tests, started = room(3, 2, 0), str(Path(__file__).parents[1]), []

    def ready(port: int) -> None:
        for i in range(3):
            code = HOLDER.format(
                tests=tests, index=i, port=port, certificate=str(certificate), home=str(tmp_path)
            )
            started.append(subprocess.Popen([sys.executable, "-c", code]))

    found = serve(at.session, certificate=certificate, key=key, ready=ready, patience=120)
    assert [p.wait(60) for p in started] == [0, 0, 0]
    assert found.remaining == (0, 1, 2)
    assert (found.values == at.truth(found.remaining)).all()


def run(tmp_path: Path, at, holders, *, patience: float = 20.0):
    """The aggregator and these holders in threads; what each ended with."""
    certificate, key = make_certificate(tmp_path)
    ports: queue.Queue[int] = queue.Queue()
    ended: dict[int, BaseException | None] = {}

    def part(i: int, port: int) -> None:
        try:
            take_part(holders[i], address=("127.0.0.1", port), certificate=certificate, patience=60)
            ended[i] = None
        except BaseException as problem:
            ended[i] = problem

    def all_parts() -> None:
        port = ports.get()
        # Somebody who speaks no TLS, and somebody who says too much, disturb nobody.
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"\xff" * 100)
        threads = [threading.Thread(target=part, args=(i, port)) for i in holders]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)

    beside = threading.Thread(target=all_parts)
    beside.start()
    try:
        return (
            serve(at.session, certificate=certificate, key=key, ready=ports.put, patience=patience),
            ended,
            beside,
        )
    except JointRefused as problem:
        return problem, ended, beside


def test_a_holder_that_never_comes_is_gone(tmp_path: Path) -> None:
    at = room(4, 3, 0)
    found, ended, beside = run(tmp_path, at, {i: at.kept(i, tmp_path) for i in range(3)}, patience=2.0)
    beside.join(60)
    assert found.remaining == (0, 1, 2)
    assert (found.values == at.truth((0, 1, 2))).all()
    assert ended == {0: None, 1: None, 2: None}


def test_too_few_is_a_refusal_on_both_sides(tmp_path: Path) -> None:
    at = room(4, 3, 0)
    found, ended, beside = run(tmp_path, at, {0: at.kept(0, tmp_path)}, patience=1.0)
    beside.join(60)
    assert isinstance(found, JointRefused)
    assert "nobody was charged" in str(found)
    assert isinstance(ended[0], JointRefused)
    assert "charged nothing" in str(ended[0])
    assert at.charges == {}


def test_another_certificate_is_not_spoken_to(tmp_path: Path) -> None:
    at = room(3, 2, 0)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    real, key = make_certificate(tmp_path / "a")
    false, _ = make_certificate(tmp_path / "b")
    met: list[BaseException] = []

    def ready(port: int) -> None:
        def call() -> None:
            try:
                take_part(at.kept(0, tmp_path), address=("127.0.0.1", port), certificate=false)
            except BaseException as problem:
                met.append(problem)

        threads.append(threading.Thread(target=call))
        threads[0].start()

    threads: list[threading.Thread] = []
    with pytest.raises(JointRefused):
        serve(at.session, certificate=real, key=key, ready=ready, patience=1.5)
    threads[0].join(30)
    assert isinstance(met[0], BadMessage)
    assert "given beforehand" in str(met[0])


def test_bad_files(tmp_path: Path) -> None:
    at = room(3, 2, 0)
    with pytest.raises(InvalidParameter, match="certificate"):
        serve(at.session, certificate=tmp_path / "no", key=tmp_path / "no")
    with pytest.raises(InvalidParameter, match="certificate"):
        take_part(at.kept(0, tmp_path), address=("127.0.0.1", 1), certificate=tmp_path / "no")
    certificate, _ = make_certificate(tmp_path)
    with pytest.raises(JointRefused, match="connection"):
        take_part(at.kept(0, tmp_path), address=("127.0.0.1", 1), certificate=certificate, patience=2)


def test_a_holder_that_would_forget_what_it_signed_is_refused(tmp_path: Path) -> None:
    """A plain holder lives in memory: its process, started again, would make new keys and sign a second list."""
    at = room(3, 2, 0)
    certificate, _ = make_certificate(tmp_path)
    with pytest.raises(InvalidParameter, match="kept in a file"):
        take_part(at.holder(0), address=("127.0.0.1", 1), certificate=certificate)  # type: ignore[arg-type]
