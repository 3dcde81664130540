"""Texts cut into tokens, or made alike, as the programs do of which scores are known."""

from __future__ import annotations

import re
import unicodedata

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
# mteval-v13a: what is marked is a token of its own, periods and commas but between digits.
_APART = str.maketrans({mark: f" {mark} " for mark in ' !"#$%&()*+/:;<=>?@[\\]^_`{|}~'})
_MARKS = (
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
# What tercom takes out of texts, and of what is Chinese or Japanese it makes single tokens.
_PUNCTUATION = str.maketrans("", "", '.,?:;!"()')
_WIDE_MARKS = (
    "\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff02\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f"
    "\uff61-\uff65"
)
_WIDE = re.compile(f"[{_WIDE_MARKS}]")
_IDEOGRAPHS = re.compile(
    f"([{_WIDE_MARKS}\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f])"
)
# What the program of the extended edit distance sets apart, and what it then joins again.
_STOPS = re.compile(r"([.!?,])")
_JOINED = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"(\d) ([.,]) (\d)"), r"\1\2\3"),
    (re.compile(r"(Dr|Jr|Prof|Rev|Gen|Mr|Mt|Mrs|Ms) ."), r"\1."),
)
_SHORT = (("e . g .", "e.g."), ("i . e .", "i.e."), ("U . S .", "U.S."))


def mteval(text: str) -> list[str]:
    """Return the tokens of mteval-v13a."""
    text = text.rstrip().replace("<skipped>", "").replace("-\n", "")
    return _marked(_set_apart(text)).split()


def tercom(text: str, *, normalized: bool, punctuated: bool, asian: bool) -> list[str]:
    """Return the tokens of tercom as sacrebleu has them: without the two options, the words."""
    text = text.rstrip()
    if normalized:
        text = _set_apart(text.replace("\n-", "")).replace("'s ", " 's ")
        text = _marked(text)
        if asian:
            text = _IDEOGRAPHS.sub(r" \1 ", text)
    if not punctuated:
        text = text.translate(_PUNCTUATION)
        if asian:
            text = _WIDE.sub("", text)
    return text.split()


def _set_apart(text: str) -> str:
    """Return a line of text with spaces around marks that are always tokens."""
    text = text.replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return f" {text} ".translate(_APART)


def _marked(text: str) -> str:
    """Return text with spaces around marks that are tokens beside some characters."""
    if "." in text or "," in text or "-" in text:
        for mark, apart in _MARKS:
            text = mark.sub(apart, text)
    return text


def english(text: str) -> str:
    """Return text whose marks have a space before them, itself between spaces."""
    text = _STOPS.sub(r" \1", text.rstrip())
    for found, instead in _JOINED:
        text = found.sub(instead, text)
    for found_text, instead in _SHORT:
        text = text.replace(found_text, instead)
    return f" {text} "


def compatible(text: str) -> str:
    """Return text of which characters that look alike are alike, as in Japanese."""
    return unicodedata.normalize("NFKC", text.rstrip())
