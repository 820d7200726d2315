"""The explorer page in a real browser: load, zoom, click, query, slider, health, dark mode, keyboard, phone.

Needs Chromium and its driver, from Debian's packages chromium and chromium-driver. GARLIC_SCREENSHOTS names a folder to keep
pictures in.
"""

import contextlib
import os
import re
import shutil
import time
import warnings
from pathlib import Path

import garlic_ann as garlic
import numpy as np
import pytest
from served import served

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,820",
]


def not_tested(why):
    message = f"NOT TESTED: the explorer page in a browser: {why}"
    warnings.warn(message, stacklevel=2)
    pytest.skip(message)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="NOT TESTED: the explorer page; install selenium")
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        not_tested("install the packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def url(program, tmp_path_factory):
    """Pictures of 28 x 28 with a kind each, and a directory of a few named points."""
    folder = tmp_path_factory.mktemp("indexes")
    random = np.random.default_rng(3)
    shapes = random.uniform(0, 255, size=(6, 784)) * (random.uniform(size=(6, 784)) < 0.3)
    weights = random.gamma(1.0, size=(6000, 6)) / 3
    kind = weights.argmax(axis=1)
    pictures = np.clip(weights @ shapes + random.normal(size=(6000, 784)) * 9, 0, 255).astype(np.float32)
    columns = {"kind": [f"kind {k}" for k in kind], "markup": ["<img src=x onerror=document.title='broken'>"] * 6000}
    garlic.build(pictures, seed=1, columns=columns).save(folder / "pictures.garlic")
    names = [f"n{i}" for i in range(50)]
    garlic.Live.create(folder / "few", garlic.build(random.normal(size=(50, 5)), ids=names)).close()
    with served(program, folder / "pictures.garlic", folder / "few") as url:
        yield url


@pytest.fixture
def page(driver, url, request):
    driver.set_window_size(1280, 820)
    driver.get("about:blank")
    driver.get(f"{url}/#pictures")
    page = Page(driver)
    page.wait(lambda: int(page.one("#map").get_attribute("data-points") or 0) > 0)
    yield page
    page.keep(request.node.name)
    errors = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert not errors
    assert driver.title == "GARLIC explorer", "markup of a column is text"


class Page:
    def __init__(self, driver):
        self.driver = driver

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def text(self, selector):
        """The text that is shown, read in one step: an answer may replace the element between finding and reading it."""
        return self.script("return (document.querySelector(arguments[0])?.innerText ?? '').trim();", selector)

    def wait(self, done):
        """Waits for `done`; an element that is replaced while it is looked at counts as not yet."""
        from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException

        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(NoSuchElementException, StaleElementReferenceException):
                if done():
                    return
            assert time.monotonic() < until, self.text("#status")
            time.sleep(0.05)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def click(self, selector):
        self.one(selector).click()

    def choose(self, selector, value):
        self.script(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const kind of ['input', 'change']) e.dispatchEvent(new Event(kind, {bubbles: true}));",
            selector,
            str(value),
        )

    def keep(self, name):
        folder = os.environ.get("GARLIC_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))

    def pixels(self, selector):
        """How many colours a canvas shows, counted on a grid."""
        return self.script(
            "const c = document.querySelector(arguments[0]), x = c.getContext('2d'), seen = new Set();"
            "for (let i = 0; i < 60; i++) for (let j = 0; j < 60; j++)"
            "  seen.add(x.getImageData(c.width * i / 60, c.height * j / 60, 1, 1).data.join());"
            "return seen.size;",
            selector,
        )


def test_the_map_is_drawn_zoomed_and_selected(page):
    from selenium.webdriver import ActionChains, Keys

    assert "6,000 × 784" in page.text("#facts")
    assert int(page.one("#map").get_attribute("data-cells")) > 3
    page.wait(lambda: page.pixels("#map") > 20)
    page.choose("#colour", "kind")
    page.wait(lambda: len(page.all("#legend-kinds span")) == 6)

    shown = int(page.one("#map").get_attribute("data-points"))
    canvas = page.one("#map")
    canvas.click()
    page.wait(lambda: page.text("#details").startswith("Cell "))
    assert "bins" in page.text("#details") and len(page.all("#details .chips button")) > 3
    page.wait(lambda: page.pixels("#details canvas") > 1)
    # By keyboard: closer, and select the point in the middle.
    canvas.send_keys("+" * 6)
    page.wait(lambda: int(canvas.get_attribute("data-points")) < shown)
    page.script("document.getElementById('show-cells').click()")
    page.click("#details .chips button")
    page.wait(lambda: page.text("#details").startswith("Point "))
    neighbours = page.all("#details .neighbours tbody tr")
    assert len(neighbours) == 10 and len(page.all("#details .thumb")) == 10
    assert "<img src=x" in page.text("#details"), "columns are shown as text"
    page.keep("details")
    first = neighbours[0].find_element("css selector", "button")
    name = first.text
    first.click()
    page.wait(lambda: page.text("#details").startswith(f"Point {name}\n"))
    ActionChains(page.driver).scroll_from_origin(_origin(canvas), 0, 300).perform()
    canvas.send_keys("0", Keys.ARROW_LEFT)
    page.wait(lambda: int(canvas.get_attribute("data-points")) > 0)


def _origin(element):
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    return ScrollOrigin.from_element(element)


def test_the_lab_searches_and_shows_what_was_missed(page):
    page.click("#tab-lab")
    page.one("#lab-id").send_keys("123")
    page.click("#run")
    page.wait(lambda: len(page.all("#lab-answer .hits tr")) == 10)
    assert page.text("#lab-answer .hits button") == "123"
    assert "null" not in page.text("#lab-answer")
    assert "true neighbours are missed" in page.text("#steps")
    page.wait(lambda: page.pixels("#lab-map") > 20)
    page.choose("#step", 0)
    assert page.text("#step-name") == "the query" and "missed" not in page.text("#steps")
    page.choose("#step", 4)

    def work():
        """The work that the page tells, read at one moment: an answer replaces the one before it."""
        told = page.text("#lab-answer")
        found = re.search(r"work, in distances\s+([\d,.]+)", told)
        return float(found[1].replace(",", "")) if found else 0.0

    usual = work()
    page.choose("#recall", 0)
    assert page.text("#recall-value") == "0.500"
    page.wait(lambda: 0 < work() < usual)
    little = work()
    page.choose("#recall", 100)
    page.wait(lambda: work() > little)
    page.click("#sweep")
    page.wait(lambda: len(page.all("#lab-answer .sweep tbody tr")) == 6)
    page.one("#lab-filter").send_keys("kind = 'kind 2'")
    page.click("#run")
    page.wait(lambda: len(page.all("#lab-answer .hits tr")) == 10)
    page.one("#lab-filter").send_keys(" AND nonsense")
    page.click("#run")
    page.wait(lambda: "nonsense" in page.text("#status"))
    # The browser reports the answer with the error that the page has asked for.
    page.driver.get_log("browser")


def test_vectors_and_drawings_are_queries(page):
    from selenium.webdriver import ActionChains

    page.click("#tab-lab")
    page.click("[name=source][value=vector]")
    page.script("document.getElementById('lab-vector').value = arguments[0]", str([0.5] * 784))
    page.click("#run")
    page.wait(lambda: len(page.all("#lab-answer .hits tr")) == 10)
    before = page.text("#lab-answer .hits")
    page.click("[name=source][value=draw]")
    drawing = page.one("#drawing")
    pen = ActionChains(page.driver).move_to_element_with_offset(drawing, -40, -40).click_and_hold()
    pen.move_by_offset(80, 0).move_by_offset(0, 80).move_by_offset(-80, -80).release().perform()
    page.wait(lambda: page.text("#lab-answer .hits") not in ("", before))
    inked = page.script("return [...document.getElementById('drawing').getContext('2d').getImageData(0, 0, 28, 28).data].filter((v, i) => i % 4 === 0 && v > 99).length")
    assert inked > 40, "a line, not only its ends"
    page.click("#draw-clear")


def test_health_counts_searches(page):
    page.click("#tab-lab")
    page.one("#lab-id").send_keys("5")
    page.click("#run")
    page.wait(lambda: page.all("#lab-answer .hits tr"))
    page.click("#tab-map")
    page.one("#find-id").send_keys("9")
    page.click("#find button")
    page.wait(lambda: page.text("#details").startswith("Point 9"))
    page.click("#tab-health")
    page.wait(lambda: len(page.all("#tiles .tile")) == 8)
    page.wait(lambda: "≤" in page.all("#tiles .tile b")[1].text)
    page.wait(lambda: "memory of the index" in page.text("#health-index"))
    page.wait(lambda: page.pixels("#latency") > 1)


def test_dark_mode_keyboard_and_phone(page):
    from selenium.webdriver import Keys

    def background():
        return page.script("return getComputedStyle(document.body).backgroundColor")

    light = background()
    while page.text("#theme") != "Theme: dark":
        page.click("#theme")
    assert background() != light
    page.wait(lambda: page.pixels("#map") > 20)
    page.keep("dark")
    page.one("#tab-map").send_keys(Keys.ARROW_RIGHT)
    assert page.one("#tab-lab").get_attribute("aria-selected") == "true" and page.one("#view-lab").is_displayed()
    page.one("#tab-lab").send_keys(Keys.ARROW_LEFT)
    page.driver.set_window_size(400, 800)
    wide = page.script("return document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, "nothing sticks out on a phone"
    while page.text("#theme") != "Theme: auto":
        page.click("#theme")


def test_other_indexes_are_chosen(page):
    page.choose("#index", "few")
    page.wait(lambda: "50 × 5" in page.text("#facts") and int(page.one("#map").get_attribute("data-points")) == 50)
    page.one("#find-id").send_keys("n7")
    page.click("#find button")
    page.wait(lambda: page.text("#details").startswith("Point n7"))
    page.one("#find-id").clear()
    page.one("#find-id").send_keys("nobody")
    page.click("#find button")
    page.wait(lambda: "no point with the identifier nobody" in page.text("#status"))
    # The browser reports the answers with errors that the page has asked for.
    page.driver.get_log("browser")


def test_late_answers_are_of_no_index_that_was_left(page):
    page.script(
        "const ask = window.fetch;"
        "window.fetch = async (path, options) => {"
        "  if (String(path).includes('/few/explore/map')) await new Promise((resolve) => setTimeout(resolve, 700));"
        "  return ask(path, options);"
        "};"
    )
    cells = page.one("#map").get_attribute("data-cells")
    page.choose("#index", "few")
    page.choose("#index", "pictures")
    page.wait(lambda: int(page.one("#map").get_attribute("data-points") or 0) > 50)
    time.sleep(1)
    assert "6,000 × 784" in page.text("#facts") and page.one("#map").get_attribute("data-cells") == cells
    assert int(page.one("#map").get_attribute("data-points")) > 50 and page.text("#status") == ""


def test_keys_of_the_browser_are_left_to_it(page):
    taken = (
        "const event = new KeyboardEvent('keydown', {key: arguments[0], cancelable: true, ...arguments[1]});"
        "document.getElementById('map').dispatchEvent(event);"
        "return event.defaultPrevented;"
    )
    for key in ("+", "-", "0", "ArrowLeft"):
        assert page.script(taken, key, {})
        for held in ("ctrlKey", "metaKey", "altKey"):
            assert not page.script(taken, key, {held: True})


def test_large_identifiers_are_exact(page):
    text = '{"ids":[9007199254740993,7],"id":18446744073709551615,"distance":1e300,"place":[0.5,-3]}'
    there_and_back = (
        "const [text, done] = arguments;"
        "import('/explorer/api.js').then(({fromJson, toJson, typedId}) =>"
        "  done([toJson(fromJson(text)), String(typedId(' 9007199254740993 ', false)), typedId('12', false)]));"
    )
    found = page.driver.execute_async_script(there_and_back, text)
    assert found == [text.replace("1e300", "1e+300"), "9007199254740993", 12]


def test_a_wrong_key_is_told(driver, program, tmp_path):
    garlic.build(np.eye(5, dtype=np.float32)).save(tmp_path / "locked.garlic")
    page = Page(driver)
    with served(program, tmp_path / "locked.garlic", GARLIC_READ_KEY="r" * 20) as url:
        driver.get(url)
        page.wait(lambda: page.one("#key").is_displayed())
        assert not page.one("#key-wrong").is_displayed()
        page.one("#key").send_keys("x" * 20)
        page.click("#key-dialog button")
        page.wait(lambda: page.one("#key-wrong").is_displayed())
        page.one("#key").clear()
        page.one("#key").send_keys("r" * 20)
        page.click("#key-dialog button")
        page.wait(lambda: "5 × 5" in page.text("#facts"))
    # The browser reports the answers with errors that the page has asked for.
    driver.get_log("browser")
