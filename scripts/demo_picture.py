"""Make docs/images/demo.png: the live page of ``grotta demo`` after some minutes, in a headless Chromium.

``python scripts/demo_picture.py`` needs selenium, chromium and chromium-driver; ``--width 390`` shows it on a phone.
"""

import argparse
import io
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.png"


def free_port() -> int:
    """A port of loopback that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def open_browser(width: int, height: int) -> webdriver.Chrome:
    """A browser whose page has this size."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    if width < 500:  # a window is never narrower than that
        metrics = {"width": width, "height": height, "pixelRatio": 2}
        options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def main() -> None:
    """Run the demo, and take its picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--after", type=float, default=240, help="seconds of the demo before the picture is taken")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=860)
    parser.add_argument("--camera", default="north gate")
    parser.add_argument("--out", type=Path, default=PICTURE)
    given = parser.parse_args()
    port = free_port()
    demo = subprocess.Popen([sys.executable, "-m", "grotta", "demo", "--no-open", "--port", str(port)])
    try:
        time.sleep(given.after)
        browser = open_browser(given.width, given.height)
        try:
            browser.get(f"http://127.0.0.1:{port}/")
            time.sleep(3)
            rows = browser.find_elements(By.CSS_SELECTOR, ".stream")
            next(row for row in rows if given.camera in row.text).send_keys(Keys.ENTER)
            time.sleep(3)
            shown = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
            shown.quantize(256, dither=Image.Dither.NONE).save(given.out, optimize=True)
            print(f"{given.out}; messages of the browser: {browser.get_log('browser')}")
        finally:
            browser.quit()
    finally:
        demo.terminate()
        demo.wait()


if __name__ == "__main__":
    main()
