"""The register of quantities: label, format and source of each number.

Metrics of tasks are registered in `probes.statistics.metrics`, all other numbers here. Plug-ins may
add their own: `quantities.add("mean_norm", Quantity(…))`. An unregistered number is printed under
its own name with three digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from probes.common.registry import Registry

SHARE = 0.0, 1.0

CORRELATION = -1.0, 1.0

POSITIVE = 0.0, math.inf


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Label, format, bounds and source of a number.

    Attributes:
        label: name in tables and on axes; if empty, the registered name in words.
        unit: such as "bits"; shown on axes.
        percent: whether the number is a share, shown times 100.
        digits: decimals of a number that is no share.
        of_task: whether the number has the unit of the task's metric, like a difference of scores.
        deviation: whether the number is a standard deviation, shown with one more digit.
        skewed: whether the interval is far from symmetric, so that both ends are shown.
        lower_is_better: whether the number is an error.
        bounds: lowest and highest possible value.
        source: paper and section that define the number.
    """

    label: str = ""
    unit: str = ""
    percent: bool = False
    digits: int = 3
    of_task: bool = False
    deviation: bool = False
    skewed: bool = False
    lower_is_better: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)
    source: str = ""


quantities: Registry[Quantity] = Registry("quantity")
"""Numbers that are not metrics of tasks."""

HEWITT_2019 = "Hewitt & Manning 2019"
ETHAYARAJH_2019 = "Ethayarajh 2019"
TIMKEY_2021 = "Timkey & van Schijndel 2021"

# Structure. Root accuracy and NSpr are metrics of tasks.
for _name, _label in (
    ("uuas", "UUAS"),
    ("chain_uuas", "UUAS of neighbours"),
    ("control_uuas", "control UUAS"),
    ("chain_control_uuas", "control UUAS of neighbours"),
    ("recall", "recall"),
    ("chain_recall", "recall of neighbours"),
):
    quantities.add(_name, Quantity(label=_label, percent=True, bounds=SHARE, source=HEWITT_2019))
quantities.add("dspr", Quantity(label="DSpr", bounds=CORRELATION, source=HEWITT_2019))
for _name in ("distance_loss", "depth_loss"):
    quantities.add(_name, Quantity(lower_is_better=True, bounds=POSITIVE, source=HEWITT_2019))
for _name, _label, _percent in (
    ("control_uuas_draw_sd", "control UUAS, SD over draws", True),
    ("uuas_training_sd", "UUAS, SD over training samples", True),
    ("dspr_training_sd", "DSpr, SD over training samples", False),
    ("root_accuracy_training_sd", "root acc., SD over training samples", True),
    ("nspr_training_sd", "NSpr, SD over training samples", False),
):
    _sd = Quantity(label=_label, percent=_percent, deviation=True, bounds=POSITIVE)
    quantities.add(_name, _sd)
for _name in ("uuas", "dspr", "root_accuracy", "nspr"):
    quantities.add(f"{_name}_p_best", Quantity(bounds=SHARE))

# Geometry.
quantities.add("anisotropy", Quantity(bounds=CORRELATION, source=f"{ETHAYARAJH_2019}, section 3.3"))
quantities.add("standardised_anisotropy", Quantity(bounds=CORRELATION, source=TIMKEY_2021))
quantities.add(
    "contribution", Quantity(label="contribution to anisotropy", source=f"{TIMKEY_2021}, eq. 3")
)
quantities.add("share_of_anisotropy", Quantity(percent=True, source=TIMKEY_2021))
for _name, _label, _bounds, _source in (
    ("self_similarity", "self-similarity", CORRELATION, "definition 1"),
    ("intra_sentence_similarity", "intra-sentence similarity", CORRELATION, "definition 2"),
    ("maximum_explainable_variance", "maximum explainable variance", SHARE, "definition 3"),
):
    _source = f"{ETHAYARAJH_2019}, {_source}"
    quantities.add(_name, Quantity(label=_label, bounds=_bounds, source=_source))
    quantities.add(
        f"{_name}_baseline", Quantity(label=f"expected {_label}", bounds=_bounds, source=_source)
    )
    quantities.add(f"{_name}_adjusted", Quantity(label=f"adjusted {_label}", source=_source))
quantities.add("participation_ratio", Quantity(digits=1, bounds=POSITIVE, source="Gao et al. 2017"))
quantities.add("norm_mean", Quantity(label="norm", digits=2, bounds=POSITIVE))
quantities.add("norm_sd", Quantity(label="sd of norm", digits=2, bounds=POSITIVE))
quantities.add("zero_vectors", Quantity(digits=0, bounds=POSITIVE))
quantities.add("position_share", Quantity(label="position", percent=True, source="ε², Kelley 1935"))
quantities.add(
    "position_share_within_types",
    Quantity(label="position within types", percent=True, source="adjusted R²"),
)
quantities.add("nmi", Quantity(label="NMI", bounds=SHARE, source="Vinh et al. 2010"))
quantities.add("ami", Quantity(label="AMI", source="Vinh et al. 2010, AMI_sum"))
quantities.add("cka", Quantity(label="CKA", digits=2, bounds=SHARE, source="Kornblith et al. 2019"))

