"""Environments for peers: one virtual environment for each requirements file, never the project's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent


def environment(requirements: str = "requirements.txt") -> Path:
    """The Python of the environment for a requirements file, made or refreshed where needed.

    requirements.txt lives in .venv-bench, requirements-NAME.txt in .venv-bench-NAME.
    """
    wanted = HERE / requirements
    suffix = wanted.stem.removeprefix("requirements")
    venv = ROOT / f".venv-bench{suffix}"
    python, stamp = venv / "bin" / "python", venv / ".installed"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        print(f"bench: setting up {venv.name} from benchmarks/{requirements}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install", "-r", str(wanted)]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        stamp.write_text(wanted.read_text())
    return python


def installed(requirements: str) -> bool:
    """Whether the environment is there already."""
    suffix = Path(requirements).stem.removeprefix("requirements")
    return (ROOT / f".venv-bench{suffix}" / ".installed").exists()


def run_peer(script: str, *arguments: str, requirements: str = "requirements.txt") -> list[dict[str, Any]]:
    """Run benchmarks/<script> in the peers' environment; each line it prints is one JSON object."""
    command = [str(environment(requirements)), str(HERE / script), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
