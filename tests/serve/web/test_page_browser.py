"""The live page in a real Chromium on a running server with real streams: no console error, nothing too wide."""

import shutil

import numpy as np
import pytest
from benchmarks.serve.harness import pictures, serving_here

pytestmark = pytest.mark.slow


@pytest.fixture
def open_browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromium-driver")
    opened = []

    def start(width: int, height: int, scheme: str):
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},{height}"):
            options.add_argument(flag)
        if width < 500:
            metrics = {"width": width, "height": height, "pixelRatio": 2}
            options.add_experimental_option("mobileEmulation", {"deviceMetrics": metrics})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        opened.append(browser)
        return browser

    yield start
    for browser in opened:
        browser.quit()
        browser.command_executor.close()  # its connections to the driver, which quitting leaves open


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_the_page_shows_every_stream_and_complains_of_nothing(tmp_path, open_browser, width, scheme):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    names = ["north gate", "<img src=x onerror=alert(1)>", "☃" * 40]
    with serving_here(tmp_path / "state") as server:
        for seed in range(4):
            for name in names:
                server.infer(pictures(4, seed), name, wait=True)
                score = {"correct": 3, "total": 4, "reference_correct": 1, "reference_total": 4}
                server.client.post("/v2/models/m/stream/score", params={"name": name}, json=score)
        browser = open_browser(width, 900, scheme)
        browser.get(f"{server.url}/")
        wait = WebDriverWait(browser, 20)
        wait.until(lambda b: len(b.find_elements(By.CSS_SELECTOR, ".stream")) == 3)
        shown = {element.text for element in browser.find_elements(By.CSS_SELECTOR, ".stream .name")}
        assert shown == set(names)
        assert browser.execute_script("return document.documentElement.dataset.theme") == scheme
        if width == 390:
            browser.find_element(By.CSS_SELECTOR, ".stream").send_keys(Keys.ENTER)
        wait.until(lambda b: len(b.find_elements(By.CSS_SELECTOR, "#detail .chart")) >= 5)
        wait.until(lambda b: len(b.find_elements(By.CSS_SELECTOR, "#detail .frames img")) == 4)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        before = browser.find_element(By.CSS_SELECTOR, "#detail h2").text
        if width == 1280:
            browser.find_element(By.CSS_SELECTOR, "body").send_keys(Keys.ARROW_DOWN)
            wait.until(lambda b: b.find_element(By.CSS_SELECTOR, "#detail h2").text != before)
        else:
            browser.find_element(By.CSS_SELECTOR, "body").send_keys(Keys.ESCAPE)
            wait.until(lambda b: b.find_element(By.CSS_SELECTOR, "#streams").is_displayed())
        assert browser.get_log("browser") == []
        picture = np.frombuffer(browser.get_screenshot_as_png(), np.uint8)
        assert len(picture) > 10_000


def test_a_guarded_page_asks_for_the_token(tmp_path, open_browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    with serving_here(tmp_path / "state", token="correct horse battery") as server:
        server.infer(pictures(2), "camera", wait=True)
        browser = open_browser(1280, 900, "light")
        browser.get(f"{server.url}/")
        wait = WebDriverWait(browser, 20)
        wait.until(lambda b: b.find_element(By.ID, "token").is_displayed())
        assert not browser.find_elements(By.CSS_SELECTOR, ".stream")
        browser.find_element(By.ID, "token").send_keys("correct horse battery\n")
        wait.until(lambda b: len(b.find_elements(By.CSS_SELECTOR, ".stream")) == 1)