# Attention, and its change between models. `feature`: the most attention to a word of a kind.
# `offset`: attention to the token at a distance (0: itself). `pattern`: attention along the
# diagonal, in the two strongest columns, or within a segment. `relation`: share of words that
# attend most to their head, or their dependent. `role`: the most attention from a word of an
# argument to one of the predicate, or back. `uas`: right heads in the maximum spanning tree.
CLARK_2019, KOVALEVA_2019 = "Clark et al. 2019", "Kovaleva et al. 2019"
for _name, _label, _source in (
    ("entropy", "entropy", f"{CLARK_2019}, section 3.3"),
    ("first", "first token", f"{CLARK_2019}, section 3.2"),
    ("separators", "separators", f"{CLARK_2019}, section 3.2"),
    ("special", "special tokens and punctuation", f"{CLARK_2019}, section 3.2"),
    ("offset", "offset", f"{CLARK_2019}, section 3.1"),
    ("pattern", "pattern", f"{KOVALEVA_2019}, section 4.1"),
    ("feature", "feature", f"{KOVALEVA_2019}, section 4.4"),
    ("relation", "relation", f"{CLARK_2019}, section 4.2.1"),
    ("role", "role", f"{KOVALEVA_2019}, section 4.2"),
    ("uas", "UAS", "Raganato & Tiedemann 2018"),
):
    quantities.add(_name, Quantity(label=_label, percent=True, bounds=SHARE, source=_source))
quantities.add("above_baseline", Quantity(percent=True, bounds=CORRELATION))
quantities.add("divergence", Quantity(unit="nats", bounds=(0.0, math.log(2)), source="Lin 1991"))
quantities.add("cosine", Quantity(bounds=CORRELATION, source=f"{KOVALEVA_2019}, section 4.3"))

# Fits of probes.
quantities.add("strength", Quantity(label="L2 strength", bounds=POSITIVE))
quantities.add("stopped", Quantity(label="share of steps", percent=True, bounds=SHARE))
quantities.add("dev_loss", Quantity(lower_is_better=True))

# Ranking of examples of two classes.
for _name, _label, _source in (
    ("auroc", "AUROC", "Hanley & McNeil 1982"),
    ("average_precision", "average precision", "Manning et al. 2008, section 8.4"),
    ("recall_at_5_fpr", "recall at 5 % FPR", "a point of the ROC curve, Fawcett 2006"),
):
    quantities.add(_name, Quantity(label=_label, percent=True, bounds=SHARE, source=_source))

# Training variance.
for _name, _label in (
    ("layer_training_sd", "SD over trainings"),
    ("training_sd", "pooled"),
    ("retraining_sd", "seeds alone"),
    ("sampling_sd", "samples alone"),
):
    _sd = Quantity(label=_label, of_task=True, deviation=True, bounds=POSITIVE)
    quantities.add(_name, _sd)
quantities.add("p_best", Quantity(bounds=SHARE))

# Localisation.
TENNEY_2019 = "Tenney et al. 2019a"
quantities.add("mix_score", Quantity(label="score", of_task=True, source=TENNEY_2019))
quantities.add("mix_strength", Quantity(label="L2 strength", bounds=POSITIVE))
quantities.add("mix_weight", Quantity(digits=2, bounds=SHARE, source=f"{TENNEY_2019}, eq. 1"))
quantities.add("total_gain", Quantity(label="gain over layer 0", of_task=True, source=TENNEY_2019))
_eq = f"{TENNEY_2019}, eq. 4"
quantities.add("expected_layer", Quantity(digits=2, skewed=True, source=_eq))
_eq = f"{TENNEY_2019}, eq. 2"
quantities.add("centre_of_gravity", Quantity(digits=2, skewed=True, bounds=POSITIVE, source=_eq))
_kl = Quantity(
    label="KL from uniform", unit="bits", digits=2, skewed=True, bounds=POSITIVE, source=TENNEY_2019
)
quantities.add("kl", _kl)

# Description length.
VOITA_2020 = "Voita & Titov 2020"
quantities.add(
    "codelength", Quantity(unit="bits", digits=0, bounds=POSITIVE, source=f"{VOITA_2020}, eq. 3")
)
quantities.add("compression", Quantity(digits=2, bounds=POSITIVE, source=VOITA_2020))
quantities.add("bits_per_label", Quantity(label="bits per label", digits=2, bounds=POSITIVE))

