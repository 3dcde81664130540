"""Text metrics: error rates, translation, answers and tagged spans."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np

from streammetrics.core.confidence import Refusal
from streammetrics.core.configured import require
from streammetrics.core.constraints import AtLeast, Between, NanPolicy, Positive
from streammetrics.core.metric import Metric, NumberOrArray
from streammetrics.core.results.values import LabelledArray
from streammetrics.core.types import Floats, NoAverage
from streammetrics.metrics.averages import ZeroDivision, beta_weights, lone_doubt, mean_of_classes
from streammetrics.metrics.families import CORPUS, GROWS, Family
from streammetrics.metrics.rowwise import MeanOfRows
from streammetrics.statistics.spans import (
    Scheme,
    SpanCounts,
)
from streammetrics.statistics.texts import (
    AnswerAgreement,
    BleuCounts,
    ChrfCounts,
    EditCounts,
    JumpScores,
    MoveCounts,
    RougeAgreement,
    chrf_score,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics.core.statistic import Statistic
    from streammetrics.core.types import ArrayLike, Ints
    from streammetrics.statistics.texts import TextCounts


References = Annotated[int, Between(1, 64)]
Side = Literal["f1", "precision", "recall"]


class TextMetric(Metric[float]):
    """Base class of corpus metrics, computed from counts summed over rows.

    Args:
        nan_policy: ``"raise"``, or ``"omit"``: rows with a missing text are left out.
    """

    _formula: ClassVar[tuple[str, ...]] = ("readout", "read")
    family: ClassVar[str | None] = Family.CORPUS

    nan_policy: NanPolicy = "raise"

    def readout(self, held: TextCounts) -> float:
        """Return the value; ``nan`` without rows."""
        rows, *counts = held.counts.tolist()
        return self.read(counts) if rows else math.nan

    @abstractmethod
    def read(self, counts: list[int]) -> float:
        """Return the value from the counts of at least one row."""

    def update(
        self,
        reference: ArrayLike,
        prediction: ArrayLike,
        *,
        counts: ArrayLike = None,
        **references: ArrayLike,
    ) -> Self:
        """Add a batch of rows: the references and the predictions, each (n,) strings.

        Args:
            reference: The references.
            prediction: The predictions.
            **references: With ``references=R``, ``reference_2`` to ``reference_R``. Where a row has
                fewer, repeat one of them.
            counts: How many rows each row stands for, (n,); whole numbers.

        Raises:
            InvalidBatchError: A column is not text; the state is unchanged.
            TypeError: There are more references than `references` says.
        """
        return self.feed({**_columns(self, reference, prediction, references), "counts": counts})


def _columns(
    metric: Metric, reference: ArrayLike, prediction: ArrayLike, more: Mapping[str, ArrayLike]
) -> dict[str, ArrayLike]:
    """Return the columns of a batch, of as many references as the metric has."""
    count = metric.config.get("references", 1)
    unknown = more.keys() - {f"reference_{place}" for place in range(2, count + 1)}
    if unknown:
        name = f"{type(metric).__name__}(references={count})"
        raise TypeError(f"{name}.update() takes no {min(unknown)}")
    return {"reference": reference, **more, "prediction": prediction}


class TextMean(MeanOfRows):
    """Base class of metrics that average a comparison of two texts, from 0 to 1, over rows."""

    higher_is_better = True
    value_range = (0.0, 1.0)

    def update(
        self,
        reference: ArrayLike,
        prediction: ArrayLike,
        *,
        sample_weight: ArrayLike = None,
        counts: ArrayLike = None,
        **references: ArrayLike,
    ) -> Self:
        """Add a batch of rows: the references and the predictions, each (n,) strings.

        Args:
            reference: The references.
            prediction: The predictions.
            sample_weight: Non-negative weights, (n,).
            counts: How many rows each row stands for, (n,); whole numbers.
            **references: With ``references=R``, ``reference_2`` to ``reference_R``. Where a row has
                fewer, repeat one of them.

        Raises:
            InvalidBatchError: A column is not text; the state is unchanged.
            TypeError: There are more references than `references` says.
        """
        columns = _columns(self, reference, prediction, references)
        return self.feed({**columns, "sample_weight": sample_weight, "counts": counts})


class ExactMatch(TextMean):
    """Exact match: the share of answers equal to their reference, as SQuAD compares them.

    Formula: Σ w [answer = reference] / Σ w

    Both are normalized first: case, punctuation, the articles a, an and the, and extra spaces are
    ignored.

    Parameters are those of `MeanOfRows`.

    Reference: Rajpurkar et al., "SQuAD", EMNLP 2016; ``torchmetrics.text.SQuAD``, as a percentage
    there.

    Example:
        >>> import streammetrics as sm
        >>> sm.ExactMatch().update(["The cat.", "a dog"], ["cat", "two dogs"]).compute()
        0.5
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the number of answers that match."""
        return (AnswerAgreement(of="whole", nan_policy=self.nan_policy),)


class TokenF1(TextMean):
    """Token F1: the mean F1 of the tokens of answers and references, as SQuAD compares them.

    Formula: mean (2 m / (a + b)), with m common tokens of a and b tokens.

    Texts are normalized as in `ExactMatch`. If one of them is then empty, the value is that of
    `ExactMatch`.

    Parameters are those of `MeanOfRows`.

    Reference: Rajpurkar et al., "SQuAD", EMNLP 2016; ``torchmetrics.text.SQuAD``, as a percentage
    there.

    Example:
        >>> import streammetrics as sm
        >>> sm.TokenF1().update(["the black cat"], ["A cat!"]).compute()
        0.6666666666666666
    """

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of F1 scores."""
        return (AnswerAgreement(of="tokens", nan_policy=self.nan_policy),)


