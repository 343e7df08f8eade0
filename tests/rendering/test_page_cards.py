"""Galleries and cards on the page."""

import math
import re
from pathlib import Path

import pytest
from corpus_records import corpus_record
from pages import data_of, own

from probes.boards.groups import of_corpora
from probes.measurements.plugins import load_file
from probes.records.row import Row
from probes.rendering.page.page import page, write_page
from probes.rendering.palette import COLOURS, shade

pytestmark = pytest.mark.integration

EVIL = "</script><img src=x onerror=alert(1)>"

PLUG_IN = f"""
from probes import (
    Card, Gallery, GalleryPanel, Grid, Panel, Picture, Row, measurement,
)

EVIL = {EVIL!r}
MAP = Picture(((1.0, 0.00012345), (float("nan"), 0.25)), "D", "diagonal")
OTHER = Picture(((0.5,),), EVIL, EVIL)

def charts(drawn, records):
    if next(iter(records.values())).rows.value == (0,):
        return [Gallery("g", "G", "", "d", "a", {{"m": GalleryPanel((), (), ())}})]
    cards = {{}}
    for model in records:
        card = Card(f"{{EVIL}} of {{model}}", (("entropy", ".42"), (EVIL, EVIL)), MAP)
        cards[model] = ((card, None), (None, Card("plain")))
    numbers = Panel(("1", "2"), ("1", "2"), ((0.0, 0.5), (1.0, None)))
    maps = GalleryPanel(("1", "2"), ("1", "2"), ((MAP, None), (OTHER, Picture(((0.0,),)))))
    return [
        Grid("grid", "Grid", "", "layer", "head", dict.fromkeys(records, numbers), cards=cards),
        Gallery("maps", EVIL, EVIL, "layer", "head", dict.fromkeys(records, maps)),
    ]

@measurement("my_own", views=(), redrawn=charts)
def mine(context):
    "Pictures."
    return [Row("mine", 1.0)]
"""


@pytest.fixture
def given(write, plug_ins):
    load_file(write(PLUG_IN))

    def given(value=1.0):
        twin = {"model": "random:m", "digest": "r", "result": {"random_seed": 0}}
        records = [corpus_record("my_own", [Row("mine", value)], 2, **more) for more in ({}, twin)]
        return of_corpora({Path(f"{i}.json"): record for i, record in enumerate(records)})

    return given


def test_cards_and_pictures_are_in_the_data_once(given):
    data = data_of(page({}, "x", given()))["cards"]["of-my_own"]
    assert data["pictures"] == [[[1.0, 0.000123], [None, 0.25]], [[0.5]], [[0.0]]]
    assert data["cards"] == [
        {"title": f"{EVIL} of m", "lines": [["entropy", ".42"], [EVIL, EVIL]], "picture": 0},
        {"title": "plain", "lines": [], "picture": None},
        {
            "title": f"{EVIL} of random:m",
            "lines": [["entropy", ".42"], [EVIL, EVIL]],
            "picture": 0,
        },
        {"title": "layer 1, head 1", "lines": [["kind", "diagonal"]], "picture": 0},
        {"title": "layer 2, head 1", "lines": [["kind", EVIL]], "picture": 1},
        {"title": "layer 2, head 2", "lines": [], "picture": 2},
    ]


def test_cells_with_cards_are_buttons(given):
    text = page({}, "x", given())
    table = re.search(r'aria-label="Heat map of m">.*?</table>', text, re.DOTALL)[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)
    button = '<button type="button" data-card="{}" aria-label="{}">{}</button>'
    assert cells == [
        "1.00",
        button.format(1, "2, layer 2: –", "–"),
        button.format(0, "1, layer 1: .00", ".00"),
        ".50",
    ]


def test_pictures_are_buttons_with_marks_and_frames(given):
    text = page({}, "x", given())
    first, second = re.findall(r'<table class="gallery".*?</table>', text, re.DOTALL)
    assert 'data-low="0.0" data-high="1.0"' in first
    rows = re.findall(r'<tr><th scope="row">(\d)</th>(.*?)</tr>', first, re.DOTALL)
    numbers = [(name, re.findall(r'data-card="(\d)"', row)) for name, row in rows]
    assert numbers == [("2", ["4", "5"]), ("1", ["3"])]
    assert re.findall(r'data-card="(\d)"', second) == ["4", "5", "3"]
    assert re.findall(r'"border-color:(#\w+)"><canvas></canvas><span>D<', first) == [COLOURS[0]]
    assert 'aria-label="layer 1, head 1: diagonal"' in first


def test_nothing_that_a_plug_in_says_is_markup(given):
    text = page({}, "x", given())
    assert "<img" not in own(text)
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in text


def test_a_chart_whose_parts_do_not_fit_costs_its_part_alone(given, capsys):
    assert 'id="of-my_own"' not in page({}, "x", given(0.0))
    said = " ".join(capsys.readouterr().err.split())
    assert "the chart 'g' has a panel whose pictures are none" in said


def test_a_card_opens_and_closes_by_keyboard(browser, tmp_path, given):
    from selenium.webdriver.common.keys import Keys

    browser.emulate()
    browser.open(write_page({}, tmp_path / "p.html", "x", given()), "of-my_own")
    cell = browser.one('.heat [data-card="0"]')
    cell.send_keys(Keys.ENTER)
    (said,) = browser.texts("#card")
    assert said.splitlines() == [
        f"{EVIL} of m",
        "entropy .42",
        f"{EVIL} {EVIL}",
        "Dark 0.00012 to bright 1, square-root scale.",
        "Close",
    ]
    assert_map_is_drawn(browser, "#card canvas")
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    browser.until("return !document.getElementById('card').open")
    assert browser.js("return document.activeElement.dataset.card") == "0"
    browser.one('.heat [data-card="1"]').click()
    (said,) = browser.texts("#card")
    assert said.splitlines() == ["plain", "Close"]
    browser.one("#card button").click()
    assert browser.texts("#card") == []
    assert browser.errors() == []


def test_pictures_in_a_browser(browser, tmp_path, given):
    browser.emulate()
    browser.open(write_page({}, tmp_path / "p.html", "x", given()), "of-my_own")
    browser.js("document.querySelector('.gallery').scrollIntoView()")
    browser.until("return !!document.querySelector('.gallery.done')")
    assert_map_is_drawn(browser, '.gallery [data-card="3"] canvas')
    browser.one('.gallery [data-card="3"]').click()
    assert browser.texts("#card h3") == ["layer 1, head 1"]
    browser.one("#card button").click()
    browser.one("#choices summary").click()
    browser.one("#random").click()
    assert len(browser.texts(".gallery caption")) == 1
    assert browser.js("return document.documentElement.scrollWidth") <= 1280
    assert browser.errors() == []


def assert_map_is_drawn(browser, selector):
    """The canvas shows `MAP` in the colours of viridis, by the square root of the values."""
    script = """
        const canvas = document.querySelector(arguments[0]);
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return [canvas.width, canvas.height, [...data]];
    """
    width, height, data = browser.js(script, selector)
    assert (width, height) == (2, 2)
    drawn = [data[i : i + 4] for i in range(0, 16, 4)]
    assert drawn.pop(2) == [0] * 4  # not a number
    for colour, value in zip(drawn, (1.0, 0.00012345, 0.25), strict=True):
        assert colour == pytest.approx([*shade(math.sqrt(value)), 255], abs=6)
