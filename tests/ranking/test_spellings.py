"""Names of ir_measures, trec_eval and ranx mean what those tools compute."""

from __future__ import annotations

from pathlib import Path

import pytest

import streammetrics as sm
from streammetrics.metrics.specs import Spec, SpecError, construct, parse
from streammetrics.readers.trec import read_qrels, read_run

DATA = Path(__file__).parents[1] / "data" / "trec"
FIGURES = dict(line.split() for line in (DATA / "rag24.ir_measures").read_text().splitlines())


def test_figures_are_those_of_ir_measures():
    preset = sm.ranking_preset("trec_eval") | {"unretrieved": "zero"}  # it counts them all
    specs = {name: parse(name)[0] for name in FIGURES}
    suite = sm.MetricSet(
        {
            name: construct(Spec(spec.name, {**preset, **spec.parameters}))
            for name, spec in specs.items()
        }
    )
    for table in (*read_qrels(DATA / "rag24.qrels"), *read_run(DATA / "rag24.run.gz")):
        suite.update(table)
    for name, value in suite.compute().items():
        assert value == pytest.approx(float(FIGURES[name]), rel=1e-9), name


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nDCG@10,P@5,AP", ["NDCG(k=10)", "PrecisionAtK(k=5)", "MAP"]),
        ("P_5,ndcg_cut_20,recip_rank", ["PrecisionAtK(k=5)", "NDCG(k=20)", "MRR"]),
        ("hit_rate@3,precision@2,map", ["HitRateAtK(k=3)", "PrecisionAtK(k=2)", "MAP"]),
        ("IPrec@0.5,set_F,set_P", ["InterpolatedPrecision(recall=0.5)", "SetF", "SetPrecision"]),
        ("infAP,set_map", ["InfAP", "SetAP"]),
        ("NumRel,num_ret", ["RankingCount(of='relevant')", "RankingCount(of='results')"]),
        ("NumRet(rel=1)", ["RankingCount(of='hits', relevant_at=1)"]),
        ("NumRel(rel=2)", ["RankingCount(of='relevant', relevant_at=2)"]),
        ("precision,f1,ndcg", ["Precision", "F1", "NDCG"]),
        ("P(rel=2)@10,AP(rel=2)", ["PrecisionAtK(k=10, relevant_at=2)", "MAP(relevant_at=2)"]),
        ("nDCG(dcg='exp-log2')@5,DCG", ["NDCG(k=5, gain='exponential')", "DCG"]),
        ("ERR@10", ["ExpectedReciprocalRank(max_grade=4, k=10)"]),
        ("RBP(p=0.8),rbp.95", ["RankBiasedPrecision(p=0.8)", "RankBiasedPrecision(p=0.95)"]),
        ("ndcg_burges@3,dcg_burges", ["NDCG(gain='exponential', k=3)", "DCG(gain='exponential')"]),
        ("11pt_avg,r-precision", ["ElevenPointAP", "RPrecision"]),
        ("iprec_at_recall_0.10", ["InterpolatedPrecision(recall=0.1)"]),
    ],
)
def test_names_mean_metrics(text, meant):
    assert list(map(str, parse(text))) == meant


def test_what_a_metric_lacks_is_told_by_the_name_it_was_called():
    with pytest.raises(SpecError, match="PrecisionAtK has no parameter 'judged_only'"):
        construct(parse("P(judged_only=True)@5")[0])


@pytest.mark.parametrize("text", ["ROCAUC@5", "nDCG@", "5@nDCG", "nDCG@'a'", "nothing_5", "P@5@5"])
def test_other_names_are_refused(text):
    with pytest.raises(SpecError, match=r"no metric '(ROCAUC@5|nothing_5)'|expected names and"):
        parse(text)
