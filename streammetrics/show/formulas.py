"""Formulas as MathML, and the entries of the reference page, both taken from docstrings."""

from __future__ import annotations

import inspect
import re
import sys
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from streammetrics.core.registry import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streammetrics.core.configured import Parameter
    from streammetrics.core.metric import Metric


_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?)|(?P<raised>[⁰¹²³⁴-⁹⁻]+)"
    r"|(?P<name>[^\W\d_][^\W_⁰¹²³⁴-⁹]*[\u0304']*)|(?P<sign>\.\.\.|<=|>=|\S)"
)
_LETTER = re.compile(r"\b[A-Za-z]+_[A-Za-z0-9]+\b")  # a letter with an index
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789−")
_PRIME, _LINE = "\u2032", "\u0304"  # after a letter: a prime, and a bar above the letter
_GREEK = {"alpha": "\u03b1", "gamma": "\u03b3", "nu": "\u03bd", "tau": "\u03c4"}
_SIGNS = {"<=": "≤", ">=": "≥", "-": "−", "...": "…", "in": "∈"}
_RELATIONS = frozenset({"=", "<", ">", "<=", ">=", "≠", "≈", "in"})
_BREAKS = frozenset({",", ";", ":"})
_WORDS = frozenset({"over", "where", "if", "else"})
_BENEATH = frozenset({"Σ", "Π", "max", "min", "argmax", "mean"})  # their index is set below
_LARGE = {"Σ": "∑", "Π": "∏", "∫": "∫"}
_SUMMED = ("+", "-", "...")
_CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖"}
_BARS = frozenset({"|", "‖"})


class FormulaError(ValueError):
    """A formula that cannot be parsed."""


class Token(NamedTuple):
    """A token of a formula.

    Attributes:
        close: Whether it follows the previous token without a space.
    """

    kind: str
    text: str
    close: bool


class TypesetPart(NamedTuple):
    """A part of a formula as MathML.

    Attributes:
        inner: For a part in round brackets, the MathML without the brackets.
        fraction: Whether it is a single fraction, which needs no brackets beside other factors.
        word: Whether it is separated by a space from its neighbours.
    """

    mathml: str
    inner: str = ""
    fraction: bool = False
    word: bool = False


def set_letters(text: str) -> str:
    """Return text in which letters with an index, e.g. ``n_b``, are MathML."""
    return _LETTER.sub(lambda name: set_formula(name[0], block=False), text)


def set_formula(text: str, *, block: bool = True) -> str:
    """Return a formula as MathML.

    Raises:
        FormulaError: The formula cannot be parsed; the message says where.
    """
    reader = _Reader(text)
    body = reader.listed().mathml
    if reader.here is not None:
        reader.refuse()
    display = ' display="block"' if block else ""
    return f'<math{display} alttext="{escape(text)}">{body}</math>'


