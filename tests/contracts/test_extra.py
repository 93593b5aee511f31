"""Contracts of one's own beside ours."""

import pytest
from hypothesis import strategies as st

import losslab
from losslab.contracts import Contract, Counterexample, Quantity, Query, parametrize_with_contracts
from losslab.contracts.model import BrokenPromise
from losslab.losses import list_mle, list_net, p_list_mle

SCORES = st.lists(st.integers(-4, 4).map(float), min_size=2, max_size=5)


def better_is_cheaper(loss, draw):
    logits = draw(SCORES)
    labels = tuple(float(-i) for i in range(len(logits)))
    was, now = (
        float(loss.alone(Query(tuple(scores), labels)).values[0]) for scores in (logits, [logits[0] + 1, *logits[1:]])
    )
    if now > was + 1e-5 * abs(was):
        raise BrokenPromise(
            Counterexample("It rose.", (Query(tuple(logits), labels),), quantities=(Quantity("loss", now, was),))
        )


OWN = Contract("better_is_cheaper", "better is cheaper", "A better score costs less.", better_is_cheaper)


def reversed_mle(logits, labels, mask):
    return list_mle(-logits, labels, mask)


@parametrize_with_contracts([list_mle, p_list_mle], kind="listwise", extra=[OWN], only=["better_is_cheaper"])
def test_right_losses_keep_it(loss, contract):
    contract(loss)


def test_it_catches_what_ours_need_no_reason_to_look_at():
    report = losslab.check(reversed_mle, "listwise", extra=[OWN], only=["better_is_cheaper", "permutation"])
    assert report.broken == ("better_is_cheaper",)
    (query,) = report["better_is_cheaper"].counterexample.queries
    assert query.logits == (0.0, 0.0)  # the smallest


def test_it_finds_that_a_soft_target_can_be_overshot():
    # ListNet wants a softmax of the labels: a best document with a larger share than that costs more
    report = losslab.check(list_net, "listwise", extra=[OWN], only=["better_is_cheaper"])
    assert report.broken == ("better_is_cheaper",)


def test_it_stands_after_ours_and_can_be_allowed():
    report = losslab.check(reversed_mle, "listwise", extra=[OWN], examples=3, allow={"better_is_cheaper": "a cost"})
    assert report.results[-1].verdict == "by design"
    assert len(report.results) > 5


def test_its_kind_is_inferred_though_no_kind_has_it():
    report = losslab.check(reversed_mle, extra=[OWN], only="better_is_cheaper", examples=3)
    assert report.kind == "listwise"


def test_what_is_no_contract_or_has_a_name_that_is_taken():
    with pytest.raises(TypeError, match="extra must hold Contracts, got <function better_is_cheaper"):
        losslab.check(list_mle, "listwise", extra=[better_is_cheaper])
    taken = Contract("permutation", "", "", better_is_cheaper)
    with pytest.raises(ValueError, match="extra has a contract named 'permutation', and so have others of listwise"):
        losslab.check(list_mle, "listwise", extra=[taken])
    with pytest.raises(ValueError, match="extra has a contract named 'better_is_cheaper'"):
        losslab.check(list_mle, "listwise", extra=[OWN, OWN])
