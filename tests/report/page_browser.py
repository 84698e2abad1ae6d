"""Chromium for the tests of pages. A missing one is a failure: `scripts/install_browser.sh`."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By


class Browser:
    """Chromium, with its console messages and requests since the page was opened."""

    def __init__(self, downloads: Path) -> None:
        self.downloads = downloads
        found = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        missing = [name for name, path in found.items() if path is None]
        assert not missing, f"{' and '.join(missing)} not found: run scripts/install_browser.sh"
        options = webdriver.ChromeOptions()
        options.binary_location = str(found["chromium"])
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver: Any = webdriver.Chrome(options, webdriver.ChromeService(str(found["chromedriver"])))
        self.driver.execute_cdp_cmd("Network.enable", {})
        conditions = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    def open(self, page: Path, fragment: str = "", width: int = 1280, needs_charts: bool = True) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")  # else a new fragment alone would not load the page again
        self.console(), self.requests()
        self.driver.get(page.as_uri() + fragment)
        states = ["ready"] if needs_charts else ["built", "ready"]
        self.wait("return arguments[0].includes(document.documentElement.dataset.state)", states)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments: Any) -> None:
        deadline = time.monotonic() + 30
        while not self.run(script, *arguments):
            assert time.monotonic() < deadline, f"still not: {script}; console: {self.console()}"
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Requested addresses; what is inside the page (`data:`, `blob:`) is not a request."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith(("data:", "blob:", "about:"))]

    def pointer(self, x: float, y: float, is_click: bool = True) -> None:
        actions = ActionChains(self.driver, duration=0)
        pointer: Any = actions.w3c_actions.pointer_action
        pointer.move_to_location(round(x), round(y))
        if is_click:
            pointer.click()
        actions.perform()

    def place_in_chart(self, chart: str, x: float, y: float) -> tuple[float, float]:
        """Where a point of a chart is on the screen, in pixels."""
        script = """
            const place = document.getElementById(arguments[0]);
            place.scrollIntoView({block: 'center', behavior: 'instant'});
            const {left, top} = place.getBoundingClientRect();
            const {xaxis, yaxis} = place._fullLayout;
            return [left + xaxis._offset + xaxis.d2p(arguments[1]), top + yaxis._offset + yaxis.d2p(arguments[2])];
        """
        across, down = self.run(script, chart, x, y)
        return across, down

    def selected(self) -> int | None:
        """Position of the node that the panel shows."""
        position: str | None = self.run("return document.getElementById('node-panel').dataset.position")
        return None if position is None else int(position)

    def wait_until_selected(self, position: int) -> None:
        self.wait("return document.getElementById('node-panel').dataset.position === String(arguments[0])", position)

    def rows(self) -> list[int]:
        """Positions of the nodes in the table's page."""
        script = (
            "return [...document.querySelectorAll('#node-table tbody tr')].map((row) => Number(row.dataset.position))"
        )
        positions: list[int] = self.run(script)
        return positions
