"""What can be typed: the options of the commands, and their completion by Tab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from streammetrics.cli.errors import CommandError
from streammetrics.cli.tasks import TASKS
from streammetrics.core.catalogue import catalogue
from streammetrics.readers.paths import FORMATS

if TYPE_CHECKING:
    from typer import Context


class Once(TyperCommand):
    """A command whose options, but for lists, are given once: the last does not win quietly."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]  # the context is a subclass
        """Parse as ever, after refusing what is given twice."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen: set[Any] = set()
        for param in order:
            single = not getattr(param, "multiple", True) and not getattr(param, "is_flag", False)
            if param in seen and single:
                ctx.fail(f"Option {param.opts[-1]} is given twice")
            seen.add(param)
        return super().parse_args(ctx, args)


def _option(text: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, **more)


def _completed_list(incomplete: str, words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    # What was typed stays, also its case: else the shell takes none of them.
    last = incomplete.rpartition(",")[2]
    return [
        (f"{incomplete}{word[len(last) :]}", text)
        for word, text in words
        if word.lower().startswith(last.lower())
    ]


def complete_metrics(incomplete: str) -> list[tuple[str, str]]:
    """Return the metrics that the last word of a list may become, each with its summary."""
    return _completed_list(incomplete, [(n, summary(cls)) for n, cls in catalogue().items()])


def complete_task(incomplete: str) -> list[str]:
    """Return the tasks that begin so."""
    return [name for name in TASKS if name.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Return the formats that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def refuse_format(value: str | None) -> None:
    """Raise where `--format` was typed, which could be that of either side."""
    if value is not None:
        raise CommandError(
            "--format could be that of the files or of the results: --input-format "
            f"{value if value in FORMATS else 'csv'} names that of files; results are printed with "
            "--json -, --csv - or --markdown -"
        )


def share(value: float | None) -> float | None:
    """Return the level of limits, or raise where it is no share."""
    if value is not None and not 0 < value < 1:
        raise CommandError(f"--confidence {value:g}: expected a share such as 0.95")
    return value


def summary(cls: type) -> str:
    """Return the first sentence of a class's documentation."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


# --- of evaluate, in the order of its help -------------------------------------------------------

