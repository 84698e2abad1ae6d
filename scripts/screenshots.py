"""Makes the pictures of the report page that the README and the docs show: python scripts/screenshots.py.

Audits the demo graph, opens its page in headless Chromium (`scripts/install_browser.sh`), and writes one small PNG for
each section below into docs/pictures. Run it again when the page has changed, with BMPAUDIT_INSTRUCTION_SET=baseline in
the environment: the last digits of the numbers depend on it, and the README shows those.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By

from bmpaudit.cli import cli

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HEIGHT = 1320, 2400
NUM_COLOURS = 64
MOST_BYTES = 150_000
PATIENCE = 60.0
# By picture: the section of the page, and how much of its height is shown.
SECTIONS = {
    "page": ("body", 960),
    "page-summary": ("#summary", 900),
    "page-exposure": ("#exposure", 700),
    "page-graph": ("#graph", 1250),
    "page-nodes": ("#nodes", 700),
}


def open_page(page: Path) -> webdriver.Chrome:
    """A browser that shows the page with all its charts."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(shutil.which("chromedriver"))))
    driver.get(page.as_uri())
    deadline = time.monotonic() + PATIENCE
    while driver.execute_script("return document.documentElement.dataset.state") != "ready":
        if time.monotonic() > deadline:
            raise TimeoutError(f"{page}: not ready after {PATIENCE:g} s")
        time.sleep(0.1)
    return driver


def small_png(picture: bytes, height: int) -> bytes:
    """A picture with few colours, cut off below."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.crop((0, 0, image.width, min(height, image.height)))
    written = io.BytesIO()
    image.quantize(NUM_COLOURS, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return written.getvalue()


def main() -> None:
    """Makes all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        cli.main(["demo", "--out", folder, "--quiet"], standalone_mode=False)
        driver = open_page(Path(folder) / "report.html")
        try:
            PICTURES.mkdir(exist_ok=True)
            for name, (selector, height) in SECTIONS.items():
                section = driver.find_element(By.CSS_SELECTOR, selector)
                driver.execute_script("arguments[0].scrollIntoView()", section)
                time.sleep(0.5)  # charts are drawn when they come into view
                content = small_png(section.screenshot_as_png, height)
                if len(content) > MOST_BYTES:
                    raise ValueError(f"{name}.png must have at most {MOST_BYTES:,} bytes, got {len(content):,}")
                (PICTURES / f"{name}.png").write_bytes(content)
                print(f"{name}.png: {len(content):,} bytes")
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
