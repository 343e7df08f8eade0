"""Claims of the literature about trees in word vectors, with their tests."""

from __future__ import annotations

from functools import partial

from probes.boards.claims.rules import Claim, Reads, greater, peak_in

_trees = partial(Reads, "structure", layers="all", rank="@rank")

CLAIMS = (
    Claim(
        "trees-recovered",
        "Linear maps of vectors recover much of dependency trees",
        "Primer 4.1; Hewitt & Manning 2019",
        "UD trees, from the middle layers; much means more than by linking neighbours",
        partial(greater, (_trees("uuas", layers="middle"), Reads("structure", "chain_uuas"))),
    ),
    Claim(
        "trees-middle",
        "Structural probes recover trees and their depths best from the middle layers",
        "Primer 5.2; Hewitt & Manning 2019",
        "UD trees, at one rank",
        partial(peak_in, (_trees("uuas_p_best"), "middle"), (_trees("nspr_p_best"), "middle")),
    ),
)
