"""The report in a real browser."""

import re

import pytest
from corpus_records import geometry
from results_by_hand import changed, make_full_result, make_result

from probes.pages.page import write_page

pytestmark = pytest.mark.integration

EVIL = "<script>alert(1)</script>"
TASK = "</script><script>alert(2)</script>"
BEST = "#overview table.sortable"
NAMES = f"{BEST} tbody td:nth-child(2)"
PARTS = "overview", "evidence", "breakdowns", "of-geometry", "claims", "sources"
SCORES = "pos (accuracy), n = 9"


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Three models, one random, one of an evil name; a result without evidence and a score."""
    folder = tmp_path_factory.mktemp("some")
    twin = {"model": "random:beta", "random_seed": 0, "located": False}
    found = [
        make_full_result("pos", (0.5, 0.7, 0.6), model="beta"),
        make_full_result("pos", (0.4, 0.3, 0.45), **twin),
        make_full_result("pos", (0.5, 0.9, 0.8), model=EVIL),
        make_full_result(TASK, (0.2, 0.25, 0.3), model="beta"),
        make_result("chunking", (0.3, 0.4, None), model="beta", p_best=False, metric="span_f1"),
        make_full_result("chunking", (0.3, 0.5, 0.2), model=EVIL, metric="span_f1"),
    ]
    found = [changed(r, "model", digest=r.model.name) for r in found]
    others = {
        folder / f"{name}.json": geometry(values, model=name, digest=name)
        for name, values in (("beta", [0.1, 0.2, 0.3]), (EVIL, [0.4, 0.4, 0.4, 0.4]))
    }
    paths = {folder / f"{i}.json": r for i, r in enumerate(found)}
    return write_page(paths, folder / "p.html", EVIL, others)


@pytest.fixture
def page(browser, some):
    browser.emulate()
    browser.open(some)
    yield browser
    assert browser.errors() == []


DRAWN = """
    const figure = [...document.querySelectorAll("figure")].find(
      x => x.querySelector("h5").textContent === arguments[0]);
    const place = figure.querySelector(".chart");
    place.scrollIntoView();
    if (!place.matches(".done")) return null;
    return [...place.querySelectorAll(".mark-symbol path")].map(x => x.__data__.datum)
      .filter(x => "model" in x && "x" in x);
