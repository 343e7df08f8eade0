"""The report in a real browser."""

import re

import pytest
from results_by_hand import changed, make_full_result, make_result

from probes.rendering.page.page import write_page
from probes.rendering.page.page_charts import script

pytestmark = pytest.mark.integration

EVIL = "<script>alert(1)</script>"
TASK = "</script><script>alert(2)</script>"


@pytest.fixture(scope="module", autouse=True)
def all_current():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probes.boards.comparable.is_current", lambda _: True)
        yield


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Three models, one random, one of an evil name; one result without evidence and without a score."""
    folder = tmp_path_factory.mktemp("some")
    found = [
        make_full_result("pos", (0.5, 0.7, 0.6), model="beta"),
        make_full_result(
            "pos", (0.4, 0.3, 0.45), model="random:beta", random_seed=0, located=False
        ),
        make_full_result("pos", (0.5, 0.9, 0.8), model=EVIL),
        make_full_result(TASK, (0.2, 0.25, 0.3), model="beta"),
        make_result("chunking", (0.3, 0.4, None), model="beta", p_best=False, metric="span_f1"),
        make_full_result("chunking", (0.3, 0.5, 0.2), model=EVIL, metric="span_f1"),
    ]
    found = [changed(r, "model", digest=r.model.name) for r in found]
    return write_page(
        {folder / f"{i}.json": r for i, r in enumerate(found)}, folder / "p.html", EVIL
    )


@pytest.fixture(scope="module")
def fifty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fifty")
    found = {}
    for i in range(50):
        for task in ("pos", "chunking", "depth", "agreement", "srl"):
            scores = [0.5 + 0.004 * i + 0.01 * layer for layer in range(13)]
            result = make_full_result(task, scores, model=f"org/model-{i:02}")
            found[folder / f"{task}-{i}.json"] = changed(result, "model", digest=str(i))
    return write_page(found, folder / "p.html", "fifty")


@pytest.fixture
def page(browser, some):
    browser.emulate()
    browser.open(some)
    yield browser
    assert browser.errors() == []


NAMES = "#board-g0 tbody th"


def drawn(browser, name="g0-0-score"):
    """Names of the models in a chart."""
    browser.until("return !!document.querySelector(`[data-chart='${arguments[0]}'].done`)", name)
    return browser.js(MODELS, name)


MODELS = """
    const place = document.querySelector(`[data-chart='${arguments[0]}']`);
    const said = [...place.querySelectorAll(".mark-symbol path")]
      .map(each => each.__data__.datum.model);
    return [...new Set(said)];