class _Reader:
    """Recursive-descent parser of formulas."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.tokens: list[Token] = []
        self.barred = False  # whether the next bar closes a pair
        self.raised = False  # whether this is an exponent, where fractions are written inline
        close = False
        for found in _TOKEN.finditer(text):
            if found.lastgroup != "space":
                self.tokens.append(Token(found.lastgroup or "", found[0], close))
            close = found.lastgroup != "space"

    @property
    def here(self) -> Token | None:
        """The next token, or None at the end."""
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of the given texts."""
        return self.here is not None and self.here.text in texts

    def take(self) -> Token:
        """Consume the next token and return it."""
        token = self.here
        if token is None:
            raise FormulaError(f"{self.text!r} ends too early")
        self.place += 1
        return token

    def refuse(self) -> NoReturn:
        """Raise an error that says what cannot be parsed, and where."""
        before = " ".join(token.text for token in self.tokens[: self.place])
        what = "an end" if self.here is None else repr(self.here.text)
        raise FormulaError(f"{self.text!r}: {what} after {before!r}")

    def listed(self) -> TypesetPart:
        """Parse a sequence of expressions, relations and separators."""
        parts: list[TypesetPart] = []
        while self.here is not None:
            if self.at(*_BREAKS):
                parts.append(TypesetPart(f'<mo separator="true">{self.take().text}</mo>'))
            elif self.at(*_WORDS):
                parts.append(TypesetPart(f"<mtext>\u00a0{self.take().text}\u00a0</mtext>"))
            elif self.at(*_RELATIONS):
                parts.append(self.sign())
            elif self.begins() or self.at(*_SUMMED):
                parts.append(self.sum())
            else:
                break
        return parts[0] if len(parts) == 1 else TypesetPart("".join(part.mathml for part in parts))

    def sign(self) -> TypesetPart:
        """Parse an operator."""
        text = self.take().text
        return TypesetPart(f"<mo>{escape(_SIGNS.get(text, text))}</mo>")

    def sum(self) -> TypesetPart:
        """Parse terms with their signs."""
        parts = [] if self.at(*_SUMMED) else [self.quotient()]
        while self.at(*_SUMMED):
            left_out = self.at("...")
            parts.append(self.sign())
            if self.begins():
                parts.append(self.quotient())
            elif not left_out and not self.at("..."):
                self.refuse()
        return parts[0] if len(parts) == 1 else TypesetPart("".join(part.mathml for part in parts))

    def quotient(self) -> TypesetPart:
        """Parse products and quotients."""
        found = self.product()
        while self.at("/", "·"):
            if self.at("·") or self.raised:
                sign = self.sign().mathml
                found = TypesetPart(f"{found.mathml}{sign}{self.product().mathml}")
            else:
                self.take()
                parts = found, self.product()
                sides = (f'<mrow displaystyle="true">{_bare(part)}</mrow>' for part in parts)
                found = TypesetPart(f"<mfrac>{''.join(sides)}</mfrac>", fraction=True)
        return found

    def product(self) -> TypesetPart:
        """Parse juxtaposed factors."""
        first = self.power()
        parts, last = [first], first
        while self.begins():
            following = self.power()
            if last.word or following.word:
                parts.append(TypesetPart('<mspace width="0.2em"/>'))
            parts.append(following)
            last = following
        if len(parts) == 1:
            return first
        return TypesetPart("".join(p.inner if p.inner and p.fraction else p.mathml for p in parts))

    def begins(self) -> bool:
        """Whether the next token can start a factor."""
        here = self.here
        if here is None or here.text in _WORDS | _RELATIONS:
            return False
        if here.text in _BARS:
            return not self.barred
        return here.kind in {"number", "name"} or here.text in {*_CLOSING, "√", "∫"}

    def power(self) -> TypesetPart:
        """Parse a factor with its index, exponent or function arguments."""
        first = self.here
        found = self.atom()
        named = first is not None and first.kind == "name"
        beneath = first is not None and first.text in _BENEATH
        while self.here is not None:
            if self.at("_"):
                self.take()
                tag = "munder" if beneath else "msub"
                found = _hung(tag, found, self.index())
            elif self.at("^"):
                self.take()
                self.raised = True
                found = _hung("msup", found, _bare(self.atom()))
                self.raised = False
            elif self.here.kind == "raised":
                number = self.take().text.translate(_RAISED)
                found = _hung("msup", found, f"<mn>{number}</mn>")
            elif named and self.at("(", "[") and self.here.close:
                applied = f"{found.mathml}<mo>&#x2061;</mo>{self.atom().mathml}"
                found, named = TypesetPart(applied, word=True), False
            else:
                break
        return found

    def index(self) -> str:
        """Parse a subscript; two lowercase letters are two indices."""
        if self.at(*_SUMMED):
            return self.sign().mathml
        if self.here is not None and re.fullmatch("[a-z]{2}", self.here.text):
            return f"<mrow>{''.join(f'<mi>{letter}</mi>' for letter in self.take().text)}</mrow>"
        return _bare(self.atom())

    def atom(self) -> TypesetPart:
        """Parse a number, a name, a root or a bracketed expression."""
        if not self.begins():
            self.refuse()
        kind, text, _ = self.take()
        if kind == "number":
            return TypesetPart(f"<mn>{text}</mn>")
        if text in _LARGE:
            return TypesetPart(f"<mo>{_LARGE[text]}</mo>")
        if kind == "name":
            shown = _GREEK.get(text, text).replace("'", _PRIME)
            return TypesetPart(f"<mi>{shown}</mi>", word=len(shown.rstrip(_PRIME + _LINE)) > 1)
        if text == "√":
            return TypesetPart(f"<msqrt>{_bare(self.power())}</msqrt>")
        return self.bracketed(text)

    def bracketed(self, opening: str) -> TypesetPart:
        """Parse a bracketed expression up to its closing bracket."""
        outside, self.barred = self.barred, opening in _BARS
        inside = self.listed()
        self.barred = outside
        if not self.at(_CLOSING[opening]):
            self.refuse()
        closing = self.take().text
        high = any(tag in inside.mathml for tag in ("<mfrac", "<munder", "<msqrt"))
        fence = "<mo>" if high else '<mo stretchy="false">'
        whole = f"<mrow>{fence}{opening}</mo>{inside.mathml}{fence}{closing}</mo></mrow>"
        inner = f"<mrow>{inside.mathml}</mrow>" if opening == "(" else ""
        return TypesetPart(whole, inner, inside.fraction)


def _hung(tag: str, on: TypesetPart, what: str) -> TypesetPart:
    return TypesetPart(f"<{tag}><mrow>{on.mathml}</mrow>{what}</{tag}>", word=on.word)


def _bare(piece: TypesetPart) -> str:
    """Return a part without its brackets, where its position already groups it."""
    return piece.inner or f"<mrow>{piece.mathml}</mrow>"


