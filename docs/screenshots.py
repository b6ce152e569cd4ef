"""The pictures of pages in docs/: starts the demo in a folder of its own, and photographs what its people see.

`make screenshots` runs it. It needs Chromium, and takes about two minutes. Names, times and digests differ from run to
run: commit new pictures when a page has changed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import playwright.sync_api as pw

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "reviewing" / "pictures"
START_SECONDS = 300
SIZE: pw.ViewportSize = {"width": 1100, "height": 760}
# What is photographed alone must neither scroll below the bar that stays in sight nor be cut.
WHOLE: pw.ViewportSize = {"width": 1100, "height": 4000}


@dataclass(frozen=True, slots=True)
class Demo:
    url: str
    password: str


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running_demo(Path(folder)) as demo, pw.sync_playwright() as driver:
        chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, locale="en-GB", timezone_id="UTC").new_page()
        sign_in(page, demo, "ada")
        photograph(page, demo)
        browser.close()


def photograph(page: pw.Page, demo: Demo) -> None:
    keep(page, PICTURES / "inbox.png")
    open_request(page, demo, "harbour")
    keep(page, DOCS / "request.png")
    page.set_viewport_size(WHOLE)
    page.locator("section", has=page.locator("#decision")).last.screenshot(path=PICTURES / "decision.png")
    page.get_by_role("navigation", name="Request").get_by_role("link", name="Findings").click()
    finding = page.locator("details.finding", has_text="no longer validate").first
    finding.locator("summary").first.click()
    finding.screenshot(path=PICTURES / "finding.png")
    page.set_viewport_size(SIZE)
    page.goto(f"{demo.url}/deployments/demo/harbour")
    keep(page, PICTURES / "deployment.png")


def keep(page: pw.Page, file: Path) -> None:
    page.wait_for_load_state("networkidle")
    page.screenshot(path=file)


def open_request(page: pw.Page, demo: Demo, deployment: str) -> None:
    page.goto(f"{demo.url}/")
    page.get_by_role("link", name=deployment, exact=True).click()
    page.wait_for_load_state("networkidle")


def sign_in(page: pw.Page, demo: Demo, person: str) -> None:
    page.goto(f"{demo.url}/sign-in")
    page.get_by_label("Username").fill(person)
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in with the password").click()
    page.wait_for_url(f"{demo.url}/")


@contextmanager
def running_demo(folder: Path) -> Iterator[Demo]:
    """Raises TimeoutError where it is not ready in time."""
    log = folder / "demo.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "approvals.project.manage", "demo"],
            cwd=folder,
            env={**os.environ, "PORT": str(port), "KUBECONFIG": "", "CLUSTER": ""},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Demo(f"http://127.0.0.1:{port}", _password(log, process))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _password(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        said = log.read_text("utf-8")
        if "Ready:" in said and (found := re.search(r"the password (\S+)", said)):
            return found[1]
        time.sleep(0.5)
    raise TimeoutError(f"the demo did not start:\n{log.read_text('utf-8')}")


if __name__ == "__main__":
    main()
