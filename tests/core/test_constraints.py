"""Parameters are checked by the constraints in their annotations, with messages that say which."""

from __future__ import annotations

import inspect
import math
import re
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

import streammetrics as sm
from streammetrics.core.configured import Configured, differing
from streammetrics.core.constraints import Above, AtLeast, Between, OrNan, Outside, Satisfies


class Example(Configured):
    share: Annotated[float, Between(0, 1)] | None = None
    inside: Annotated[float, Between(0, 1, without=(0, 1))] = 0.5
    k: Annotated[int, AtLeast(1)] = 1
    size: Annotated[float, Above(0)] = 1
    power: Annotated[float, Outside(0, 1)] = 0.0
    even: Annotated[int, Satisfies(lambda value: value % 2 == 0, "an even integer")] = 2
    filler: Annotated[float, OrNan(1e9)] | None = None
    mode: Literal["a", "b"] | bool = "a"
    anything: Any = None
    shared: ClassVar[int] = 3
    _hidden: int = 4


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"share": 2}, "Example(share=2): expected a number from 0 to 1 or None"),
        ({"share": math.nan}, "Example(share=nan): expected a number from 0 to 1 or None"),
        ({"inside": 1}, "Example(inside=1): expected a number from 0 to 1, but not 0 or 1"),
        ({"k": 0}, "Example(k=0): expected an integer, 1 or above"),
        ({"k": True}, "Example(k=True): expected an integer, 1 or above"),
        ({"k": 1 << 63}, "Example(k=9223372036854775808): expected an integer, 1 or above"),
        ({"size": math.inf}, "Example(size=inf): expected a finite number above 0"),
        ({"power": 0.5}, "expected a finite number that is not between 0 and 1"),
        ({"power": -math.inf}, "expected a finite number that is not between 0 and 1"),
        ({"even": 3}, "Example(even=3): expected an even integer"),
        ({"filler": "x"}, "Example(filler='x'): expected a number from -1e+09 to 1e+09, nan or"),
        ({"filler": -2e9}, "Example(filler=-2000000000.0): expected a number from -1e+09 to"),
        ({"filler": math.inf}, "Example(filler=inf): expected a number from -1e+09 to 1e+09, nan"),
        ({"mode": "c"}, "Example(mode='c'): expected 'a' or 'b' or a boolean"),
        ({"anything": {}}, "Example(anything={}): expected"),
        ({"kk": 1}, "Example has no parameter 'kk'"),
    ],
)
def test_what_a_constraint_does_not_allow_is_told(given, told):
    with pytest.raises((ValueError, TypeError), match=re.escape(told)):
        Example(**given)


def test_values_and_defaults_are_brought_to_one_type():
    made = Example(share=np.float32(1), k=np.int8(3), filler=math.nan, anything=[1, [2]])
    assert made.config == {
        "share": 1.0, "inside": 0.5, "k": 3, "size": 1.0, "power": 0.0, "even": 2,
        "filler": made.filler, "mode": "a", "anything": (1, (2,)),
    }  # fmt: skip
    assert math.isnan(made.filler)
    assert [type(value) for value in (made.share, made.k, made.size)] == [float, int, float]
    again = Example(share=1, k=3, filler=float("nan"), anything=((1, (2,))))
    assert differing(made, again) == ""
    assert differing(made, Example(share=1, k=4)).startswith("k is 4 there and 3 here")
    with pytest.raises(AttributeError, match="k is fixed at construction: make another Example"):
        made.k = 5


def test_a_subclass_may_give_another_default_without_the_annotation():
    class Narrow(Example):
        k = 7

    assert (Narrow().k, Example().k) == (7, 1)
    with pytest.raises(ValueError, match=r"Narrow\(k=0\): expected an integer, 1 or above"):
        Narrow(k=0)
    assert inspect.signature(Narrow).parameters["k"].default == 7


def test_a_parameter_without_a_default_is_asked_for():
    with pytest.raises(TypeError, match="RecallAtK needs the parameter k: it has no default"):
        sm.RecallAtK()


def test_what_relates_parameters_is_all_that_is_left_to_methods():
    """Others are said in annotations: a method looks at several, or at the entries of one."""
    hooks: dict[type, set[str]] = {}
    public = filter(inspect.isclass, (getattr(sm, name) for name in sm.__all__))
    for cls in (thing for thing in public if issubclass(thing, sm.Metric)):
        for base in set(cls.__mro__) - {Configured, sm.Metric}:
            if "check_parameters" in base.__dict__:
                names = base.__dict__["check_parameters"].__code__.co_names
                asked = {*names} & {*inspect.signature(cls).parameters}
                shared = {name for name in names if name.startswith("check_")}
                hooks.setdefault(base, set()).update(asked | shared)
    assert len(hooks) >= 5
    assert all(hooks.values())
    alone = {name for names in hooks.values() if len(names) == 1 for name in names}
    plain = {"int", "float", "str", "bool", "Optional[int]", "Optional[float]"}
    told = {cls.__annotations__.get(name) for cls in hooks for name in alone}
    assert not told & plain


@pytest.mark.parametrize("metric", [sm.F1(threshold=0.5), sm.NDCG(k=3), sm.LogLoss()])
def test_copies_views_and_merges_validate_no_parameter_again(metric, monkeypatch):
    from streammetrics.core.configured import Parameter

    suite = sm.MetricSet({"one": metric, "other": metric.copy()})
    blob = metric.to_bytes()
    sm.from_bytes(blob)  # the first of its configuration is made from its parameters
    calls = []
    brought = Parameter.brought
    monkeypatch.setattr(Parameter, "brought", lambda *args: calls.append(args) or brought(*args))
    metric.copy().merge(metric)
    sm.merge([metric, metric])
    suite["one"].copy()
    suite.copy()
    sm.from_bytes(blob)
    assert not calls


def test_nan_is_refused_as_no_number():
    with pytest.raises(
        ValueError, match="expected a number or a tuple of numbers or None, and nan is none"
    ):
        sm.F1(threshold=float("nan"))


def test_what_may_be_any_plain_value_is_told_in_words():
    with pytest.raises(ValueError, match="expected numbers, text, booleans or None, or sequences"):
        sm.DaviesBouldin(centroids=sm.F1())
