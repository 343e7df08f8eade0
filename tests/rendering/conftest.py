"""Charts as Vega draws them, and a browser."""

import pytest
from browser import started
from scenes import Scene

from probes.rendering.drawing.style import INCH, Style


@pytest.fixture
def drawn():
    """Draws something in a room that is less than the width, and returns its scene."""

    def drawn(make, given, inches=3.3, **more):
        style = Style(inches * INCH, **more)
        return Scene(make(given, style, style.width - 40), style)

    return drawn


@pytest.fixture(scope="module")
def browser():
    with started() as found:
        yield found
