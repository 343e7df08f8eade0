"""Charts as Vega draws them."""

import pytest
from scenes import Scene

from probes.rendering.drawing.style import INCH, Style


@pytest.fixture
def drawn():
    """Draws something in a room that is less than the width, and returns its scene."""

    def drawn(make, given, inches=3.3, **more):
        style = Style(inches * INCH, **more)
        return Scene(make(given, style, style.width - 40), style)

    return drawn
