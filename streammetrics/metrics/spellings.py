"""Names that ir_measures, trec_eval and ranx have for metrics of rankings: nDCG@10, P_5, AP."""

from __future__ import annotations

import re
from typing import Any

from streammetrics.core.catalogue import letters

# By small letters without underscores; those with a depth have it behind @ or an underscore.
_WHOLE = {
    "ap": "MAP", "rr": "MRR", "reciprank": "MRR", "rprec": "RPrecision",
    "setp": "SetPrecision", "setr": "SetRecall", "11ptavg": "ElevenPointAP", "setmap": "SetAP",
}  # fmt: skip
_AT = {
    "ap": "MAP", "map": "MAP", "mapcut": "MAP", "rr": "MRR", "mrr": "MRR",
    "ndcg": "NDCG", "ndcgcut": "NDCG", "dcg": "DCG",
    "p": "PrecisionAtK", "precision": "PrecisionAtK", "r": "RecallAtK", "recall": "RecallAtK",
    "f1": "FBetaAtK", "success": "HitRateAtK", "hitrate": "HitRateAtK", "hits": "HitsAtK",
    "judged": "JudgedAtK", "err": "ExpectedReciprocalRank", "fallout": "FallOutAtK",
    "iprec": "InterpolatedPrecision", "iprecatrecall": "InterpolatedPrecision",
}  # fmt: skip
_COUNTS = {"numq": "queries", "numret": "results", "numrel": "relevant", "numrelret": "hits"}
_DEPTH = re.compile(r"(.+?)(?:@|_)(\d+)")


def spelled(name: str, depth: Any = None) -> tuple[str, dict[str, Any]] | None:
    """Return the metric that is called so, and its parameters; ``None`` if none is.

    >>> spelled("nDCG", 10), spelled("P_5"), spelled("AP"), spelled("Accuracy")
    (('NDCG', {'k': 10}), ('PrecisionAtK', {'k': 5}), ('MAP', {}), None)
    """
    found = _DEPTH.fullmatch(name)
    if depth is None and found:
        name, depth = found[1], int(found[2])
    if depth is None and letters(name) in _COUNTS:
        return "RankingCount", {"of": _COUNTS[letters(name)]}
    metric = (_WHOLE if depth is None else _AT).get(letters(name))
    if metric is None or depth is None:
        return None if metric is None else (metric, {})
    return metric, {"recall" if metric == "InterpolatedPrecision" else "k": depth}
