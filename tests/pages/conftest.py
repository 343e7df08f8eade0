"""A browser for tests of the page: Debian's chromium, driven by selenium."""

from __future__ import annotations

import base64
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

CHOSEN = """
const tab = [...document.querySelectorAll("[role=tab]")].find(
  each => each.getAttribute("aria-controls") === arguments[0]);
return !tab || tab.getAttribute("aria-selected") === "true";
"""
"""Whether the tab of a part is chosen, or there is none."""


class Browser:
    """A page in a browser, and what a reader does with it."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, path, part=""):
        """Open a file; if it has a tab for the part, until the page's script has chosen it."""
        self.driver.get("about:blank")
        self.driver.get(f"{path.as_uri()}#{part}")
        self.until(CHOSEN, part)

    def js(self, script, *given):
        return self.driver.execute_script(script, *given)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector):
        """Texts of what can be seen."""
        return [x.text for x in self.all(selector) if x.is_displayed()]

    def until(self, script, *given):
        """Wait until a script's value is true."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 15, poll_frequency=0.05).until(lambda _: self.js(script, *given))

    def emulate(self, *, width=1280, dark=False, media=""):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        given = {"media": media, "features": features}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", given)

    def pdf(self):
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {})
        return base64.b64decode(printed["data"])

    def errors(self):
        """Messages on the console, and requests that went anywhere but to the file itself."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        asked = self.js("return performance.getEntriesByType('resource').map(x => x.name)")
        return said + asked


@pytest.fixture(scope="module")
def browser():
    """A browser; where none is installed, the tests that ask for it are skipped."""
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    running = webdriver.Chrome(options=options, service=service)
    try:
        yield Browser(running)
    finally:
        running.quit()
