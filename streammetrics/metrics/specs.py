"""Metrics as text, ``F1,FBeta(beta=2),ROCAUC``: parsed into specifications, then built."""

from __future__ import annotations

import ast
import inspect
import math
import os
import re
import sys
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isabstract
from typing import TYPE_CHECKING

from streammetrics.core.columns.batch import near
from streammetrics.core.errors import StreamMetricsError
from streammetrics.core.metric import Metric
from streammetrics.core.names import letters, meant_metric
from streammetrics.core.registry import metric_names, public

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import ModuleType

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


def with_ours(parameters: Options, known: Mapping[str, object]) -> Options:
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


# Python's spelling and JSON's, in any case.
WORDS = {
    "none": None, "null": None, "true": True, "false": False, "nan": math.nan, "inf": math.inf,
}  # fmt: skip


class SpecError(StreamMetricsError, ValueError):
    """The text names no known metric, or a parameter that the metric does not have."""


@dataclass(frozen=True)
class Spec:
    """The name of a metric and its parameters."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        written = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        name = self.name.rpartition(":")[2]
        return f"{name}({written})" if written else name


def parse(text: str) -> list[Spec]:
    """Parse a list of metrics such as ``F1,FBeta(beta=2)``; names may be in any case.

    Ranking metrics may also have the names and parameters of ir_measures, trec_eval and ranx:
    ``nDCG@10,P_5,AP(rel=2)``.

    Values are written as in Python or JSON; any other word is a string: ``F1(average=none)``,
    ``F1(average=macro)``. ``my_module:Metric(alpha=2)`` is a metric of a user's module, which is
    imported.

    Raises:
        SpecError: The text is not a list of metrics, or names an unknown one.
    """
    try:
        spelled_out, own = _OWN.subn(".", in_python(text))
        tree = ast.parse(f"[{spelled_out}]", mode="eval").body
        items = tree.elts if isinstance(tree, ast.List) else []
        calls = [called(item) for item in items]
        if sum(":" in name for name, _ in calls) != own:
            calls = []  # a dot is no colon
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        calls = []
    if not calls:
        raise SpecError(
            f"{text!r}: expected names and parameters such as F1,FBeta(beta=2),ROCAUC; "
            "streammetrics metrics lists what there is"
        )
    return [_meant(name, parameters) for name, parameters in calls]


# The colon between a module and a class; in a text between quotes there are others.
_OWN = re.compile(r"""(?<=[\w.]):(?=[A-Za-z_]\w*(?:[\s(,]|$))(?=(?:[^"']|"[^"]*"|'[^']*')*$)""")


def metric_class(name: str) -> type[Metric]:
    """Return a metric's class by name; ``module:Class`` imports the module.

    Raises:
        SpecError: The module cannot be imported, or has no such metric.
    """
    module, _, own = name.rpartition(":")
    if not module:
        found: type[Metric] = public(name)
        return found
    imported = import_own(module)
    metrics = {
        known: each
        for known, each in vars(imported).items()
        if isinstance(each, type) and issubclass(each, Metric) and not isabstract(each)
    }
    if own not in metrics:
        raise SpecError(f"module {module} has no metric {own!r}{near(own, metrics)}")
    return metrics[own]


def import_own(module: str) -> ModuleType:
    """Import a module of the user, also from the current directory.

    Raises:
        SpecError: There is no such module, or it fails.
    """
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise SpecError(f"cannot import {module}: {type(error).__name__}: {error}") from error


def _meant(name: str, parameters: Mapping[str, object]) -> Spec:
    """Return the specification of a name, also one of a ranking tool: ``nDCG@10``, ``P_5``."""
    if ":" in name:
        metric_class(name)
        return Spec(name, parameters)
    stem, _, depth = name.partition("@")
    found = spelled(stem, ast.literal_eval(depth) if depth else None)
    if found is None or (not depth and letters(name) in map(letters, metric_names())):
        found = known_as(name, metric_names()), {}
    known = inspect.signature(public(found[0])).parameters
    return Spec(found[0], with_ours({**found[1], **parameters}, known))


def called(item: ast.expr) -> tuple[str, Options]:
    """Return the name and keyword parameters of a parsed call; the call is never executed.

    A name or a call may be followed by a depth: ``nDCG@10``, ``P(rel=2)@10``.

    Raises:
        ValueError: The expression is neither a name nor a call with keywords.
    """
    if isinstance(item, ast.Name):
        return item.id, {}
    if isinstance(item, ast.Attribute):  # module.Class, of which `parse` has removed the colon
        return f"{ast.unparse(item.value)}:{item.attr}", {}
    if isinstance(item, ast.Call) and not item.args:
        if isinstance(item.func, ast.Name | ast.Attribute):
            return called(item.func)[0], {str(k.arg): _value(k.value) for k in item.keywords}
        raise ValueError("not a call of a name")
    match item:
        case ast.BinOp(
            ast.Name() | ast.Call() as stem,
            ast.MatMult(),
            ast.Constant(value=int() | float() as at),
        ):
            name, parameters = called(stem)
            return f"{name}@{at!r}", parameters
    raise ValueError("neither a name nor a call with keywords")


def value(text: str) -> object:
    """Parse a value as `parse` does, or a comma-separated list; return any other text as it is.

    >>> value("0.5"), value("macro"), value("none"), value("0,1,2"), value("cat, dog"), value("a-1")
    (0.5, 'macro', None, (0, 1, 2), ('cat', 'dog'), 'a-1')

    """
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    try:
        found = _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return parts if "," in text else text.strip()
    texts = [isinstance(item, str) for item in found] if isinstance(found, tuple) else []
    return parts if any(texts) and not all(texts) else found


def _value(node: ast.expr) -> object:
    match node:
        case ast.Name(id=word):
            return WORDS.get(word.lower(), word)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return tuple(map(_value, items))
        case _:
            return ast.literal_eval(node)


def known_as(name: str, names: Collection[str]) -> str:
    """Return the known name that matches, ignoring case and underscores: ``roc_auc`` is ROCAUC."""
    found = {letters(known): known for known in names}.get(letters(name))
    if found is None:
        raise SpecError(
            f"no metric {name!r}{meant_metric(name, names)}; "
            "streammetrics metrics lists what there is, and your own are module:Metric"
        )
    return found


def parameters_of(spec: Spec) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a metric; raise `SpecError` if it lacks one that was given."""
    parameters = inspect.signature(metric_class(spec.name)).parameters
    for name in spec.parameters:
        if name not in parameters:
            raise SpecError(f"{spec.name} has no parameter {name!r}{near(name, parameters)}")
    return parameters


def construct(spec: Spec) -> Metric:
    """Build the metric.

    Raises:
        SpecError: A required parameter is missing, a given one is unknown, or a value is refused.
    """
    known, cls = parameters_of(spec), metric_class(spec.name)
    for name, parameter in known.items():
        if parameter.default is parameter.empty and name not in spec.parameters:
            raise SpecError(
                f"{spec.name} needs {name}, {cls._parameters[name].words}: {spec.name}({name}=...)"
            )
    try:
        metric: Metric = cls(**spec.parameters)
    except (ValueError, TypeError) as error:
        why = str(error)
        if isinstance(error, TypeError):  # a value that cannot be compared with the limits
            types = [f"{name} is {known[name].annotation}" for name in spec.parameters]
            why = f"a parameter is of the wrong type: {', '.join(types) or error}"
        raise SpecError(why if why.startswith(cls.__name__) else f"{spec}: {why}") from None
    return metric