"""


def drawn(browser, title=SCORES):
    """Names of the models in a chart."""
    browser.until(f"return (() => {{ {DRAWN} }})() !== null", title)
    return list(dict.fromkeys(x["model"] for x in browser.js(DRAWN, title)))


def test_the_page_opens_with_what_was_found(page):
    assert page.js("return document.querySelector('[aria-selected=true]').id") == "tab-overview"
    parts = "figure, table, [data-model] details"
    kinds = f"return [...document.querySelector('#overview').querySelectorAll('{parts}')].map(x => x.localName)"
    assert page.js(kinds)[:5] == ["figure"] * 3 + ["table", "details"]
    assert page.texts("#overview thead")[0].split() == [
        "task", "model", "best", "layers", "score", "floor", "gain"
    ]  # fmt: skip
    rows = [" ".join(x.split()) for x in page.texts(f"{BEST} tbody tr")]
    assert rows[:2] == [
        f"pos (accuracy) ● {EVIL} 1 of 2 90.0 ±2.0 layer 1 of 2 50.0 layer 0 +40.0",
        "pos (accuracy) ● beta 1 of 2 70.0 ±2.0 layer 1 of 2 50.0 layer 0 +20.0",
    ]
    opened = "return [...document.querySelectorAll('#overview details[open]')].map(x => x.parentNode.dataset.model)"
    assert page.js(opened) == [EVIL]
    drawn(page)
    points = page.js(DRAWN, SCORES)
    marks = {(x["model"], x["x"]): x["mark"] for x in points}
    assert marks["beta", 0] == "not significantly above the floor"
    assert marks["beta", 1] == "best on dev"


def test_heads_sort_and_missing_numbers_stay_last(page):
    page.js(f"window.best = document.querySelector('{BEST}')")
    values = lambda: page.js(  # noqa: E731
        "return [...best.tBodies[0].rows].map(x => [x.cells[1].textContent, x.cells[2].dataset.value])"
    )
    assert len(values()) == 5
    page.js("best.tBodies[0].rows[0].cells[2].dataset.value = ''")
    layers, score = page.all(f"{BEST} thead button")[2:4]
    for order in (["2", "1", "1", "1", ""], ["1", "1", "1", "2", ""]):
        layers.click()
        assert [x[1] for x in values()] == order
    assert layers.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    score.click()
    assert EVIL in values()[0][0]
    score.click()
    assert "beta" in values()[0][0]
    assert layers.find_element("xpath", "..").get_attribute("aria-sort") is None


def test_filters_narrow_tables_and_charts(page):
    from selenium.webdriver.support.ui import Select

    assert set(drawn(page)) == {"beta", "random:beta", EVIL}
    page.one("[data-draw='random:beta']").click()
    assert set(drawn(page)) == {"beta", EVIL}
    page.one("[data-tick='']").click()
    assert not page.js("return document.querySelector('#overview figure').checkVisibility()")
    page.one("[data-tick=all]").click()
    page.one("#search").send_keys("BETA")
    assert [x.split()[1] for x in page.texts(NAMES)] == ["beta"] * 3
    assert page.one("#count").text == "2 of 3 models"
    page.one("#random").click()
    assert drawn(page) == ["beta"]
    tasks = lambda: [x.split()[0] for x in page.texts(f"{BEST} tbody th")]  # noqa: E731
    assert tasks() == ["pos", "chunking", TASK.split()[0]]
    Select(page.one("#task")).select_by_index(1)
    assert page.texts("#overview h5") == [SCORES]
    assert tasks() == ["pos"]
    page.one("#search").clear()
    assert tasks() == ["pos", "pos"]


def test_a_chart_says_its_numbers(page):
    from selenium.webdriver.common.action_chains import ActionChains

    drawn(page)
    point = page.js(
        "return [...document.querySelector('#overview .chart').querySelectorAll('.mark-symbol path')]"
        ".findLast(x => x.__data__.datum.model === 'beta' && x.__data__.datum.x === 0)"
    )
    ActionChains(page.driver).move_to_element(point).perform()
    page.until("return !!document.querySelector('#vg-tooltip-element.visible')")
    shown = page.one("#vg-tooltip-element").text.splitlines()
    assert shown == ["model beta", "layer 0", "value 50.0", "low 48.0", "high 52.0"]
    page.all("#overview .numbers summary")[0].click()
    page.until("return !!document.querySelector('#overview .numbers table')")
    assert page.texts("#overview .numbers tr")[:2] == [
        "model x value low high level mark",
        f"{EVIL} 0 50 48 52 not significantly above the floor",
    ]


def test_the_page_can_be_used_by_keyboard(page):
    from selenium.webdriver.common.keys import Keys

    page.one("#tab-overview").send_keys(Keys.ARROW_RIGHT)
    assert page.js("return document.activeElement.id") == "tab-evidence"
    assert page.one("#evidence").is_displayed()
    assert not page.one("#overview").is_displayed()
    page.driver.switch_to.active_element.send_keys(Keys.END)
    assert page.one("#sources").is_displayed()
    page.driver.switch_to.active_element.send_keys(Keys.TAB)
    assert page.js("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.one("#tab-overview").click()
    head = page.all(f"{BEST} thead button")[3]
    head.send_keys(Keys.ENTER)
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_dark_mode_is_readable(page):
    for dark in (False, True):
        page.emulate(dark=dark)
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


def test_panels_of_one_and_of_several_shapes_are_drawn_without_warnings(page, some):
    page.open(some, "of-geometry")
    assert set(drawn(page, "Anisotropy")) == {"beta", EVIL}
    page.until(
        "for (const x of document.querySelectorAll('#of-geometry .chart:not(.done)'))"
        " x.scrollIntoView(); return !document.querySelector('#of-geometry .chart:not(.done)')"
    )
    empty = "return document.querySelectorAll('#of-geometry .chart:not(:has(.mark-symbol, .mark-rect))').length"
    assert page.js(empty) == 0
    assert {"beta", EVIL} < {*page.texts("#of-geometry .mark-text")}


def test_printing_unfolds_everything_and_hides_controls(page):
    left = "details:not([open], .numbers), .chart:not(.done)"
    page.js(
        f"addEventListener('beforeprint', () => {{ window.left = "
        f"document.querySelectorAll('{left}').length }})"
    )
    assert page.pdf().startswith(b"%PDF")
    assert page.js("return window.left") == 0
    page.emulate(media="print", dark=True)
    assert not any(x.is_displayed() for x in page.all(".controls, .numbers"))
    assert all(x.is_displayed() for x in page.all(".panel"))
    assert page.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate()


def test_names_are_text(page):
    assert EVIL in page.one("h1 + p").text
    assert not page.js("return [...document.scripts].some(x => x.textContent.includes('alert('))")
    assert EVIL in drawn(page)
    assert any(TASK in x for x in page.texts("#overview h5"))


def test_a_table_that_goes_on_fades_out_until_its_end(page):
    page.emulate(width=390)
    fades = "const x = document.querySelector('#overview .scroll'); return x.matches('.more')"
    page.until(fades)
    mask = "return getComputedStyle(document.querySelector('#overview .scroll')).maskImage"
    assert page.js(mask).startswith("linear-gradient")
    page.js("document.querySelector('#overview .scroll').scrollLeft = 9999")
    page.until(fades.replace("return ", "return !"))
    assert page.js(mask) == "none"
    page.emulate(width=3000)
    page.until(fades.replace("return ", "return !"))


@pytest.mark.parametrize("width", [390, 1280])
def test_every_part_fits_any_width(page, some, width):
    page.emulate(width=width)
    for part in PARTS:
        page.open(some, part)
        assert page.js("return document.documentElement.scrollWidth") <= width