_SECTION = re.compile(r"^(Args|Raises|Memory and cost|Reference|Example):[ \n]", re.MULTILINE)
_ITEM = re.compile(r"^ {4}(\w+): ", re.MULTILINE)
# Text that a page states once, above the entries of a family.
_SHARED = re.compile(r"^(The other p|P)arameters are those of `\w+`(\s+and\s+`\w+`)?\.\s*")
_FORMULA = re.compile(r"^Formula: (.+?)(?:, with (.+)\.)?$", re.MULTILINE)
_ENTRY = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


class Documentation(NamedTuple):
    """The parts of a docstring."""

    text: str
    sections: dict[str, str]


def documented(cls: type) -> Documentation:
    """Return the parts of a class's docstring."""
    pieces = _SECTION.split(inspect.getdoc(cls) or "")
    titles, bodies = pieces[1::2], pieces[2::2]
    return Documentation(pieces[0].strip(), dict(zip(titles, bodies, strict=True)))


def formula(cls: type) -> tuple[str, str]:
    """Return the formula in a class's docstring and the meaning of its letters; both may be ""."""
    for paragraph in documented(cls).text.split("\n\n"):
        found = _FORMULA.match(" ".join(paragraph.split()))
        if found:
            return found[1], found[2] or ""
    return "", ""


def entry(cls: type[Metric]) -> str:
    """Return the page's text on a metric, without the heading."""
    text, sections = documented(cls)
    paragraphs = [shown for p in text.split("\n\n") if (shown := _SHARED.sub("", p))]
    paragraphs = [_typed(p) if p.startswith("Formula: ") else p for p in paragraphs]
    paragraphs += _parameters(cls, sections.get("Args", ""))
    for title in ("Memory and cost", "Reference"):
        if title in sections:
            paragraphs.append(f"{title}: {inspect.cleandoc(sections[title])}")
    paragraphs = [re.sub("``+", "`", paragraph) for paragraph in paragraphs]
    example = inspect.cleandoc(sections["Example"]).removeprefix(">>> import streammetrics as sm\n")
    return "\n\n".join([*paragraphs, f"```python\n{example}\n```"])


def _typed(paragraph: str) -> str:
    """Return a formula as code, followed by the meaning of its letters in words."""
    line = " ".join(paragraph.split())
    return _FORMULA.sub(lambda f: f"Formula: `{f[1]}`" + (f", with {f[2]}." if f[2] else ""), line)


def _parameters(cls: type[Metric], args: str) -> Iterator[str]:
    """Yield the list of the parameters that the metric itself defines."""
    own = {name: known for name, known in cls._parameters.items() if known.owner is cls}
    lines = [_item(name, own[name], body) for name, body in _told(args).items() if name in own]
    if lines:
        yield "\n".join(lines)


def inherited(cls: type[Metric]) -> str:
    """Return the list of the parameters that a metric inherits from its family."""
    told: dict[str, str] = {}
    for base in cls.__mro__:  # definitions nearer to the metric take precedence
        told = _told(documented(base).sections.get("Args", "")) | told
    return "\n".join(
        _item(name, parameter, told[name])
        for name, parameter in cls._parameters.items()
        if parameter.owner is not cls and name in told
    )


def _told(args: str) -> dict[str, str]:
    """Return the description of each parameter in an ``Args`` section."""
    pieces = _ITEM.split(f"\n{args}")
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def _item(name: str, parameter: Parameter, body: str) -> str:
    default = "" if parameter.required else f"={parameter.default!r}"
    return f"- `{name}{default}`: {' '.join(body.split())}".replace("'", '"', 2 * ("'" in default))


def updated(page: str) -> str:
    """Return a page with the entry of every metric regenerated from its docstring."""
    metrics = catalogue()
    page = _ENTRY.sub(
        lambda found: (
            f"### {found[1]}\n\n{entry(metrics[found[1]])}\n\n" if found[1] in metrics else found[0]
        ),
        page,
    )
    for name, cls in metrics.items():
        if f"### {name}\n" not in page:
            page = _added(page, name, cls, metrics)
    return page.rstrip() + "\n"


def _added(page: str, name: str, cls: type[Metric], metrics: dict[str, type[Metric]]) -> str:
    """Return the page with a new entry, after those of the same module or else the same package."""
    room = cls.__module__.rpartition(".")[0]
    for place in (cls.__module__, room):
        beside = [
            found
            for found in _ENTRY.finditer(page)
            if found[1] in metrics and metrics[found[1]].__module__.startswith(place)
        ]
        if beside:
            end = beside[-1].end()
            return f"{page[:end]}### {name}\n\n{entry(cls)}\n\n{page[end:]}"
    raise ValueError(f"the page has no entry of {room}: write one by hand to say where it goes")


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