# Selectivity.
quantities.add("selectivity", Quantity(of_task=True, source="Hewitt & Liang 2019"))
quantities.add(
    "types_seen",
    Quantity(label="test examples with a type seen in train", percent=True, bounds=SHARE),
)
quantities.add("control_types", Quantity(digits=0, bounds=POSITIVE))
quantities.add(
    "control_sd", Quantity(label="SD over draws", of_task=True, deviation=True, bounds=POSITIVE)
)

# Conditional probing.
quantities.add("added_bits", Quantity(label="bits per example", source="Hewitt et al. 2021"))
quantities.add("added_points", Quantity(label="added", of_task=True))
quantities.add("examples_left_out", Quantity(label="examples left out", digits=0, bounds=POSITIVE))

quantities.add("examples", Quantity(digits=0, bounds=POSITIVE))

# Ablation.
quantities.add("ablation_drop", Quantity(label="drop", source=f"{KOVALEVA_2019}, section 4.6"))
quantities.add("loss_increase", Quantity(label="increase of loss", unit="nats", source="−log p"))
quantities.add("importance", Quantity(bounds=POSITIVE, source="Michel et al. 2019, section 4"))
quantities.add("rank_correlation", Quantity(label="rank correlation", bounds=CORRELATION))
quantities.add(
    "cloze_drop", Quantity(label="drop of cloze accuracy", percent=True, source="Goldberg 2019")
)
quantities.add("log_odds_drop", Quantity(label="drop of log-odds", unit="nats"))
quantities.add(
    "smallest_drop",
    Quantity(label="smallest drop found", percent=True, bounds=SHARE, source="Miettinen 1968"),
)

# Erasure.
ELAZAR_2021 = "Elazar et al. 2021"
quantities.add("erasure_drop", Quantity(label="drop", percent=True, source=ELAZAR_2021))
quantities.add("probe_score", Quantity(label="probe score", percent=True))
quantities.add("erased_rank", Quantity(digits=0, bounds=POSITIVE, source="Belrose et al. 2023"))
quantities.add(
    "erased_variance", Quantity(label="share of variance erased", percent=True, bounds=POSITIVE)
)

# Behaviour.
quantities.add(
    "pair_accuracy",
    Quantity(label="accuracy", percent=True, bounds=SHARE, source="Warstadt et al. 2020"),
)
ETTINGER_2020, GOLDBERG_2019 = "Ettinger 2020", "Goldberg 2019"
for _name, _label, _source in (
    ("completion_accuracy", "completion", ETTINGER_2020),
    ("sensitivity", "sensitivity", ETTINGER_2020),
    ("sensitivity_chance", "sensitivity by chance", ETTINGER_2020),
    ("cloze_accuracy", "accuracy", GOLDBERG_2019),
    ("decodable", "decodable", GOLDBERG_2019),
    ("both", "both", GOLDBERG_2019),
    ("decodable_only", "decodable only", GOLDBERG_2019),
    ("used_only", "used only", GOLDBERG_2019),
    ("neither", "neither", GOLDBERG_2019),
    ("readable", "readable", "nostalgebraist 2020"),
    ("used", "used", GOLDBERG_2019),
):
    quantities.add(_name, Quantity(label=_label, percent=True, bounds=SHARE, source=_source))
quantities.add("lost", Quantity(percent=True, bounds=CORRELATION))
quantities.add(
    "error_consistency",
    Quantity(label="κ of errors", digits=2, bounds=CORRELATION, source="Geirhos et al. 2020"),
)
quantities.add("answer_threshold", Quantity(label="threshold of train", unit="nats"))
quantities.add("decodable_less_used", Quantity(label="decodable less used", percent=True))
quantities.add(
    "mean_of_paradigms", Quantity(percent=True, bounds=SHARE, source="Warstadt et al. 2020")
)

# Malformed sentences.
for _name, _label in (
    ("malformed_score", "score on malformed text"),
    ("intact_score", "score on intact text"),
    ("malformed_drop", "drop on malformed text"),
):
    quantities.add(_name, Quantity(label=_label, of_task=True))

# Transfer between corpora.
PIRES_2019 = "Pires et al. 2019"
LIBOVICKY_2020 = "Libovický et al. 2020"
quantities.add("transfer_score", Quantity(of_task=True, source=PIRES_2019))
quantities.add("transfer_difference", Quantity(of_task=True, source=PIRES_2019))
quantities.add("centroid_cosine", Quantity(bounds=CORRELATION, source=LIBOVICKY_2020))
quantities.add("examples_without_label", Quantity(digits=0, bounds=POSITIVE))
quantities.add("retrieval_accuracy", Quantity(percent=True, bounds=SHARE, source=LIBOVICKY_2020))
quantities.add("cka_of_languages", replace(quantities.get("cka"), label="CKA of languages"))

quantities.mark_as_shipped()