class RougeN(TextMean):
    """ROUGE-N: the mean F1 of the n-grams of words in predictions and references.

    Formula: mean (2 m / (a + b)), with m common n-grams of a in the prediction and b in the
    reference.

    Words are runs of digits and of the letters a to z, in any case; they are not stemmed.

    The other parameters are those of `MeanOfRows`.

    Args:
        n: The number of words in an n-gram, usually 1 or 2.
        of: Whether to return the mean ``"f1"``, ``"precision"`` m / a or ``"recall"`` m / b.
        references: Number of references per row, which `update` takes as ``reference``,
            ``reference_2``, ... The one with the best F1 counts.

    Reference: Lin, "ROUGE: a package for automatic evaluation of summaries", ACL 2004;
    ``rouge_score.rouge_scorer.RougeScorer``.

    Example:
        >>> import streammetrics as sm
        >>> sm.RougeN(n=1).update(["the cat sat"], ["The cat slept."]).compute()
        0.6666666666666666
    """

    n: Annotated[int, Between(1, 64)] = 1
    of: Side = "f1"
    references: References = 1

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of what is common."""
        return (RougeAgreement(**self.config),)


class RougeL(TextMean):
    """ROUGE-L: the mean F1 of the longest common subsequence of words.

    Formula: mean (2 LCS / (a + b)), with LCS its length, and a and b the words of both texts.

    Words are as in `RougeN`.

    The other parameters are those of `MeanOfRows`.

    Args:
        of: Whether to return the mean F1, precision or recall, as in `RougeN`.
        references: Number of references per row, as in `RougeN`.
        lines: Whether every line of a text is a sentence (ROUGE-Lsum). Of a line of the reference
            every word counts that is in its longest common subsequence with some line of the
            prediction.

    Reference: Lin, "ROUGE: a package for automatic evaluation of summaries", ACL 2004;
    ``rouge_score.rouge_scorer.RougeScorer``: ``rougeL``, and ``rougeLsum`` with `lines`.

    Example:
        >>> import streammetrics as sm
        >>> sm.RougeL().update(["the cat sat here"], ["The here cat slept."]).compute()
        0.5
    """

    of: Side = "f1"
    references: References = 1
    lines: bool = False

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of what is common."""
        return (RougeAgreement(n=0, **self.config),)


class Edits(NamedTuple):
    """Numbers of hits and edits of words or characters, summed over rows."""

    hits: int
    replaced: int
    left_out: int
    put_in: int

    @property
    def number(self) -> int:
        """The number of edits."""
        return self.replaced + self.left_out + self.put_in

    @property
    def referred(self) -> int:
        """The total length of the references."""
        return self.hits + self.replaced + self.left_out

    @property
    def predicted(self) -> int:
        """The total length of the predictions."""
        return self.hits + self.replaced + self.put_in

    @property
    def per_reference(self) -> float:
        """Edits over the length of the references, or over 1 if all are empty."""
        return self.number / (self.referred or 1)


