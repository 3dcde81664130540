"""Mistakes in the class of an author: each is one sentence where the class is defined."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Annotated, Any, Callable, ClassVar, Literal  # noqa: UP035 - what authors write

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.authoring import (
    Between,
    ContingencyMetric,
    Floats,
    Metric,
    Numbers,
    Points,
    Positive,
    QueryMean,
    RowMean,
    SampleMetric,
    Schema,
    Statistic,
    Sum,
    prepare,
)


def row(self, values: Floats):
    return values


def parameter(annotation: Any, **default: Any) -> dict[str, Any]:
    return {"row": row, "__annotations__": {"scale": annotation}, **default}


def later(self, values):
    yield values


async def promised(self, values):
    return values


OF_STATISTIC = {
    "schema": property(lambda self: Schema((Numbers("values"),))),
    "update": lambda self, values, *, weight: None,
}
OF_METRIC = {
    "statistics": lambda self: sm.Mean().statistics(),
    "update": lambda self, values: self.feed({"values": values}),
    "readout": lambda self, mean: 1.0,
}
MEAN = sm.Mean().statistics()[0]
LISTS = parameter(tuple[float, ...], scale=[1.0])
MISTAKES = [
    # Parameters.
    ((RowMean,), {"row": row, "__annotations__": {"update": float}}, "'update' is reserved"),
    ((RowMean,), {"row": row, "__annotations__": {"row": float}}, "'row' is reserved"),
    ((RowMean,), parameter(dict), "Own.scale cannot be of type dict"),
    ((RowMean,), parameter(Callable), "write a name, Literal"),
    ((RowMean,), parameter(bytes, scale=b""), "annotated with bytes: parameters are float, int"),
    ((RowMean,), parameter(np.float64, scale=1.0), "annotated with float64: parameters are"),
    ((RowMean,), parameter(sm.F1, scale=None), "Own.scale is annotated with F1"),
    ((RowMean,), parameter("Flot", scale=1.0), "not known at run time (name 'Flot' is not"),
    ((RowMean,), parameter(Positive, scale=1.0), "a constraint alone: write Annotated[float"),
    ((RowMean,), parameter(float, scale="x"), "Own.scale = 'x': expected a number"),
    ((RowMean,), parameter(float, scale=None), "Own.scale = None: expected a number"),
    (
        (RowMean,),
        parameter(Annotated[float, Positive], scale=-1),
        "expected a finite number above 0",
    ),
    ((RowMean,), LISTS, "Own.scale = [1.0]: write a tuple"),
    ((RowMean,), parameter(float, scale=np.zeros(2)), "expected a number"),
    ((RowMean,), parameter(float, scale=property(row)), "is a property: leave it out"),
    ((RowMean,), parameter(float, scale=lambda x: x), "is a function: leave it out"),
    # What a class cannot define.
    ((RowMean,), {"row": row, "__init__": lambda self: None}, "Own defines __init__"),
    ((RowMean,), {"row": row, "__new__": lambda cls: None}, "Own defines __new__: leave it out"),
    ((RowMean,), {"row": row, "__slots__": ("x",)}, "Own defines __slots__: leave it out"),
    ((RowMean,), {"row": row, "__post_init__": row}, "Own defines __post_init__: leave it out"),
    ((RowMean,), {"row": row, "__eq__": lambda self, other: True}, "Own defines __eq__"),
    ((RowMean,), {"row": row, "compute": lambda self: 1.0}, "Own.compute is not called by sets"),
    ((RowMean, SampleMetric), {"row": row}, "has the bases RowMean and SampleMetric: choose one"),
    ((RowMean, QueryMean), {"row": row}, "has the bases RowMean and QueryMean: choose one"),
    ((RowMean, Statistic), {"row": row}, "has the bases RowMean and Statistic: choose one"),
    # Methods.
    ((RowMean,), {"row": property(row)}, "Own.row is a property: write a method, def row(self,"),
    ((RowMean,), {"row": staticmethod(row)}, "Own.row is a staticmethod: write a method"),
    ((RowMean,), {"row": classmethod(row)}, "Own.row is a classmethod: write a method"),
    ((RowMean,), {"row": 3}, "Own.row is an int: write a method"),
    ((RowMean,), {"row": later}, "Own.row is async or a generator: return the value"),
    ((RowMean,), {"row": promised}, "Own.row is async or a generator: return the value"),
    ((RowMean,), {"row": lambda: 1.0}, "Own.row has no self"),
    ((RowMean,), {"row": lambda self: 1.0}, "Own.row takes nothing but self: name what it is"),
    ((RowMean,), {"row": lambda self, sample_weight: 1.0}, "sample_weight is no column"),
    ((RowMean,), {"row": lambda self, counts: 1.0}, "counts is no column, as update has it anyway"),
    ((RowMean,), {"row": row, "of_mean": lambda self, *means: 1.0}, "of_mean: name each mean"),
    ((RowMean,), {"row": row, "of_mean": lambda self, a, b=1: a}, "of_mean: name each mean"),
    ((QueryMean,), {"of_query": lambda self, gain: 0.0}, "is called with (gain, rank)"),
    ((QueryMean,), {"of_query": lambda self, rank, gain: 0.0}, "takes (rank, gain), and it is"),
    (
        (ContingencyMetric,),
        {"read": lambda self, a, b: 0.0},
        "(a, b), and it is called with (table)",
    ),
    ((Metric,), {**OF_METRIC, "readout": lambda self: 1.0}, "Own.readout takes nothing but self"),
    ((Metric,), {**OF_METRIC, "readout": property(row)}, "Own.readout is a property"),
    ((Metric,), {**OF_METRIC, "total": Sum()}, "is a field, and metrics have none: put it into"),
    # Facts.
    ((RowMean,), {"row": row, "value_range": (5.0, 0.0)}, "expected (smallest, largest), or None"),
    ((RowMean,), {"row": row, "value_range": (0.0, np.nan)}, "Own.value_range = (0.0, nan)"),
    ((RowMean,), {"row": row, "value_range": 5.0}, "Own.value_range = 5.0: expected (smallest"),
    ((RowMean,), {"row": row, "value_range": "0-1"}, "Own.value_range = '0-1': expected"),
    ((RowMean,), {"row": row, "higher_is_better": "yes"}, "'yes': expected True, False or None"),
    (
        (RowMean,),
        {**parameter(float), "state_defaults": {"skale": 1.0}},
        "by name; there are nan_policy, scale",
    ),
    ((RowMean,), {"row": row, "state_defaults": {"scale"}}, "expected a dictionary by name"),
    # Preparations.
    (
        (RowMean,),
        {"row": prepare(lambda self, values: values)},
        "Own.row is marked with @prepare: mark another method",
    ),
    ((RowMean,), {"row": row, "_made": prepare(lambda self, text: 1)}, "of a public name"),
    ((RowMean,), {"row": row, "made": prepare(lambda self: 1)}, "name each argument of update"),
    ((RowMean,), {"row": row, "made": prepare(lambda self, *text: 1)}, "name each argument of"),
    (
        (RowMean,),
        {"row": row, "made": staticmethod(prepare(lambda text: 1))},
        "let it be a method, def made",
    ),
    ((sm.MAE,), {"made": prepare(lambda self, text: 1)}, "which is for RowMean and SampleMetric"),
    # Statistics.
    ((Statistic,), {**OF_STATISTIC, "arrays": Sum()}, "cannot be a field: it would hide"),
    ((Statistic,), {**OF_STATISTIC, "total": Sum}, "is the class Sum: make a field of it, Sum()"),
    (
        (Statistic,),
        {**OF_STATISTIC, "__annotations__": {"total": Sum}, "total": Sum()},
        "Own.total is a field: leave out its annotation",
    ),
    ((Statistic,), {**OF_STATISTIC, "schema": row}, "Own.schema is a method: write @property"),
    ((Statistic,), {**OF_STATISTIC, "update": row}, "Own.update takes no weight: write def upd"),
    ((Statistic,), {**OF_STATISTIC, "state_defaults": {"totl": None}}, "by name; there are none"),
    (
        (Statistic,),
        {**OF_STATISTIC, "total": Sum(), "state_defaults": {"total": 0}},
        "'total' is a field: expected None, or a value of the field",
    ),
    ((Statistic,), {**OF_STATISTIC, "__slots__": ("x",)}, "Own defines __slots__: leave it out"),
]


@pytest.mark.parametrize(("bases", "body", "message"), MISTAKES)
def test_a_mistake_is_refused_in_one_sentence(bases, body, message):
    with pytest.raises(TypeError, match=re.escape(message)) as error:
        type("Own", bases, dict(body))
    assert len(str(error.value)) < 250
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (float, 1),
        (int, 3),
        (bool, True),
        (str, "a"),
        (Literal["a", "b"], "b"),
        (tuple[float, ...], (1.0, 2.0)),
        (float | None, 2.0),
        (Annotated[float, Between(0, 1)], 0.5),
        (Any, 1),
        (ClassVar[list], []),
        (Sequence[float], (1.0, 2.0)),
    ],
)
def test_what_a_parameter_can_be_is_taken(annotation, default):
    own = type("Own", (RowMean,), parameter(annotation, scale=default))
    assert own().update([1.0, 3.0]).compute() == 2.0


def test_a_dataclass_is_refused_when_it_is_made():
    own = dataclasses.dataclass(type("Own", (RowMean,), parameter(float, scale=1.0)))
    with pytest.raises(TypeError, match="Own is a dataclass: leave the decorator out"):
        own()


@pytest.mark.parametrize("statistics", [MEAN, [MEAN], (type(MEAN),), (Sum(),), (), None])
def test_statistics_are_a_tuple_of_statistics(statistics):
    own = type("Own", (Metric,), {**OF_METRIC, "statistics": lambda self: statistics})
    with pytest.raises(TypeError, match=r"Own.statistics\(\) returned .*: return a tuple of obj"):
        own()


def test_points_are_a_named_tuple():
    with pytest.raises(TypeError, match=r"Own is not a named tuple: .* class Own\(Points, _Own\)"):
        type("Own", (Points,), {})


def test_what_an_abstract_class_lacks_is_named_when_it_is_made():
    base = type("Base", (RowMean,), {})  # of other classes
    with pytest.raises(TypeError, match="abstract method row"):
        base()
    assert type("Own", (base,), {"row": row})().update([1.0]).compute() == 1.0


def test_a_range_begins_with_the_smaller_end():
    with pytest.raises(ValueError, match=r"Between\(1, 0\): expected the smaller first"):
        Between(1, 0)


def test_a_class_without_docstring_is_a_class():
    assert type("Own", (RowMean,), {"row": row})().update([1.0]).compute() == 1.0
