"""Figures as matplotlib has them."""

from contextlib import contextmanager

import pytest
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from probes.rendering.figures import style


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draws something and returns the figure."""

    def drawn(module, given, width=style.COLUMN):
        made = []

        @contextmanager
        def saved(path, width, height):
            with rc_context(style._SETTINGS):
                made.append(Figure(figsize=(width, height), layout="constrained", dpi=300))
                yield made[0]
                FigureCanvasAgg(made[0]).draw()

        monkeypatch.setattr(module, "saved", saved)
        module.draw(tmp_path / "x.png", given, width)
        return made[0]

    return drawn