class ErrorRate(TextMetric):
    """Base class of ratios of hits H, substitutions S, deletions D and insertions I over all rows.

    A row with an empty reference, e.g. silence, is valid: all its predicted words are insertions.
    Edits are computed by rapidfuzz, which the extra `text` installs.

    Memory and cost: 120 bytes; about 10 µs per row of 20 words.
    """

    _formula = ("readout", "read", "_rate")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits of words."""
        return (EditCounts(of="words", nan_policy=self.nan_policy),)

    def read(self, counts: list[int]) -> float:
        """Return the rate."""
        return self._rate(Edits(*counts))

    @abstractmethod
    def _rate(self, edits: Edits) -> float:
        """Return the rate from the counts of at least one row."""


class WER(ErrorRate):
    """Word error rate (WER): edits over the words of all references.

    Formula: (S + D + I) / (H + S + D), with S substituted, D deleted, I inserted and H right words.

    If all references are empty, the value is the number of insertions, as in jiwer 4.

    Words are separated by white space of any kind, including no-break spaces; jiwer separates them
    by spaces only.

    Parameters are those of `TextMetric`.

    Reference: ``jiwer.wer``; ``torchmetrics.text.WordErrorRate``.

    Example:
        >>> import streammetrics as sm
        >>> sm.WER().update(["the cat sat", "a dog"], ["the cat sat", "dog"]).compute()
        0.2
    """

    higher_is_better = False
    value_range = (0.0, math.inf)

    def _rate(self, edits: Edits) -> float:
        """Return edits over the length of the references."""
        return edits.per_reference


class CER(ErrorRate):
    """Character error rate (CER): edits over the characters of all references, spaces included.

    Formula: (S + D + I) / (H + S + D), with S substituted, D deleted, I inserted and H right
    characters.

    White space at both ends of a text is left out, as in jiwer. If all references are empty, the
    value is the number of insertions, as in jiwer 4.

    Parameters are those of `TextMetric`.

    Reference: ``jiwer.cer``; ``torchmetrics.text.CharErrorRate``, which keeps white space at the
    ends.

    Example:
        >>> import streammetrics as sm
        >>> sm.CER().update(["abcd"], ["abxde"]).compute()
        0.5
    """

    higher_is_better = False
    value_range = (0.0, math.inf)

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits of characters."""
        return (EditCounts(of="characters", nan_policy=self.nan_policy),)

    def _rate(self, edits: Edits) -> float:
        """Return edits over the length of the references."""
        return edits.per_reference


class MER(ErrorRate):
    """Match error rate (MER): edits over hits and edits.

    Formula: (S + D + I) / (H + S + D + I), with S substituted, D deleted, I inserted and H right
    words.

    0 if all references and predictions are empty.

    Words are separated by white space of any kind, including no-break spaces; jiwer separates them
    by spaces only.

    Parameters are those of `TextMetric`.

    Reference: Morris, Maier and Green, "From WER and RIL to MER and WIL", Interspeech 2004;
    ``jiwer.mer``; ``torchmetrics.text.MatchErrorRate``.

    Example:
        >>> import streammetrics as sm
        >>> sm.MER().update(["the cat sat"], ["the cat sat down"]).compute()
        0.25
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    def _rate(self, edits: Edits) -> float:
        """Return edits over hits and edits."""
        return edits.number / ((edits.hits + edits.number) or 1)


class WIL(ErrorRate):
    """Word information lost (WIL).

    Formula: 1 - (H / (H + S + D)) (H / (H + S + I)), with S substituted, D deleted, I inserted and
    H right words.

    0 if all references and predictions are empty.

    Words are separated by white space of any kind, including no-break spaces; jiwer separates them
    by spaces only.

    Parameters are those of `TextMetric`.

    Reference: Morris, Maier and Green, "From WER and RIL to MER and WIL", Interspeech 2004;
    ``jiwer.wil``; ``torchmetrics.text.WordInfoLost``.

    Example:
        >>> import streammetrics as sm
        >>> sm.WIL().update(["the cat sat"], ["the cat sat down"]).compute()
        0.25
    """

    higher_is_better = False
    value_range = (0.0, 1.0)

    def _rate(self, edits: Edits) -> float:
        """Return the information lost."""
        if not edits.predicted and not edits.referred:
            return 0.0
        return 1 - edits.hits / (edits.referred or 1) * (edits.hits / (edits.predicted or 1))


class EditDistance(ErrorRate):
    """Edit distance (Levenshtein): the number of edits, summed over rows.

    Formula: S + D + I, with S substitutions, D deletions and I insertions.

    White space is a character like others, also at the ends of a text, unlike in `CER`.

    The other parameters are those of `TextMetric`.

    Args:
        of: The unit of editing, ``"characters"`` or ``"words"``.

    Reference: ``rapidfuzz.distance.Levenshtein.distance``;
    ``torchmetrics.text.EditDistance(reduction="sum")``.

    Example:
        >>> import streammetrics as sm
        >>> sm.EditDistance().update(["abcd"], ["abxde"]).compute()
        2.0
    """

    higher_is_better = False
    family = Refusal(GROWS.format("a rate, such as CER,"))

    of: Literal["words", "characters"] = "characters"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits."""
        return (EditCounts(of=self.of, stripped=False, nan_policy=self.nan_policy),)

    def _rate(self, edits: Edits) -> float:
        """Return the edits."""
        return float(edits.number)


