"""The page in a real browser: light, dark, on a phone and on paper (skipped where there is no Chromium)."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import numpy.typing as npt
import pytest

from support.views import report
from tacit.report.page import DARK, LIGHT, write_report

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: `apt-get install chromium` to see the page in a browser"
)

# Measures the page inside a frame as wide as a phone; the report itself has no script.
RULER = """<!doctype html><body style="margin:0"><iframe src="report.html" style="width:390px;height:800px;border:0">
</iframe><script>onload = () => {
  const page = document.querySelector("iframe").contentDocument;
  const small = [...page.querySelectorAll(".picture text")].map(t => parseFloat(getComputedStyle(t).fontSize));
  const wide = [...page.querySelectorAll(".picture text")].filter(t => t.getBoundingClientRect().right > 391).length;
  document.title = [page.documentElement.scrollWidth, Math.min(...small), wide, small.length].join(" ");
};</script></body>"""


def browse(folder: Path, page: str, *options: str) -> str:
    assert CHROMIUM is not None
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--allow-file-access-from-files", f"--user-data-dir={folder / 'profile'}", *options, (folder / page).as_uri(),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("Chromium did not answer within two minutes on this machine")
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page")
    write_report(report(), made / "report.html")
    return made


def pixels(folder: Path, name: str, width: int, *options: str) -> npt.NDArray[np.uint8]:
    path = folder / name
    browse(folder, "report.html", f"--window-size={width},3600", f"--screenshot={path}", *options)
    return np.round(matplotlib.image.imread(path)[..., :3] * 255).astype(np.uint8)


def share(picture: npt.NDArray[np.uint8], colour: str) -> float:
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return float(np.mean(np.all(np.abs(picture.astype(int) - wanted) <= 1, axis=-1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("palette", "option"),
    [(LIGHT, "preferredColorScheme=1"), (DARK, "preferredColorScheme=0")],
    ids=["light", "dark"],
)
def test_the_reader_gets_the_palette_that_they_prefer(
    folder: Path, palette: dict[str, str], option: str
) -> None:
    picture = pixels(folder, f"{option}.png", 1100, f"--blink-settings={option}")
    assert picture.shape == (3600, 1100, 3)
    assert share(picture, palette["card"]) > 0.3
    assert share(picture, palette["page"]) > 0.05
    assert share(picture, palette["bar"]) > 0.003
    other = DARK if palette is LIGHT else LIGHT
    assert share(picture, other["card"]) < 0.01


@pytest.mark.slow
def test_nothing_runs_off_a_phone_and_text_stays_readable(folder: Path) -> None:
    (folder / "ruler.html").write_text(RULER, encoding="utf-8")
    told = browse(folder, "ruler.html", "--window-size=420,900", "--virtual-time-budget=5000", "--dump-dom")
    found = re.search(r"<title>([\d. ]+)</title>", told)
    assert found is not None, told[:300]
    width, smallest, wide, texts = map(float, found.group(1).split())
    assert width <= 390
    assert smallest >= 11
    assert texts > 100
    assert wide == 0


@pytest.mark.slow
def test_it_prints(folder: Path) -> None:
    path = folder / "report.pdf"
    browse(folder, "report.html", "--no-pdf-header-footer", f"--print-to-pdf={path}")
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    assert sheets(data) == 1, "eleven releases as sentences"


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("by-region", "income"), ("visits", "income", "age-quantiles", "age", "weeks", "stay")]
)
def test_up_to_six_releases_print_on_one_sheet_with_their_pictures(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    whole = report()
    some = tuple(r for r in whole.releases if r.name in names)
    parts = tuple(p for p in whole.budget.parts if p.release in names)
    view = dataclasses.replace(whole, releases=some, budget=dataclasses.replace(whole.budget, parts=parts))
    write_report(view, tmp_path / "report.html")
    path = tmp_path / "report.pdf"
    browse(tmp_path, "report.html", "--no-pdf-header-footer", f"--print-to-pdf={path}")
    assert sheets(path.read_bytes()) == 1


def sheets(data: bytes) -> int:
    """How many pages a PDF has."""
    return len(re.findall(rb"/Type\s*/Page\b", data))
