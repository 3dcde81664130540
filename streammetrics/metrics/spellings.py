"""The names of ranking metrics in ir_measures, trec_eval and ranx: nDCG@10, P_5, AP."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from streammetrics.core.names import letters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.types import Options

# Keys are in lower case, without underscores. A depth follows @ or an underscore.
_WHOLE = {
    "ap": "MAP", "rr": "MRR", "reciprank": "MRR", "rprec": "RPrecision",
    "setp": "SetPrecision", "setr": "SetRecall", "setmap": "SetAP",
    "rbp": "RankBiasedPrecision", "err": "ExpectedReciprocalRank",
    "ndcgburges": "NDCG", "dcgburges": "DCG",
}  # fmt: skip
_AT = {
    "ap": "MAP", "map": "MAP", "mapcut": "MAP", "rr": "MRR", "mrr": "MRR",
    "ndcg": "NDCG", "ndcgcut": "NDCG", "dcg": "DCG", "ndcgburges": "NDCG", "dcgburges": "DCG",
    "p": "PrecisionAtK", "precision": "PrecisionAtK", "r": "RecallAtK", "recall": "RecallAtK",
    "f1": "FBetaAtK", "success": "HitRateAtK", "hitrate": "HitRateAtK", "hits": "HitsAtK",
    "judged": "JudgedAtK", "err": "ExpectedReciprocalRank", "fallout": "FallOutAtK",
    "iprec": "InterpolatedPrecision", "iprecatrecall": "InterpolatedPrecision",
}  # fmt: skip
_IMPLIED: Mapping[str, Mapping[str, object]] = {
    "err": {"max_grade": 4},  # as in gdeval, which ir_measures calls
    "ndcgburges": {"gain": "exponential"},
    "dcgburges": {"gain": "exponential"},
}
_COUNTS = {"numq": "queries", "numret": "results", "numrel": "relevant", "numrelret": "hits"}
_DEPTH = re.compile(r"(.+?)(?:@|_)(\d+)")

# Names that are invalid in Python (11pt_avg, rbp.95, r-precision), and their replacements.
_UNPYTHONIC = (
    (re.compile(r"\b11pt_avg\b"), "ElevenPointAP"),
    (re.compile(r"\biprec_at_recall_(\d\.\d+)"), r"iprec_at_recall@\1"),
    (re.compile(r"\brbp(\.\d+)"), r"rbp(p=0\1)"),
    (re.compile(r"\br-precision\b"), "r_precision"),
)

_GAINS = {"log2": "linear", "exp-log2": "exponential"}  # ir_measures' `dcg` of nDCG


def in_python(text: str) -> str:
    """Return a list of metrics with every name replaced by a valid Python name.

    >>> in_python("11pt_avg,iprec_at_recall_0.10,rbp.95")
    'ElevenPointAP,iprec_at_recall@0.10,rbp(p=0.95)'
    """
    for pattern, instead in _UNPYTHONIC:
        text = pattern.sub(instead, text)
    return text


def spelled(name: str, depth: object = None) -> tuple[str, Options] | None:
    """Return the metric and parameters that a name stands for, ``None`` if it is unknown.

    >>> spelled("nDCG", 10), spelled("P_5"), spelled("AP"), spelled("Accuracy")
    (('NDCG', {'k': 10}), ('PrecisionAtK', {'k': 5}), ('MAP', {}), None)
    """
    found = _DEPTH.fullmatch(name)
    if depth is None and found:
        name, depth = found[1], int(found[2])
    if depth is None and letters(name) in _COUNTS:
        return "RankingCount", {"of": _COUNTS[letters(name)]}
    metric = (_WHOLE if depth is None else _AT).get(letters(name))
    if metric is None:
        return None
    implied = dict(_IMPLIED.get(letters(name), {}))
    if depth is not None:
        implied["recall" if metric == "InterpolatedPrecision" else "k"] = depth
    return metric, implied


def with_ours(parameters: Mapping[str, Any], known: Mapping[str, object]) -> Options:
    """Return the parameters with ``rel`` and ``dcg`` of ir_measures translated.

    >>> with_ours({"rel": 2}, {"relevant_at": 1.0}), with_ours({"dcg": "exp-log2"}, {"gain": ""})
    ({'relevant_at': 2}, {'gain': 'exponential'})
    """
    ours = dict(parameters)
    if "rel" in ours and ours.get("of") == "results":
        ours["of"] = "hits"  # NumRet(rel=...) counts relevant results
    if "rel" in ours and "relevant_at" in known:
        ours["relevant_at"] = ours.pop("rel")
    if ours.get("dcg") in _GAINS and "gain" in known:
        ours["gain"] = _GAINS[ours.pop("dcg")]
    return ours
