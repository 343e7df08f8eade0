"""The register of quantities: what each number is called, how it is printed, and who defined it.

Metrics of tasks are quantities with a rule (see `probes.statistics.metrics`); what measurements
find besides is listed here. Plug-ins may add their own: `quantities.add("mean_norm", Quantity(…))`.
A number that is not registered is printed under its own name, with three digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from probes.common.registry import Registry

SHARE = 0.0, 1.0

CORRELATION = -1.0, 1.0

POSITIVE = 0.0, math.inf


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What a number is.

    Attributes:
        label: what tables and axes call it; its name in words if empty.
        unit: such as "bits"; part of the titles of axes.
        percent: whether it is a share, which is shown times 100.
        digits: after the point, where it is shown as it is.
        of_task: whether it is in the unit of its task's metric, as a difference of scores is.
        lower_is_better: whether it is an error.
        bounds: the least and the greatest value that it can have.
        source: paper and section that define it.
    """

    label: str = ""
    unit: str = ""
    percent: bool = False
    digits: int = 3
    of_task: bool = False
    lower_is_better: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    source: str = ""


quantities: Registry[Quantity] = Registry("quantity")
"""Numbers that are no metrics of tasks."""

HEWITT_2019 = "Hewitt & Manning 2019"
ETHAYARAJH_2019 = "Ethayarajh 2019"

# Structure. Root accuracy and NSpr are metrics of tasks, too.
for _name, _label in (
    ("uuas", "UUAS"),
    ("chain_uuas", "UUAS of neighbours"),
    ("control_uuas", "control UUAS"),
    ("control_uuas_draw_sd", "control UUAS, sd over draws"),
    ("chain_control_uuas", "control UUAS of neighbours"),
    ("recall", "recall"),
    ("chain_recall", "recall of neighbours"),
):
    quantities.add(_name, Quantity(label=_label, percent=True, bounds=SHARE, source=HEWITT_2019))
quantities.add("dspr", Quantity(label="DSpr", bounds=CORRELATION, source=HEWITT_2019))
quantities.add("selectivity", Quantity(of_task=True, source="Hewitt & Liang 2019"))
for _name in ("distance_loss", "depth_loss"):
    quantities.add(_name, Quantity(lower_is_better=True, bounds=POSITIVE, source=HEWITT_2019))
for _name, _label, _percent in (
    ("uuas", "UUAS", True),
    ("dspr", "DSpr", False),
    ("root_accuracy", "root acc.", True),
    ("nspr", "NSpr", False),
):
    _sd = Quantity(label=f"{_label}, sd over training samples", percent=_percent, bounds=POSITIVE)
    quantities.add(f"{_name}_training_sd", _sd)
    quantities.add(f"{_name}_p_best", Quantity(label=f"p of the best by {_label}", bounds=SHARE))

# Geometry.
quantities.add("anisotropy", Quantity(bounds=CORRELATION, source=f"{ETHAYARAJH_2019}, section 4.1"))
quantities.add("self_similarity", Quantity(label="self-similarity", bounds=CORRELATION))
quantities.add("cka", Quantity(label="CKA", digits=2, bounds=SHARE, source="Kornblith et al. 2019"))

quantities.mark_as_shipped()
