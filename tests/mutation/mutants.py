"""Which mutants there are: one change to one line of the core or of the statistics."""

from __future__ import annotations

import ast
import difflib
import inspect
import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from cosmic_ray.operators.operator import Operator

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "statistics")
# Its numbers only decide how the work is cut, so that mutants of them compute the same: with little
# ones, `tests/kinds/test_boundaries.py` finds the same bytes and values.
TUNING = "streammetrics.core.tuning"
# The slips that people make: a comparison one off or turned round, a sign, a number, a case the
# wrong way, a loop left too early, an error that nobody catches.
OPERATORS = (
    *(f"ReplaceComparisonOperator_{swap}" for swap in (
        "Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "Gt_LtE",
        "LtE_Gt", "GtE_Lt", "Is_IsNot", "IsNot_Is",
    )),
    *(f"ReplaceBinaryOperator_{swap}" for swap in (
        "Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_FloorDiv", "Pow_Mul",
        "RShift_LShift", "LShift_RShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr",
    )),
    "ReplaceUnaryOperator_USub_UAdd", "ReplaceUnaryOperator_Delete_Invert",
    "ReplaceUnaryOperator_Delete_Not", "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue",
    "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A module of the package with one change."""

    module: str
    code: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.module}\n    - {self.before}\n    + {self.after}"


def sample(seed: int, part: str = "") -> Iterator[Mutant]:
    """Yield mutants of functions, of places drawn by the seed; `part` is in the modules' paths."""
    paths = [p for room in ROOMS for p in (ROOT / "streammetrics" / room).rglob("*.py")]
    places = []
    for path in sorted(path for path in paths if part in str(path)):
        nodes = list(ast_nodes(parso.parse(path.read_text())))
        for name in OPERATORS:
            operator = _operator(name)
            count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
            places += [(path, name, occurrence) for occurrence in range(count)]
    random.Random(seed).shuffle(places)
    for path, name, occurrence in places:
        mutant = _mutant(path, name, occurrence)
        if mutant is not None:
            yield mutant


def equivalents() -> dict[tuple[str, str, str], str]:
    """Return the mutants that compute the same, and why, as `equivalent.toml` lists them."""
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())["mutants"]
    for entry in listed:
        path = ROOT.joinpath(*entry["module"].split(".")).with_suffix(".py")
        code = " ".join(map(_said, path.read_text().splitlines()))
        if " ".join(entry["before"].split()) not in " ".join(code.split()):
            raise ValueError(f"equivalent.toml lists what is no more: {entry}")
    return {(entry["module"], entry["before"], entry["after"]): entry["why"] for entry in listed}


def _operator(name: str) -> Operator:
    return get_operator(f"core/{name}")()


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def _mutant(path: Path, name: str, occurrence: int) -> Mutant | None:
    code = path.read_text()
    mutated = mutate_code(code, _operator(name), occurrence)
    if mutated is None or not _is_python(mutated) or _meaning(mutated) == _meaning(code):
        return None  # two stars of a call, say, or an annotation, which nothing evaluates
    if _at_import(mutated) != _at_import(code):
        return None
    lines = list(difflib.ndiff(code.splitlines(), mutated.splitlines()))
    before, after = (
        " ".join(_said(line[2:]) for line in lines if line.startswith(mark))
        for mark in ("- ", "+ ")
    )
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    if module == TUNING:
        return None
    return Mutant(module, mutated, before, after)


def _said(line: str) -> str:
    """Return a line without its comment."""
    return line.partition("  # ")[0].strip()


class _Plain(ast.NodeTransformer):
    """Drops what is never run, annotations and imports that only types need, and what NumPy does.

    Which negative number stands for the side that `reshape` is to find does not matter.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
            node.args = [ast.Name("the rest") if _is_negative(a) else a for a in node.args]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return None
        return self.generic_visit(node)


def _is_negative(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and node.operand.value != 0
    )


def inner(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of all functions in some code."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if _is_function(constant):
                yield constant
            yield from inner(constant)


def _is_function(code: CodeType) -> bool:
    """Whether code runs when it is called: no body of a class, no comprehension where it stands."""
    return bool(code.co_flags & inspect.CO_NEWLOCALS) and not code.co_name.startswith("<")


def parts_of(code: CodeType) -> Hashable:
    """Return what a function does, but for the functions in it."""
    constants = tuple(
        parts_of(constant) if isinstance(constant, CodeType) else repr(constant)
        for constant in code.co_consts
        if not (isinstance(constant, CodeType) and _is_function(constant))
    )
    return code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants


def _at_import(code: str) -> list[Hashable]:
    """Return what runs while a module is imported: constants, defaults, the bodies of classes."""
    found: list[Hashable] = []

    def walk(part: CodeType) -> None:
        found.append((part.co_code, part.co_names))
        for constant in part.co_consts:
            if not isinstance(constant, CodeType):
                found.append(repr(constant))
            elif not _is_function(constant):
                walk(constant)

    walk(compile(code, "", "exec"))
    return found


def _meaning(code: str) -> str:
    try:
        return ast.dump(_Plain().visit(ast.parse(code)))
    except SyntaxError:
        return code
