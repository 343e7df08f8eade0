"""The register of quantities: label, format and source of each number.

Metrics of tasks are registered in `probes.statistics.metrics`, all other numbers here. Plug-ins may
add their own: `quantities.add("mean_norm", Quantity(…))`. An unregistered number is printed under
its own name with three digits.
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
    """Label, format, bounds and source of a number.

    Attributes:
        label: name in tables and on axes; if empty, the registered name in words.
        unit: such as "bits"; shown on axes.
        percent: whether the number is a proportion, shown times 100.
        digits: decimals of a number that is no proportion.
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

    @property
    def differences(self) -> tuple[float, float]:
        """Lowest and highest possible difference of two values."""
        low, high = self.bounds
        return low - high, high - low


quantities: Registry[Quantity] = Registry("quantity")
"""Numbers that are not metrics of tasks."""

# Name | label | unit | kind | bounds | source. A kind may have several parts, such as "skewed,
# 2 digits". By default numbers have three digits and no bounds.
_TABLE = """
# Structure. Root accuracy and NSpr are metrics of tasks.
uuas | UUAS | % |  | share | Hewitt & Manning 2019
chain_uuas | UUAS of neighbours | % |  | share | Hewitt & Manning 2019
control_uuas | control UUAS | % |  | share | Hewitt & Manning 2019
chain_control_uuas | control UUAS of neighbours | % |  | share | Hewitt & Manning 2019
recall |  | % |  | share | Hewitt & Manning 2019
chain_recall | recall of neighbours | % |  | share | Hewitt & Manning 2019
dspr | DSpr |  |  | correlation | Hewitt & Manning 2019
distance_loss |  |  | error | positive | Hewitt & Manning 2019
depth_loss |  |  | error | positive | Hewitt & Manning 2019
control_uuas_draw_sd | control UUAS, SD over draws | % | deviation | positive |
uuas_training_sd | UUAS, SD over training samples | % | deviation | positive |
dspr_training_sd | DSpr, SD over training samples |  | deviation | positive |
root_accuracy_training_sd | root acc., SD over training samples | % | deviation | positive |
nspr_training_sd | NSpr, SD over training samples |  | deviation | positive |
uuas_p_best |  |  |  | share |
dspr_p_best |  |  |  | share |
root_accuracy_p_best |  |  |  | share |
nspr_p_best |  |  |  | share |

# Geometry.
anisotropy |  |  |  | correlation | Ethayarajh 2019, section 3.3
standardised_anisotropy |  |  |  | correlation | Timkey & van Schijndel 2021
contribution | contribution to anisotropy |  |  |  | Timkey & van Schijndel 2021, eq. 3
share_of_anisotropy |  | % |  |  | Timkey & van Schijndel 2021
self_similarity | self-similarity |  |  | correlation | Ethayarajh 2019, definition 1
self_similarity_baseline | expected self-similarity |  |  | correlation | Ethayarajh 2019, definition 1
self_similarity_adjusted | adjusted self-similarity |  |  |  | Ethayarajh 2019, definition 1
intra_sentence_similarity | intra-sentence similarity |  |  | correlation | Ethayarajh 2019, definition 2
intra_sentence_similarity_baseline | expected intra-sentence similarity |  |  | correlation | Ethayarajh 2019, definition 2
intra_sentence_similarity_adjusted | adjusted intra-sentence similarity |  |  |  | Ethayarajh 2019, definition 2
maximum_explainable_variance |  |  |  | share | Ethayarajh 2019, definition 3
maximum_explainable_variance_baseline | expected maximum explainable variance |  |  | share | Ethayarajh 2019, definition 3
maximum_explainable_variance_adjusted | adjusted maximum explainable variance |  |  |  | Ethayarajh 2019, definition 3
participation_ratio |  |  | 1 digits | positive | Gao et al. 2017
norm_mean | norm |  | 2 digits | positive |
norm_sd | sd of norm |  | 2 digits | positive |
zero_vectors |  |  | 0 digits | positive |
nmi | NMI |  |  | share | Vinh et al. 2010
ami | AMI |  |  |  | Vinh et al. 2010, AMI_sum
cka | biased CKA |  | 2 digits | share | Kornblith et al. 2019
position_share | position | % |  |  | ε², Kelley 1935; adjusted R²
position_share_shuffled | shuffled positions | % |  |  | adjusted R²
language_share | variance between languages | % |  |  | ε², Kelley 1935
language_accuracy | language identification | % |  | share | Libovický et al. 2019, section 3
retrieval_accuracy | retrieval | % |  | share | Libovický et al. 2019, section 3
common_pieces | | % |  | share | Pires et al. 2019, section 3
unbiased_cka | CKA |  | 2 digits | | Song et al. 2012; Nguyen et al. 2021

# Attention. `feature`: the most attention to a word of a kind. `offset`: attention to the token at
# a distance (0: itself). `pattern`: attention along the diagonal, or in the two strongest columns.
# `relation`: share of words that attend most to their head, or their dependent. `role`: the most
# attention between a word of an argument and one of its predicate. `uas`: right heads in the
# maximum spanning tree.
map_cosine | cosine |  |  | share | Kovaleva et al. 2019, section 4.3
map_divergence | divergence |  |  | positive | Lin 1991
head_distance_within | within the layer |  |  | positive | Clark et al. 2019, section 6
head_distance_between | to other layers |  |  | positive | Clark et al. 2019, section 6
head_distance_difference | difference |  |  |  | Clark et al. 2019, section 6
entropy |  | % |  | share | Clark et al. 2019, section 3.3
first | first token | % |  | share | Clark et al. 2019, section 3.2
separators |  | % |  | share | Clark et al. 2019, section 3.2
special | special tokens and punctuation | % |  | share | Clark et al. 2019, section 3.2
offset |  | % |  | share | Clark et al. 2019, section 3.1
other_segment | other segment | % |  | share | Kovaleva et al. 2019, section 4.1
other_segment_control | of another document | % |  | share | Kovaleva et al. 2019, section 4.1
other_segment_difference | difference | % |  | correlation |
attention_gradient | gradient |  | 4 digits | positive | Clark et al. 2019, section 3.2
relative_gradient | relative |  | 2 digits | positive |
attention_share | attention | % |  | share | Clark et al. 2019, section 3.2
pattern |  | % |  | share | Kovaleva et al. 2019, section 4.1
feature |  | % |  | share | Kovaleva et al. 2019, section 4.4
relation |  | % |  | share | Clark et al. 2019, section 4.2.1
role |  | % |  | share | Kovaleva et al. 2019, section 4.2
antecedent |  | % |  | share | Clark et al. 2019, section 4.3
subject_share | subject | % |  | share | after Lin et al. 2019
confusion |  | bits | error, 2 digits | positive | Lin et al. 2019
uas | UAS | % |  | share | Raganato & Tiedemann 2018
above_baseline |  | % |  | correlation |
cosine |  |  |  | correlation | Kovaleva et al. 2019, section 4.3

# Fits of probes.
strength | L2 strength |  |  | positive |
stopped | percentage of steps | % |  | share |
dev_loss |  |  | error |  |

# Decisions by a threshold between two classes.
threshold |  |  |  |  |
false_positive_rate | FPR at the threshold | % | skewed | share | Fawcett 2006
hit_rate | recall at the threshold | % | skewed | share | Fawcett 2006

# Training variance.
layer_training_sd | SD over trainings |  | of task, deviation | positive |
training_sd | pooled |  | of task, deviation | positive |
retraining_sd | seeds alone |  | of task, deviation | positive |
sampling_sd | samples alone |  | of task, deviation | positive |
p_best |  |  |  | share |

# Localisation.
mix_score | score |  | of task |  | Tenney et al. 2019a
mix_strength | L2 strength |  |  | positive |
mix_weight |  |  | 2 digits | share | Tenney et al. 2019a, eq. 1
total_gain | gain over layer 0 |  | of task |  | Tenney et al. 2019a
expected_layer |  |  | skewed, 2 digits |  | Tenney et al. 2019a, eq. 4
centre_of_gravity |  |  | skewed, 2 digits | positive | Tenney et al. 2019a, eq. 2
kl | KL from uniform | bits | skewed, 2 digits | positive | Tenney et al. 2019a

# Description length.
codelength |  | bits | 0 digits | positive | Voita & Titov 2020, eq. 3
compression |  |  | 2 digits | positive | Voita & Titov 2020
bits_per_label |  |  | 2 digits | positive |

# Selectivity.
selectivity |  |  | of task |  | Hewitt & Liang 2019
types_seen | test examples with a type seen in train | % |  | share |
control_types |  |  | 0 digits | positive |
control_sd | SD over draws |  | of task, deviation | positive |

# Sparse probing.
sparse_score | score |  | of task |  | Gurnee et al. 2023
random_features | random |  | of task |  |

# Conditional probing.
added_bits | bits per example |  |  |  | Hewitt et al. 2021
added_points | added |  | of task |  |
examples_left_out |  |  | 0 digits | positive |
examples |  |  | 0 digits | positive |

# Ablation.
ablation_drop | drop |  |  |  | Kovaleva et al. 2019, section 4.6
loss_increase | increase of loss | nats |  |  | −log p
cloze_drop | drop of cloze accuracy | % |  | correlation | Goldberg 2019
log_odds_drop | drop of log-odds | nats |  |  |
head_importance | importance | nats |  | positive | Michel et al. 2019, equation 2
importance_correlation | correlation with importance |  | 2 digits | correlation | Spearman
smallest_drop | smallest drop found | % |  | share | Miettinen 1968

# Erasure.
erasure_drop | drop | % |  |  | Elazar et al. 2021
probe_score |  | % |  |  |
erased_rank |  |  | 0 digits | positive | Belrose et al. 2023
erased_variance | variance erased | % |  | positive |
answer_drop | drop of answers of the label | % |  | correlation |

# Interchange interventions.
log_odds_ratio |  | nats |  |  | Arora et al. 2024, section 4
flipped |  | % |  | share | Geiger et al. 2021

# Steering.
steered_log_odds | change of log-odds | nats | 2 digits |  | Rimsky et al. 2024
moved_against | moved against the dose | % |  | share | Tan et al. 2024
answered | answer that comes first | % |  | share |
steering_separation | separation | SD | 2 digits | positive | Braun et al. 2025
steering_agreement | agreement of differences |  | 2 digits | correlation | Braun et al. 2025

# Behaviour.
pair_accuracy | accuracy | % |  | share | Warstadt et al. 2020
completion_accuracy | completion | % |  | share | Ettinger 2020
sensitivity |  | % |  | share | Ettinger 2020
sensitivity_chance | sensitivity by chance | % |  | share | Ettinger 2020
cloze_accuracy | accuracy | % |  | share | Goldberg 2019
decodable |  | % |  | share | Goldberg 2019
both |  | % |  | share | Goldberg 2019
decodable_only |  | % |  | share | Goldberg 2019
used_only |  | % |  | share | Goldberg 2019
neither |  | % |  | share | Goldberg 2019
readable |  | % |  | share | nostalgebraist 2020
used |  | % |  | share | Goldberg 2019
lost |  | % |  | correlation |
error_consistency | κ of errors |  | 2 digits | correlation | Geirhos et al. 2020
answer_threshold | threshold of train | nats |  |  |
decodable_less_used |  | % |  |  |
mean_of_paradigms |  | % |  | share | Warstadt et al. 2020

# Malformed sentences.
malformed_score | score on malformed text |  | of task |  |
intact_score | score on intact text |  | of task |  |
malformed_drop | drop on malformed text |  | of task |  |

# Compression.
kept_gain | kept gain | % |  |  | Sanh et al. 2019, of scores

# Transfer between corpora.
transfer_score |  |  | of task |  | Pires et al. 2019
transfer_difference |  |  | of task |  | Pires et al. 2019
centroid_cosine |  |  |  | correlation | Libovický et al. 2020
examples_without_label |  |  | 0 digits | positive |
"""  # noqa: E501

_BOUNDS = {
    "": (-math.inf, math.inf),
    "share": SHARE,
    "correlation": CORRELATION,
    "positive": POSITIVE,
}

for _line in _TABLE.splitlines():
    if _line and not _line.startswith("#"):
        _name, _label, _unit, _kind, _bounds, _source = [
            *map(str.strip, _line.split("|")),
            *[""] * (5 - _line.count("|")),
        ]
        _kinds = _kind.split(", ")
        _quantity = Quantity(
            label=_label,
            unit="" if _unit == "%" else _unit,
            percent=_unit == "%",
            digits=next((int(x[0]) for x in _kinds if x.endswith("digits")), 3),
            of_task="of task" in _kinds,
            deviation="deviation" in _kinds,
            skewed="skewed" in _kinds,
            lower_is_better="error" in _kinds,
            bounds=_BOUNDS[_bounds],
            source=_source,
        )
        quantities.add(_name, _quantity)

quantities.mark_as_shipped()
