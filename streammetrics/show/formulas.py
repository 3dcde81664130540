"""Formulas as docstrings have them, set as MathML, which browsers show without a script.

A docstring writes a formula as one types it, ``Formula: Σ w (y - p)² / Σ w``, so that `help` is
readable. Binding is as one reads it: what stands side by side is a product and comes before ``/``,
which comes before sums; brackets that a fraction or a root makes needless are left out.
"""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple, NoReturn

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?)|(?P<raised>[⁰¹²³⁴-⁹⁻]+)"
    r"|(?P<name>[^\W\d_][^\W_⁰¹²³⁴-⁹]*[\u0304']*)|(?P<sign>\.\.\.|<=|>=|\S)"
)
_LETTER = re.compile(r"\b[A-Za-z]+_[A-Za-z0-9]+\b")  # one with an index
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789−")
_PRIME, _LINE = "\u2032", "\u0304"  # after a letter: primed, and a line above
_GREEK = {"alpha": "\u03b1", "gamma": "\u03b3", "tau": "\u03c4"}
_SIGNS = {"<=": "≤", ">=": "≥", "-": "−", "...": "…", "in": "∈"}
_RELATIONS = frozenset({"=", "<", ">", "<=", ">=", "≠", "≈", "in"})
_BREAKS = frozenset({",", ";", ":"})
_WORDS = frozenset({"over", "where", "if", "else"})
_BENEATH = frozenset({"Σ", "Π", "max", "min", "argmax", "mean"})  # what has its index below
_LARGE = {"Σ": "∑", "Π": "∏", "∫": "∫"}
_SUMMED = ("+", "-", "...")
_CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖"}
_BARS = frozenset({"|", "‖"})


class FormulaError(ValueError):
    """A formula cannot be read."""


class Token(NamedTuple):
    """A word of a formula.

    Attributes:
        close: Whether no space is before it.
    """

    kind: str
    text: str
    close: bool


class TypesetPart(NamedTuple):
    """A part of a formula that has been set.

    Attributes:
        inner: Of what stands in round brackets, the same without them.
        fraction: Whether it is one fraction, which needs no brackets beside others.
        word: Whether it is set apart from what stands beside it.
    """

    mathml: str
    inner: str = ""
    fraction: bool = False
    word: bool = False


def set_letters(text: str) -> str:
    """Return words in which letters with an index, as ``n_b``, are MathML."""
    return _LETTER.sub(lambda name: set_formula(name[0], block=False), text)


def set_formula(text: str, *, block: bool = True) -> str:
    """Return a formula as MathML.

    Raises:
        FormulaError: It cannot be read; the message says where.
    """
    reader = _Reader(text)
    body = reader.listed().mathml
    if reader.here is not None:
        reader.refuse()
    display = ' display="block"' if block else ""
    return f'<math{display} alttext="{escape(text)}">{body}</math>'


class _Reader:
    """Reads a formula from left to right, by the strength of what binds."""

    def __init__(self, text: str) -> None:
        self.text, self.place = text, 0
        self.tokens: list[Token] = []
        self.barred = False  # whether a bar waits for its second one
        self.raised = False  # whether it is an exponent, which has its fractions in one line
        close = False
        for found in _TOKEN.finditer(text):
            if found.lastgroup != "space":
                self.tokens.append(Token(found.lastgroup or "", found[0], close))
            close = found.lastgroup != "space"

    @property
    def here(self) -> Token | None:
        """The next token, if there is one."""
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these."""
        return self.here is not None and self.here.text in texts

    def take(self) -> Token:
        """Return the next token, and go on."""
        token = self.here
        if token is None:
            raise FormulaError(f"{self.text!r} ends too early")
        self.place += 1
        return token

    def refuse(self) -> NoReturn:
        """Say what cannot be read, and where."""
        before = " ".join(token.text for token in self.tokens[: self.place])
        what = "an end" if self.here is None else repr(self.here.text)
        raise FormulaError(f"{self.text!r}: {what} after {before!r}")

    def listed(self) -> TypesetPart:
        """Read statements, up to what is none."""
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
        """Read an operator."""
        text = self.take().text
        return TypesetPart(f"<mo>{escape(_SIGNS.get(text, text))}</mo>")

    def sum(self) -> TypesetPart:
        """Read terms with their signs."""
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
        """Read products, and what they are divided by."""
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
        """Read what stands side by side."""
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
        """Whether something that can be a factor is next."""
        here = self.here
        if here is None or here.text in _WORDS | _RELATIONS:
            return False
        if here.text in _BARS:
            return not self.barred
        return here.kind in {"number", "name"} or here.text in {*_CLOSING, "√", "∫"}

    def power(self) -> TypesetPart:
        """Read one thing with what hangs on it: an index, a power, what it is applied to."""
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
        """Read what stands below: of two letters each is an index."""
        if self.at(*_SUMMED):
            return self.sign().mathml
        if self.here is not None and re.fullmatch("[a-z]{2}", self.here.text):
            return f"<mrow>{''.join(f'<mi>{letter}</mi>' for letter in self.take().text)}</mrow>"
        return _bare(self.atom())

    def atom(self) -> TypesetPart:
        """Read a number, a name, a root or what is in brackets."""
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
        """Read what is in brackets, up to the one that closes."""
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
    """Return a part without its brackets, where what is around it says as much."""
    return piece.inner or f"<mrow>{piece.mathml}</mrow>"
