"""The casebook has an entry for each of the 41 public reports that it is for, and numbers wherever there are any."""

import pytest

from losslab.contracts import contracts_of
from losslab.contracts.checking import KINDS
from losslab.mistakes import MISTAKES

#: A report each, by topic.
CASES = {
    "contrastive": """infonce-dup-floor infonce-no-normalise infonce-symmetric infonce-multipos-denominator
        infonce-inbatch-off-broadcast gist-exact-duplicate pml-single-pair-zero ce-mnrl-sigmoid-floor
        soft-target-collapse""",
    "several devices, or micro-batches": """gather-layout gist-rank-offset ddp-mean-world-size infonce-grad-accum
        gradcache-equals-full""",
    "listwise": """listmle-padding listmle-overflow plistmle-rank0 listmle-tied-sort lambda-tied-logits
        lambda-micro-average listmle-ignores-labels metric-pad-outranks pairwise-label-scale""",
    "matryoshka": "mrl-not-renormalised mrl-dim-order mrl-forces-cosine pca-inner-product",
    "perplexity": """bpb-log-base no-shift double-shift one-token-text grad-accum-tokens num-items-undercount
        corpus-vs-mean-of-ppl pad-in-both mask-wrong-side pad-is-eos tokenizer-incomparable log-of-softmax
        double-softmax exp-overflow""",
}
ALL = [case for cases in CASES.values() for case in cases.split()]


def test_every_report_has_its_mistake():
    assert len(ALL) == len(set(ALL)) == 41
    assert {mistake.case for mistake in MISTAKES.values() if mistake.case} == set(ALL)


@pytest.mark.parametrize("case", ALL)
def test_it_was_met_and_shows_numbers(case):
    for mistake in MISTAKES.values():
        if mistake.case == case:
            assert mistake.met == "public"
            assert mistake.source != "built"
            assert mistake.example is not None


@pytest.mark.parametrize("kind", KINDS)
def test_every_contract_has_a_mistake_and_says_whether_it_was_met_or_built(kind):
    for contract in contracts_of(kind, objective=True):
        caught = [m for m in MISTAKES.values() if m.kind == kind and m.breaks == contract.id]
        assert caught, f"no {kind} mistake breaks {contract.id}"
        for mistake in caught:
            assert mistake.met == ("built" if mistake.source == "built" else "public"), mistake.name