Task = Annotated[
    str,
    _option(
        "What is predicted.",
        metavar="|".join(TASKS),
        show_default=False,
        autocompletion=complete_task,
    ),
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Parquet, Arrow, CSV, JSON lines or tagged text: files, folders, globs; - is standard "
        "input.",
    ),
]
YTrue = Annotated[str | None, _option("The column of true labels or values.")]
YScore = Annotated[
    list[str] | None,
    _option(
        "The column of scores; for several classes a list p0,p1,p2 or a glob 'p*'. Given again: "
        "another model, shown beside the first."
    ),
]
YPred = Annotated[
    list[str] | None,
    _option("The column of predicted labels or values. Given again: another model."),
]
Scale = Annotated[
    str | None, _option("forecasting: the column of what errors of the series are relative to.")
]
YLow = Annotated[str | None, _option("forecasting: the column of the intervals' lower ends.")]
YHigh = Annotated[str | None, _option("forecasting: the column of their upper ends.")]
YMean = Annotated[str | None, _option("forecasting: the column of means of normal forecasts.")]
YStd = Annotated[str | None, _option("forecasting: the column of their standard deviations.")]
YEnsemble = Annotated[
    str | None, _option("forecasting: the columns of an ensemble's members, a list or a glob.")
]
YQuantiles = Annotated[
    str | None, _option("forecasting: the columns of quantiles, in the order of --levels.")
]
Pit = Annotated[str | None, _option("forecasting: the column of probability integral transforms.")]
Levels = Annotated[str | None, _option("forecasting: the levels of --y-quantiles, as 0.1,0.5,0.9.")]
Ratings = Annotated[
    str | None,
    _option("agreement: how many raters chose each category, a column each: a list or a glob."),
]
Item = Annotated[str | None, _option("recommendation: the column of items, one a recommendation.")]
Category = Annotated[str | None, _option("recommendation: the column of the items' categories.")]
Popularity = Annotated[
    str | None, _option("recommendation: the column of the share of users who know the item.")
]
Time = Annotated[str | None, _option("survival: the column of times.")]
Event = Annotated[str | None, _option("survival: whether the time is of an event, or censored.")]
Reference = Annotated[str | None, _option("text: the column of texts as they should be.")]
Prediction = Annotated[
    list[str] | None,
    _option("text: the column of texts as they are said. Given again: another model."),
]
TrueBoxes = Annotated[
    str | None, _option("boxes: the column of true boxes, a list for each image.")
]
TrueLabels = Annotated[str | None, _option("boxes: the column of their classes.")]
TrueCrowd = Annotated[
    str | None, _option("boxes: the column of whether they stand for crowds, 1 or 0.")
]
TrueAreas = Annotated[
    str | None, _option("boxes: the column of the areas by which they are small or large.")
]
PredBoxes = Annotated[
    list[str] | None,
    _option("boxes: the column of predicted boxes. Given again: another model."),
]
PredLabels = Annotated[list[str] | None, _option("boxes: the column of their classes.")]
PredScores = Annotated[list[str] | None, _option("boxes: the column of their scores.")]
Annotations = Annotated[
    str | None, _option("boxes: a COCO file of annotations, instead of PATH.", metavar="FILE")
]
ResultsFiles = Annotated[
    list[str] | None,
    _option(
        "boxes: a COCO file of results, with --annotations. Given again: another model.",
        "--results",
        metavar="FILE",
    ),
]
BoxFormat = Annotated[
    str | None,
    _option(
        "boxes: what the numbers of a box are; xyxy by default, xywh in COCO's files.",
        metavar="xyxy|xywh|cxcywh",
    ),
]
Values = Annotated[str | None, _option("aggregation: the column of values.")]
Weight = Annotated[str | None, _option("The column of row weights.")]
Query = Annotated[
    str | None, _option("ranking: the column of query ids; recommendation: of lists.")
]
Relevance = Annotated[
    str | None, _option("ranking: the column of relevances; null where not judged.")
]
Score = Annotated[
    list[str] | None,
    _option(
        "ranking: the column of scores, null where not retrieved; survival: that of risks. Given "
        "again: another model."
    ),
]
Doc = Annotated[str | None, _option("ranking: the column of document ids.")]
QueryWeight = Annotated[str | None, _option("ranking: the column of the queries' weights.")]
Qrels = Annotated[
    str | None, _option("ranking: a TREC file of judgments, instead of PATH.", metavar="FILE")
]
Run = Annotated[
    list[str] | None,
    _option(
        "ranking: a TREC file of results, with --qrels. Given again: another model.",
        metavar="FILE",
    ),
]
LabelsTrue = Annotated[
    str | None, _option("clustering: the column of true labels; agreement: of one labeling.")
]
LabelsPred = Annotated[
    list[str] | None,
    _option(
        "clustering: the column of predicted clusters; agreement: of the other labeling. Given "
        "again: another model."
    ),
]
Features = Annotated[
    str | None, _option("clustering: the columns of coordinates, a list or a glob 'x*'.")
]
Labels = Annotated[
    str | None,
    _option(
        "The classes, as 0,1,2 or cat,dog, for averages over classes also some; clustering: the "
        "column of the clusters of --features."
    ),
]
Metrics = Annotated[
    list[str] | None,
    _option(
        "What to compute, such as 'F1,FBeta(beta=2),ROCAUC', instead of the default; "
        "streammetrics metrics lists what there is.",
        autocompletion=complete_metrics,
    ),
]
Threshold = Annotated[
    float | None, _option("Scores from here on are positive; 0.5 if there is no --y-pred.")
]
MaxBins = Annotated[
    int | None, _option("Distinct scores kept apart; past them values are certified intervals.")
]
NanPolicy = Annotated[
    str | None,
    _option("What to do with rows that lack a value; raise by default.", metavar="raise|omit"),
]
FromLogits = Annotated[
    bool,
    _option("Scores are logits: probabilities are made of them, row by row.", "--from-logits"),
]
IgnoreIndex = Annotated[int | None, _option("Leave out rows with this true label.")]
PosLabel = Annotated[str | None, _option("The positive class; 1 by default.")]
Average = Annotated[
    str | None,
    _option(
        "How classes are averaged; metrics that lack an average (ROCAUC has no micro) keep "
        "their own default, which --json shows.",
        metavar="binary|micro|macro|weighted|none",
    ),
]
K = Annotated[
    list[str] | None,
    _option(
        "ranking: how many results count, such as 5,10,100, in every metric that takes k and "
        "does not say its own; 10 by default in the default metrics."
    ),
]
Preset = Annotated[
    str | None,
    _option(
        "ranking: another tool's conventions; trec_eval by default with --qrels.",
        metavar="trec_eval|sklearn",
    ),
]
Ties = Annotated[
    str | None,
    _option(
        "ranking: equal scores in expectation, or by descending document.", metavar="average|doc"
    ),
]
RelevantAt = Annotated[float | None, _option("ranking: the least relevance that is one.")]
NoRelevant = Annotated[
    str | None, _option("ranking: queries without a relevant document.", metavar="zero|skip")
]
Unretrieved = Annotated[
    str | None,
    _option(
        "ranking: judged queries without results; zero is trec_eval's -c.", metavar="zero|skip"
    ),
]
Confidence = Annotated[
    float | None,
    _option(
        "Also print limits that hold the value of the population in this share of all samples.",
        metavar="SHARE",
        callback=share,
    ),
]
Unit = Annotated[
    str | None,
    _option(
        "Limits of --confidence are those of a sample of units, not of rows: the column that says "
        "which rows hang together, such as user.",
        metavar="COLUMN",
    ),
]
PerQuery = Annotated[bool, _option("Show the value of each query too.", "--per-query")]
By = Annotated[
    list[str] | None,
    _option(
        "Slices too: a column, several as country,device, or numbers in bins as age:18:30:50. "
        "Given again: another kind of slice.",
        metavar="COLUMN[,COLUMN]...",
    ),
]
MinRows = Annotated[int, _option("Show no slices of fewer rows.", min=0)]
Worst = Annotated[
    str | None,
    _option(
        "Show the slices where this metric is worst, the surest first, with confidence limits.",
        metavar="METRIC",
    ),
]
MaxSlices = Annotated[int, _option("How many slices there may be; more are a mistake.", min=1)]
InputFormat = Annotated[
    str | None,
    _option(
        "The files' format, where their endings do not say it.",
        metavar="|".join(FORMATS),
        autocompletion=complete_format,
    ),
]
OldFormat = Annotated[str | None, _option("", "--format", hidden=True, callback=refuse_format)]
Delimiter = Annotated[
    str | None,
    _option(
        "What is between the fields of CSV, such as ';' or tab; by default what the first rows of "
        "each file say."
    ),
]
BatchRows = Annotated[int, _option("Rows read at a time.", min=1)]
Workers = Annotated[
    int, _option("Processes that read; the result is the same to the last bit.", min=1)
]

# --- of outputs ----------------------------------------------------------------------------------

Json = Annotated[str | None, _option("Write the results as JSON.", "--json", metavar="FILE|-")]
Csv = Annotated[str | None, _option("Write the results as CSV.", "--csv", metavar="FILE|-")]
Markdown = Annotated[
    str | None, _option("Write the tables as Markdown.", "--markdown", metavar="FILE|-")
]
Save = Annotated[str | None, _option("Save the state, for show, merge or Python.", metavar="STATE")]
Force = Annotated[
    bool, _option("Replace files that were not written by the same option before.", "--force")
]