"""


def test_the_page_opens_with_what_was_found(page):
    assert page.js("return document.querySelector('[aria-selected=true]').id") == "tab-overview"
    said = page.texts("#overview li")
    assert (
        "pos is decoded best at layer 1 of 2: accuracy 70.0 [68.0, 72.0], 20.0 points above the "
        "floor of 50.0 (layer 0)."
    ) in said
    assert (
        "chunking is decoded best at layer 1 of 2 on dev: span F1 40.0 (no interval)," in said[-2]
    )
    legend = "★ best layer on dev · ▽ not above the floor"
    assert page.texts("#overview .legend") == [legend]
    assert page.js("return [...document.querySelectorAll('#overview details[data-model]')]"
                   ".filter(x => x.open).map(x => x.dataset.model)") == ["0", "1"]  # fmt: skip
    assert page.texts("#overview .missing") == [
        "No random twin among the results on chunking (span F1), " + TASK + " (accuracy)."
    ]


def test_what_is_not_above_its_floor_is_grey(page):
    page.one("#overview details[data-model='2'] summary").click()
    cells = page.all("#overview details[data-model='2'] .heat td")
    floored = [x for x in cells if "▽" in x.text]
    assert floored
    ground = page.js("return getComputedStyle(document.querySelector('.scale .floored'))"
                     ".backgroundColor")  # fmt: skip
    assert {x.value_of_css_property("background-color") for x in floored} == {
        ground.replace("rgb(", "rgba(").replace(")", ", 1)")
    }
    drawn(page)
    points = page.js(
        "return [...document.querySelectorAll(`[data-chart='g0-0-score'] .mark-symbol path`)]"
        ".filter(x => x.getAttribute('opacity') === '0.3').map(x => x.__data__.datum)"
        ".map(x => [x.model, x.x])"
    )
    assert ["beta", 0] in points
    assert ["beta", 1] not in points


def test_heads_sort_and_missing_scores_stay_last(page):
    page.one("#tab-leaderboard").click()
    assert page.texts(NAMES) == [
        f"● {EVIL}",
        "● beta",
        "○ random:beta never trained",
    ]
    pos, chunking = page.all("#board-g0 thead button")[3:5]
    pos.click()
    assert [x.split()[1] for x in page.texts(NAMES)] == [EVIL, "beta", "random:beta"]
    assert pos.find_element("xpath", "..").get_attribute("aria-sort") == "descending"
    pos.click()
    assert [x.split()[1] for x in page.texts(NAMES)] == ["random:beta", "beta", EVIL]
    for _ in range(2):
        chunking.click()
        assert page.texts(NAMES)[-1].split()[1] == "random:beta"
    assert pos.find_element("xpath", "..").get_attribute("aria-sort") is None


def test_filters_narrow_tables_and_charts(page):
    from selenium.webdriver.support.ui import Select

    page.one("#tab-leaderboard").click()
    page.one("#search").send_keys("BETA")
    assert [x.split()[1] for x in page.texts(NAMES)] == ["beta", "random:beta"]
    assert page.one("#count").text == "2 of 3 models"
    page.one("#random").click()
    assert [x.split()[1] for x in page.texts(NAMES)] == ["beta"]
    page.one("#tab-overview").click()
    assert drawn(page) == ["beta"]
    Select(page.one("#task")).select_by_index(1)
    assert len(page.texts("#overview h5")) == 1
    page.one("#tab-leaderboard").click()
    assert len(page.texts("#board-g0 thead th")) == 4


def test_models_are_ticked_in_and_out_of_charts(page):
    assert len(drawn(page)) == 3
    page.one("[data-draw='1']").click()
    assert len(drawn(page)) == 2
    page.one("[data-tick='none']").click()
    assert drawn(page) == []


def test_hover_gives_numbers(page):
    from selenium.webdriver.common.action_chains import ActionChains

    drawn(page)
    point = page.js(
        "return [...document.querySelectorAll(`[data-chart='g0-0-score'] .mark-symbol path`)]"
        ".findLast(x => x.__data__.datum.model === 'beta' && x.__data__.datum.x === 0)"
    )
    ActionChains(page.driver).move_to_element(point).perform()
    page.until("return !!document.querySelector('#vg-tooltip-element.visible')")
    shown = page.one("#vg-tooltip-element").text.splitlines()
    assert shown == ["layer 0", "model beta", "accuracy, % 50.0 [48.0, 52.0]"]


def test_numbers_are_in_tables_too(page):
    page.all("#overview figure summary")[0].click()
    cells = page.texts("#overview figure details[open] tr[data-model='1'] td")
    assert cells == ["50.0 ±2.0▽", "70.0 ±2.0★", "60.0 ±2.0"]


def test_reasons_for_missing_measurements_are_shown(page):
    page.one("#tab-evidence").click()
    (said,) = page.texts("#evidence .missing")
    assert said.startswith("Not measured: Selectivity by layer, ")
    assert said.endswith(" of beta (chunking): there is no record of it.")
    page.one("#tab-localisation").click()
    assert "undefined: no gain" in page.one("#localisation").text
    (said,) = page.texts("#localisation .missing")
    assert said.endswith(" of beta (chunking): there is no record of it.")


def test_the_page_can_be_used_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    seen = page.one("#tab-overview")
    seen.send_keys(Keys.ARROW_RIGHT)
    assert page.js("return document.activeElement.id") == "tab-leaderboard"
    assert page.one("#leaderboard").is_displayed()
    assert not page.one("#overview").is_displayed()
    page.driver.switch_to.active_element.send_keys(Keys.END)
    assert page.one("#sources").is_displayed()
    page.driver.switch_to.active_element.send_keys(Keys.HOME)
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    outline = page.js("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.one("#tab-leaderboard").click()
    head = page.all("#board-g0 thead button")[3]
    head.send_keys(Keys.ENTER)
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_dark_mode_is_readable(page):
    for dark in (False, True):
        page.emulate(dark=dark)
        page.one("#tab-overview").click()
        drawn(page)
        paper, ink, tick = page.js(
            "const of = (x, k) => getComputedStyle(document.querySelector(x))[k];"
            "return [of('body', 'backgroundColor'), of('body', 'color'),"
            " of('.role-axis-label text', 'fill')]"
        )
        assert contrast(paper, ink) > 7
        assert tick == ink
    page.emulate()


def contrast(one, other):
    def luminance(colour):
        parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_printing_unfolds_everything_and_hides_controls(page):
    n_charts = len(page.all("[data-chart]"))
    page.js("window.addEventListener('beforeprint', () => { window.drawn = "
            "document.querySelectorAll('[data-chart].done svg.marks').length;"
            "window.folded = document.querySelectorAll('details:not([open])').length })")  # fmt: skip
    assert page.pdf().startswith(b"%PDF")
    assert page.js("return window.drawn") >= n_charts
    assert page.js("return window.folded") == 0
    page.emulate(media="print", dark=True)
    assert not any(x.is_displayed() for x in page.all(".controls"))
    assert all(x.is_displayed() for x in page.all(".panel"))
    assert page.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate()


def test_names_are_escaped(page):
    assert EVIL in page.one("h1 + p").text
    assert not page.js("return [...document.scripts].some(x => x.textContent.includes('alert('))")
    assert EVIL in drawn(page)
    assert TASK in page.js(
        "return [...document.querySelectorAll('#overview h5')].at(-1).textContent"
    )


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "part", ["overview", "leaderboard", "evidence", "localisation", "claims", "sources"]
)
def test_the_page_fits_any_width(page, some, width, part):
    page.emulate(width=width)
    page.open(some, part)
    assert page.js("return document.documentElement.scrollWidth") <= width


def test_fifty_models(browser, fifty):
    own = fifty.stat().st_size - len(script().encode())
    assert own < 5_000_000
    browser.emulate()
    browser.open(fifty, "leaderboard")
    assert len(browser.texts(NAMES)) == 50
    browser.all("#board-g0 thead button")[3].click()
    assert browser.texts(NAMES)[0].endswith("org/model-49")
    browser.one("#tab-overview").click()
    assert len(drawn(browser)) == 8
    browser.one("[data-tick='all']").click()
    assert len(drawn(browser)) == 50
    browser.one("#search").send_keys("model-4")
    assert len(drawn(browser)) == 10
    assert browser.errors() == []


def test_twenty_models_take_less_than_two_megabytes(tmp_path):
    found = {}
    for i in range(20):
        for task in ("pos", "chunking", "depth", "agreement", "srl"):
            scores = [0.51234 + 0.00411 * i + 0.0101 * layer for layer in range(13)]
            result = make_full_result(task, scores, model=f"org/model-{i:02}")
            result = changed(result, "model", digest=str(i))
            found[tmp_path / f"{task}-{i}.json"] = result
            found[tmp_path / f"{task}-mlp-{i}.json"] = changed(result, "probe", family="mlp")
    page = write_page(found, tmp_path / "p.html", "twenty")
    assert page.stat().st_size - len(script().encode()) < 2_000_000