Cost = Annotated[float, Between(0, 1e9)]


class TranslationEditRate(TextMetric):
    """Translation edit rate (TER): edits per word of the references, as a percentage.

    Formula: 100 Σ e_r / Σ w_r, with e_r edits that turn row r into its reference of w_r words.

    An edit inserts, deletes or replaces a word, or moves a block of words. As in tercom, a greedy
    search keeps the number of edits small: it applies the move that saves the most edits until no
    move saves any. If no reference has a word, the value is 100, or 0 if no prediction has one
    either.

    The other parameters are those of `TextMetric`.

    Args:
        normalized: Whether to split punctuation from words and to decode XML entities.
        no_punct: Whether to remove punctuation.
        asian_support: Whether `normalized` and `no_punct` also apply to Chinese and Japanese text.
        case_sensitive: Whether case matters.
        references: Number of references per row, as in `RougeN`. The one with
            the fewest edits counts, and w is their mean length.

    Memory and cost: 50 bytes; about 1 ms per row of 20 words, or 2 ms if many words are moved. For
    long texts the time grows with their length times the number of moves tried, at most a thousand.

    Reference: Snover et al., "A study of translation edit rate", AMTA 2006;
    ``sacrebleu.corpus_ter``; ``torchmetrics.text.TranslationEditRate`` with reference and
    prediction exchanged.

    Example:
        >>> import streammetrics as sm
        >>> rate = sm.TranslationEditRate()
        >>> rate.update(["on the mat the cat sat"], ["the cat sat on a mat"]).compute()
        33.33333333333333
    """

    higher_is_better = False
    value_range = (0.0, math.inf)

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False
    references: References = 1

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the edits and the words."""
        return (MoveCounts(**self.config),)

    def read(self, counts: list[int]) -> float:
        """Return the rate."""
        edits, words = counts
        return 100 * (edits * self.references / words if words else float(edits > 0))


class ExtendedEditDistance(TextMean):
    """Extended edit distance (EED): character edits with jumps, from 0 to 1, averaged over rows.

    Formula: mean min(1, (d + r v) / (n + r v)), with n the length of a reference and r = `rho`.

    The distance d is the smallest cost of traversing both texts: by default 1 for inserting or
    replacing a character, 0.2 for deleting one, and 2 for a jump from a space in the reference to
    any position in the prediction. v counts the positions of the prediction that were never the
    cheapest, plus repeated visits to the others.

    The other parameters are those of `MeanOfRows`.

    Args:
        language: ``"en"`` splits punctuation from words; ``"ja"`` unifies characters that look
            alike.
        alpha: The cost of a jump.
        rho: The weight of positions that are never visited, or visited repeatedly.
        deletion: The cost of deleting a character of the prediction.
        insertion: The cost of inserting a character.

    Memory and cost: exact sums, about 200 bytes; about 3 ms per row of 100 characters, and four
    times that for 200.

    Reference: Stanchev, Wang and Ney, "EED: extended edit distance measure for machine
    translation", WMT 2019; ``torchmetrics.text.ExtendedEditDistance``.

    Example:
        >>> import streammetrics as sm
        >>> distance = sm.ExtendedEditDistance()
        >>> round(distance.update(["this is the example"], ["here is an example"]).compute(), 6)
        0.412698
    """

    higher_is_better = False

    language: Literal["en", "ja"] = "en"
    alpha: Cost = 2.0
    rho: Cost = 0.3
    deletion: Cost = 0.2
    insertion: Cost = 1.0

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the sum of distances."""
        scores = JumpScores(
            language=self.language,
            alpha=self.alpha,
            rho=self.rho,
            deletion=self.deletion,
            insertion=self.insertion,
            nan_policy=self.nan_policy,
        )
        return (scores,)


_SMOOTHED = {"floor": 0.1, "add-k": 1.0}


class BLEU(TextMetric):
    """BLEU of a corpus, from 0 to 100, equal to sacrebleu's.

    Formula: 100 exp(min(0, 1 - r / c)) (p_1 ... p_N)^(1/N), with p_n the precision of n-grams up to
    N = `order`, and c and r the tokens of all predictions and of all references.

    The other parameters are those of `TextMetric`.

    Args:
        tokenize: ``"13a"``: the tokenizer of mteval-v13a; ``"none"``: tokens are split at spaces.
        lowercase: Whether to ignore case.
        order: The length of the longest n-grams.
        smooth_method: How orders without a match count. ``"exp"``: the i-th of them as if it had
            2^-i matches; ``"floor"``: as if it had `smooth_value`; ``"none"``: the value is 0.
            ``"add-k"`` adds `smooth_value` to the matches and the n-grams of all orders but 1.
        smooth_value: ``None``: 0.1 for ``"floor"`` and 1 for ``"add-k"``.
        references: Number of references per row, as in `RougeN`. An n-gram
            counts as often as the reference with most of it has it, and r is of the reference whose
            length is nearest, the shorter of two.

    Memory and cost: about 530 bytes; about 60 µs per row of 20 words.

    Reference: Papineni et al., "BLEU", ACL 2002; ``sacrebleu.corpus_bleu``.

    Example:
        >>> import streammetrics as sm
        >>> bleu = sm.BLEU()
        >>> _ = bleu.update(["the cat sat on the mat."], ["the cat sat on a mat."])
        >>> round(bleu.compute(), 6)
        48.892302
    """

    higher_is_better = True
    value_range = (0.0, 100.0)

    tokenize: Literal["13a", "none"] = "13a"
    lowercase: bool = False
    order: Annotated[int, Between(1, 64)] = 4
    smooth_method: Literal["exp", "floor", "add-k", "none"] = "exp"
    smooth_value: Cost | None = None
    references: References = 1

    def check_parameters(self) -> None:
        """Check that the smoothing takes a value, if there is one."""
        takes = self.smooth_value is None or self.smooth_method in _SMOOTHED
        require(self, "smooth_value", takes, "None, but with 'floor' or 'add-k'")

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of n-grams."""
        smoothing = {"smooth_method", "smooth_value"}
        return (BleuCounts(**{k: v for k, v in self.config.items() if k not in smoothing}),)

    def read(self, counts: list[int]) -> float:
        """Return the score."""
        predicted, referred, *grams = counts
        order = len(grams) // 2
        matches, totals = grams[:order], grams[order:]
        if not any(matches):
            return 0.0
        value = self.smooth_value
        value = _SMOOTHED.get(self.smooth_method, 0.0) if value is None else value
        halved, logs = 1.0, []
        for place, (match, total) in enumerate(zip(matches, totals, strict=True)):
            more = value if place and self.smooth_method == "add-k" else 0
            if not total + more:
                return 0.0
            halved *= 1 if match + more else 2
            right = match + more or (1 / halved if self.smooth_method == "exp" else value)
            if not right:
                return 0.0
            logs.append(math.log(100.0 * right / (total + more)))
        short = math.exp(1 - referred / predicted) if predicted < referred else 1.0
        return short * math.exp(sum(logs) / order)


class ChrF(TextMetric):
    """chrF, the character n-gram F-score of a corpus, from 0 to 100, equal to sacrebleu's.

    Formula: 100 (1 + β²) P R / (β² P + R), with P and R the mean precision and the mean recall of
    character n-grams, over n from 1 to `order`, and of n-grams of words up to `word_order`.

    The other parameters are those of `TextMetric`.

    Args:
        beta: The weight of recall relative to precision.
        order: The length of the longest n-grams of characters.
        word_order: The length of the longest n-grams of words: 2 is chrF++, 0 is without words.
        whitespace: Whether spaces are characters; by default they are ignored.
        lowercase: Whether to ignore case.
        references: Number of references per row, as in `RougeN`. The one with
            the best score of the row counts.

    Memory and cost: about 1,500 bytes; about 0.2 ms per row of 100 characters.

    Reference: Popović, "chrF", WMT 2015; ``sacrebleu.corpus_chrf``.

    Example:
        >>> import streammetrics as sm
        >>> round(sm.ChrF().update(["the cat sat"], ["the cat sits"]).compute(), 6)
        66.583248
    """

    higher_is_better = True
    value_range = (0.0, 100.0)

    beta: Annotated[float, Positive] = 2.0
    order: Annotated[int, Between(1, 64)] = 6
    word_order: Annotated[int, Between(0, 64)] = 0
    whitespace: bool = False
    lowercase: bool = False
    references: References = 1

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of n-grams."""
        options = {name: value for name, value in self.config.items() if name != "beta"}
        weights = beta_weights(self.beta) if self.references > 1 else None
        return (ChrfCounts(**options, weights=weights),)

    def read(self, counts: list[int]) -> float:
        """Return the score."""
        return chrf_score(counts, *beta_weights(self.beta))


class SpanMetric(NumberOrArray[NoAverage], Metric[float | LabelledArray]):
    """Base class of span metrics. A predicted span is right if a true one has its tokens and type.

    A row is a sentence: a list with one tag per token.

    Args:
        average: ``"micro"``: the spans of all types are added first. ``"macro"``: the mean of the
            types' values. ``"weighted"``: the mean weighted by true spans. ``None``: an array of
            the types, sorted.
        scheme: The tagging scheme: ``"IOB1"``, ``"IOB2"``, ``"IOE1"``, ``"IOE2"``, ``"IOBES"`` or
            ``"BILOU"``. Spans are then read strictly by its rules (seqeval's strict mode), and
            other tags raise. ``None``: any scheme, read leniently as in the CoNLL evaluation
            (seqeval's default); a change of type always starts a new span.
        suffix: Whether the type comes first: ``PER-B`` instead of ``B-PER``.
        zero_division: The value of 0/0. ``None``: ``nan`` for a single value, 0 in an average, with
            a warning. A number is used as it is, even if there are no spans at all. An explicit
            ``nan`` leaves the type out of averages.
        nan_policy: ``"raise"``, or ``"omit"``: sentences with a missing tag are left out.

    Memory and cost: about 50 bytes per type; about 1 µs per token.
    """

    _formula = ("readout", "_parts")
    _facts = (*Metric._facts, "_judged")
    family = CORPUS

    average: Literal["micro", "macro", "weighted"] | NoAverage = "micro"
    scheme: Scheme | None = None
    suffix: bool = False
    zero_division: ZeroDivision = None
    nan_policy: NanPolicy = "raise"

    def statistics(self) -> tuple[Statistic, ...]:
        """Return the counts of spans."""
        counts = SpanCounts(scheme=self.scheme, suffix=self.suffix, nan_policy=self.nan_policy)
        return (counts,)

    def update(self, y_true: ArrayLike, y_pred: ArrayLike, *, counts: ArrayLike = None) -> Self:
        """Add a batch of sentences: the true and the predicted tags of each, n lists of strings.

        Raises:
            InvalidBatchError: A sentence has different numbers of true and predicted tags, or a tag
                that is not in the scheme; the state is unchanged.
        """
        return self.feed({"y_true": y_true, "y_pred": y_pred, "counts": counts})

    def readout(self, held: SpanCounts) -> float | LabelledArray:
        """Return the ratio, averaged as configured."""
        return self._of_counts(held)[0]

    def _judged(self, held: SpanCounts) -> tuple[float | LabelledArray, str]:
        value, doubt = self._of_counts(held)
        return value, doubt or self._why_nan(value, held)

    def _lacking(self, held: SpanCounts) -> str:
        true, pred, _ = held.table()[1].sum(axis=0).tolist()
        lacks = {"true": true, "predicted": pred}
        none = " or ".join(side for side, count in lacks.items() if not count)
        return f"there are no {none} spans (zero_division=0 makes it 0)"

    def _of_counts(self, held: SpanCounts) -> tuple[float | LabelledArray, str]:
        labels, table = held.table()
        if self.average == "micro" or not (labels or self.average is None):
            value = float(self._ratios(table.sum(axis=0, keepdims=True))[0])
            return value, ""
        values = self._ratios(table)
        if self.average is None:
            return LabelledArray.of(values, labels), lone_doubt(labels, values)
        weight = (
            table[:, 0].astype(np.float64) if self.average == "weighted" else np.ones(len(labels))
        )
        seen = np.ones(len(labels), np.bool_)
        mean = mean_of_classes(values, weight, lambda: seen, labels, self.zero_division)
        return mean.value, mean.doubt

    def _ratios(self, table: Ints) -> Floats:
        """Return the ratio for each row of the numbers of true, predicted and right spans."""
        above, below = self._parts(*table.astype(np.float64).T)
        empty = math.nan if self.zero_division is None else self.zero_division
        ratios: Floats = np.full(below.shape, empty)
        return np.divide(above, below, out=ratios, where=below > 0)

    @abstractmethod
    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return the numerator and the denominator."""


class SpanF1(SpanMetric[NoAverage]):
    """Span F1: the harmonic mean of span precision and span recall.

    Formula: 2 b / (t + p), with t true and p predicted spans, of which b are both.

    Parameters are those of `SpanMetric`.

    Reference: Tjong Kim Sang and De Meulder, "Introduction to the CoNLL-2003 shared task", CoNLL
    2003; ``seqeval.metrics.f1_score``, with ``mode="strict"`` if `scheme` is set.

    Example:
        >>> import streammetrics as sm
        >>> true = [["O", "O", "B-MISC", "I-MISC"], ["B-PER", "I-PER", "O"]]
        >>> pred = [["O", "B-MISC", "I-MISC", "I-MISC"], ["B-PER", "I-PER", "O"]]
        >>> sm.SpanF1().update(true, pred).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return twice the right spans, and the sum of true and predicted spans."""
        return 2 * both, true + pred


class SpanFBeta(SpanMetric[NoAverage]):
    """Span F-beta: the weighted harmonic mean of span precision and span recall.

    Formula: (1 + β²) b / (β² t + p), with t true and p predicted spans, of which b are both.

    The other parameters are those of `SpanMetric`.

    Args:
        beta: How many times as much recall counts as precision, 0 or more.

    Reference: ``seqeval.metrics.sequence_labeling.precision_recall_fscore_support(beta=...)``.

    Example:
        >>> import streammetrics as sm
        >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> sm.SpanFBeta(beta=2).update(true, [["B-PER", "I-PER", "O", "O"]]).compute()
        0.5555555555555556
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    beta: Annotated[float, AtLeast(0)]

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return 1 + b^2 times the right spans, and all true and predicted ones by weight."""
        recall, precision = beta_weights(self.beta)
        return (recall + precision) * both, recall * true + precision * pred


class SpanPrecision(SpanMetric[NoAverage]):
    """Span precision: the share of predicted spans that are true.

    Formula: b / p, with b of p predicted spans true.

    Parameters are those of `SpanMetric`.

    Reference: ``seqeval.metrics.precision_score``, with ``mode="strict"`` if `scheme` is set.

    Example:
        >>> import streammetrics as sm
        >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> sm.SpanPrecision(scheme="IOB2").update(true, [["B-PER", "I-PER", "O", "O"]]).compute()
        1.0
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return the right spans, and the predicted spans."""
        del true
        return both, pred


class SpanRecall(SpanMetric[NoAverage]):
    """Span recall: the share of true spans that are predicted.

    Formula: b / t, with b of t true spans predicted.

    Parameters are those of `SpanMetric`.

    Reference: ``seqeval.metrics.recall_score``, with ``mode="strict"`` if `scheme` is set.

    Example:
        >>> import streammetrics as sm
        >>> true = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> sm.SpanRecall(scheme="IOB2").update(true, [["B-PER", "I-PER", "O", "O"]]).compute()
        0.5
    """

    higher_is_better = True
    value_range = (0.0, 1.0)

    def _parts(self, true: Floats, pred: Floats, both: Floats) -> tuple[Floats, Floats]:
        """Return the right spans, and the true spans."""
        del pred
        return both, true
