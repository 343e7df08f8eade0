"""The board in a real browser."""

import json
import re
import shutil
from html import escape
from pathlib import Path

import pytest
from pages import data_of

from probes.boards.submissions import Submission
from probes.cli.chart_files import figure
from probes.frames.joined_results import find_results
from probes.pages.board_site import write_site
from probes.pages.page import page
from probes.tables.charts import PAPER
from probes.tables.colours import COLOURS

pytestmark = pytest.mark.integration

PUBLISHED = Path(__file__).parents[2] / "results" / "published"
MINI, TWIN = "all-MiniLM-L6-v2", "random:all-MiniLM-L6-v2"
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two tasks of a model, its twin, and a model of an evil name that has the scores of the twin."""
    folder = tmp_path_factory.mktemp("board")
    for path in PUBLISHED.glob("*all-MiniLM*/ewt/*"):
        if path.name.startswith(("pos-linear", "srl-linear")):
            place = folder / "results" / path.parent.parent.name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    found = find_results(folder / "results")
    for path, result in list(found.items()):
        if result.model.random_seed is not None:
            copy = path.with_name(f"evil-{path.name}")
            shutil.copy(path.with_suffix(".npz"), copy.with_suffix(".npz"))
            changes = {"name": EVIL, "random_seed": None}
            model = result.model.model_copy(update=changes)
            found[copy] = result.model_copy(update={"model": model})
    return found


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    return write_site(Submission(results, ()), tmp_path_factory.mktemp("site") / "site")


@pytest.fixture
def index(browser, site):
    browser.emulate()
    browser.open(site)
    yield browser
    assert browser.errors() == []


NAMES = "main tbody th a"


def choose(index, name, value):
    index.js(
        "const field = document.querySelector(`[name=${arguments[0]}]`); field.value = arguments[1];"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
        name,
        value,
    )


def test_each_group_of_tasks_has_a_ranking_by_score(index):
    titles = [
        f"ewt r2.16 · linear probe · bidirectional encoders · {x}" for x in ("syntax", "semantics")
    ]
    assert index.texts("main caption") == titles
    # The one is separated from the other on both tasks.
    assert index.texts(NAMES) == [MINI, EVIL] * 2
    # The other one is not above its floor, so there is no rank to give.
    assert index.texts("main tbody td")[0].endswith("\nlayer 3/6")
    assert "rank" not in index.texts("main tbody td")[0]
    assert not index.js("return [...document.scripts].some(x => x.textContent.includes('alert('))")


def test_a_model_has_one_colour_on_every_page_and_in_figures(results, site):
    swatch = r'color:(#\w+)" aria-hidden="true">.</span>\s*(?:<a [^>]*>)?'
    texts = [path.read_text() for path in (site.parent / "models").glob("*.html")]
    of_mini, of_evil = (
        next(x for x in texts if f"<h1>{escape(name)}</h1>" in x) for name in (MINI, EVIL)
    )
    report = page(results, "x")
    mini = f"{swatch}{re.escape(MINI)}<"
    for text in (site.read_text(), of_mini, report):
        assert set(re.findall(mini, text)) == {COLOURS[1]}
    assert set(re.findall(f"{swatch}{re.escape(escape(EVIL))}<", of_evil)) == {COLOURS[0]}
    alone = {
        path: x for path, x in results.items() if x.model.name == MINI and x.task.name == "pos"
    }
    chart = figure("curves", alone, "x", PAPER, among=results.values())
    charts = (chart, data_of(of_mini)["charts"][0], data_of(report)["charts"][0])
    assert [colours_in(x)[MINI] for x in charts] == [COLOURS[1]] * 3
    assert colours_in(charts[1])[TWIN] == COLOURS[1]


def colours_in(chart):
    """The colour of each model in a chart."""
    (scale,) = {
        json.dumps(x["encoding"]["color"]["scale"])
        for x in chart["layer"]
        if "scale" in x["encoding"].get("color", {})
    }
    return dict(zip(*json.loads(scale).values(), strict=True))


def test_filters_live_in_the_address(index, site):
    index.one("[name=twins]").click()
    assert index.texts(NAMES) == [MINI, EVIL, TWIN] * 2
    choose(index, "tasks", "semantics")
    choose(index, "text", "MINI")
    assert index.texts(NAMES) == [MINI, TWIN]
    address = index.js("return location.hash")
    assert address == "#text=MINI&tasks=semantics&twins=shown"
    index.open(site, address.removeprefix("#"))
    assert index.texts(NAMES) == [MINI, TWIN]
    assert index.one("#count").text == "2 models shown"
    choose(index, "text", "nobody")
    assert index.texts("#none") == ["Nothing passes all of these filters."]


def test_columns_are_sorted_by_keyboard(index):
    button = index.one("main thead th:nth-child(2) button")
    for order in ([MINI, EVIL], [EVIL, MINI]):
        index.js("arguments[0].focus()", button)
        button.send_keys("\ue007")
        assert index.texts(NAMES)[:2] == order


def test_a_model_has_its_report_from_which_a_link_leads_back(index, site):
    index.one(NAMES).click()
    index.until("return document.querySelectorAll('[role=tab]').length > 0")
    assert index.js("return document.title") == f"{MINI} · Which layer knows what"
    index.one("header a").click()
    assert index.js("return location.pathname") == str(site)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1300])
def test_it_fits_every_screen(index, site, width, dark):
    index.emulate(width=width, dark=dark)
    index.open(site, "twins=shown")
    assert index.js("return document.documentElement.scrollWidth <= innerWidth")
    paper = index.js("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark
