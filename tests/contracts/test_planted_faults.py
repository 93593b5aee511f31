"""Every contract goes red on a loss with just that fault, on a small counterexample, and right losses stay green."""

import functools
import math
import time

import pytest

import planted
from losslab import mistakes
from losslab.contracts import CONTRACTS, Conventions, check, oracles, parametrize_with_contracts
from losslab.contracts.adapters import callable_loss

# What the fault breaks, all of it and nothing else. A fault that lives in the padding shows in a batch too: the shorter
# list is padded there; and ties that depend on the width are found by both contracts that vary it.
BREAKS = {
    "padded length": {"padding_invariance", "batch_invariance"},
    "per document": {"batch_invariance"},
    "gradient at padding": {"padding_gradient"},
    "short lists counted": {"short_lists"},
    "labels ignored": {"permutation"},
    "unstable sort": {"padding_invariance", "tie_order"},
    "absolute logits": {"shift_invariance"},
    "plain exponentials": {"extreme_logits"},
    "native half": {"precision"},
    "cpu weights": {"device"},
}
# The promises of every kind, and a built mistake with the right value but for what it does besides.
BAD_MANNERS = {
    "inputs_unchanged": "listmle_writes_logits",
    "no_state": "listmle_order_kept",
    "random_state": "listmle_random_ties",
    "settings": "listmle_prints",
}
# What changes from call to call is seen by whatever asks twice: such a mistake breaks more than its own promise.
SEEN_ELSEWHERE = {"no_state", "random_state"}


def test_every_contract_has_a_fault_planted():
    planted_for = set.union(*BREAKS.values()) | BAD_MANNERS.keys()
    assert planted_for == {contract.id for contract in CONTRACTS["listwise"]} - {"objective"}


@pytest.fixture(scope="module")
def reports():
    """One report a fault, made when first asked for."""
    return functools.cache(lambda fault: check(planted.with_fault(fault), examples=30))


@pytest.mark.parametrize("fault", BREAKS)
def test_a_fault_breaks_just_its_contracts(reports, fault):
    report = reports(fault)
    assert set(report.broken) == BREAKS[fault], str(report)
    assert not report
    assert all(result.verdict in ("kept", "broken") for result in report.results), str(report)


@pytest.mark.parametrize("contract", BAD_MANNERS)
def test_bad_manners_break_their_promise(contract):
    wrong = mistakes.get(BAD_MANNERS[contract]).wrong
    report = check(wrong, "listwise", examples=30, only=[contract] if contract in SEEN_ELSEWHERE else None)
    assert report.broken == (contract,), str(report)
    assert len(str(report[contract].counterexample)) < 900, str(report)


def test_objective_goes_red_where_only_the_weights_are_off():
    report = check(planted.with_fault("weights off"), against="list_mle", examples=20)
    assert report.broken == ("objective",), str(report)
    result = report["objective"]
    assert result.counterexample.direction == "kept"
    assert result.counterexample.factor == pytest.approx(1.001, abs=1e-4)


RIGHT = {
    "float32": planted.list_mle,
    "a thousandth of it": callable_loss(lambda z, y, m: planted.list_mle(z, y, m) / 1000, name="a thousandth of it"),
    "a thousand times": callable_loss(lambda z, y, m: planted.list_mle(z, y, m) * 1000, name="a thousand times"),
    "summed": functools.partial(planted.list_mle, reduction="sum"),
    "one value a query": functools.partial(planted.list_mle, reduction="none"),
    "short lists counted": functools.partial(planted.list_mle, count_short_lists=True),
    "as given": functools.partial(planted.list_mle, order="given"),
    "pairwise": planted.pairwise,
}


@parametrize_with_contracts(RIGHT.values(), seeds=range(3), examples=15)
def test_right_losses_are_never_flagged(loss, contract):
    contract(loss)


# Process time leaves out who else is on the machine; a slower core than ours gets three times as long.
@pytest.mark.timing
@pytest.mark.parametrize("fault", ["padded length", "unstable sort", "per document"])
def test_a_mistake_is_caught_within_seconds(fault):
    start = time.process_time()
    report = check(planted.with_fault(fault), only=BREAKS[fault])
    assert set(report.broken) == BREAKS[fault]
    assert time.process_time() - start < 15


def test_padding_bug_shrinks_to_two_documents_and_one_empty_slot(reports):
    counterexample = reports("padded length")["padding_invariance"].counterexample
    (query,) = counterexample.queries
    assert len(query) == 2
    assert query.logits == (0.0, 0.5)
    assert counterexample.setting["width"] == "3 (1 empty), holding logit 0, label 0"
    value, gradient = counterexample.quantities
    assert value.got == pytest.approx(1.5 * value.should, rel=1e-5)
    assert gradient.got == pytest.approx([1.5 * g for g in gradient.should], rel=1e-5)
    assert counterexample.factor == pytest.approx(1.5, rel=1e-4)


def test_tie_order_shrinks_to_the_width_where_torch_changes_its_sort(reports):
    counterexample = reports("unstable sort")["tie_order"].counterexample
    (query,) = counterexample.queries
    assert query.logits == (0.0, 0.5)
    assert query.labels == (0.0, 0.0)
    assert counterexample.setting["width"].startswith("17 ")
    assert counterexample.direction == "changed"
    assert counterexample.cosine == pytest.approx(-1, abs=1e-6)


def test_a_short_list_that_counts_less_is_told_from_one_that_is_taught_something_else(reports):
    weight = reports("per document")["batch_invariance"].counterexample
    assert [len(query) for query in weight.queries] == [2, 3]
    assert weight.direction == "kept"
    # Alone it is divided by 2 documents, in the batch by 5, where half of what it is alone would be by 4.
    assert weight.factor == pytest.approx(0.8, rel=1e-4)
    assert "keeps its direction; its weight is off by a factor of 0.8" in weight.sentence

    ghosts = mistakes.get("listmle_padding").wrong
    direction = check(ghosts, only=["batch_invariance"])["batch_invariance"].counterexample
    assert direction.direction == "changed"
    assert direction.factor is None
    assert "changes direction: cosine" in direction.sentence


def test_a_batch_is_padded_where_its_lists_differ(reports):
    counterexample = reports("padded length")["batch_invariance"].counterexample
    assert sorted(len(query) for query in counterexample.queries) == [2, 3]


def test_short_lists_shrink_to_one_of_them(reports):
    counterexample = reports("short lists counted")["short_lists"].counterexample
    assert [len(query) for query in counterexample.queries] == [2, 0]
    value, _ = counterexample.quantities
    assert value.got == pytest.approx(value.should / 2)


def test_empty_slot_with_a_gradient_is_named(reports):
    counterexample = reports("gradient at padding")["padding_gradient"].counterexample
    assert counterexample.sentence == "Slot 3 of 3 is empty, yet it gets a gradient."
    assert counterexample.quantities[0].got == 1
    assert counterexample.quantities[0].should == 0


def test_shift_shrinks_to_a_small_whole_number(reports):
    counterexample = reports("absolute logits")["shift_invariance"].counterexample
    assert counterexample.setting["shift"].startswith(("1, from", "-1, from"))
    value, _ = counterexample.quantities
    assert abs(value.got - value.should) == pytest.approx(0.02, rel=1e-3)  # 0.01 for each of two documents


def test_extreme_logits_say_what_is_right_although_the_loss_cannot_compute_it(reports):
    counterexample = reports("plain exponentials")["extreme_logits"].counterexample
    (query,) = counterexample.queries
    assert max(map(abs, query.logits)) <= 1000
    value, gradient = counterexample.quantities
    right_value, right_gradient = oracles.list_mle(query.logits, query.labels)
    assert value.should == pytest.approx(right_value, rel=1e-6)
    assert gradient.should == pytest.approx(right_gradient, rel=1e-6)
    assert not (math.isfinite(value.got) and all(map(math.isfinite, gradient.got)))


def test_device_names_operation_file_and_line(reports):
    sentence = reports("cpu weights")["device"].counterexample.sentence
    assert "gets tensors on cuda:0 and on cpu" in sentence
    assert "planted.py, line " in sentence
    assert "values * torch.ones(values.shape[1])" in sentence


def test_precision_names_the_number_format(reports):
    assert reports("native half")["precision"].counterexample.setting["number format"] in ("bfloat16", "float16")


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_gives_the_same_report(seed):
    wrong = planted.with_fault("absolute logits")
    first, second = (check(wrong, seed=seed, only=["shift_invariance", "batch_invariance"]) for _ in range(2))
    assert first.to_dict() == second.to_dict()


def test_a_loss_that_shuffles_ties_at_random_breaks_tie_order():
    def shuffled(logits, labels, mask):
        import torch

        order = torch.randperm(labels.shape[1])
        return planted.list_mle(logits[:, order], labels[:, order], mask[:, order])

    report = check(shuffled, only=["tie_order"])
    assert report.broken == ("tie_order",)


def test_conventions_change_what_is_asked():
    counted = functools.partial(planted.list_mle, fault="short lists counted")
    assert check(counted, only=["short_lists"]).broken == ("short_lists",)
    assert check(counted, count_short_lists=True, only=["short_lists"])

    summed = callable_loss(lambda z, y, m: planted.list_mle(z, y, m, reduction="sum"))
    assert check(summed, only=["batch_invariance"]).broken == ("batch_invariance",)
    assert check(summed, reduction="sum", only=["batch_invariance"])


def test_given_order_exempts_from_permutation_and_ties_alone_and_says_why():
    report = check(planted.with_fault("labels ignored"), order="given", examples=20)
    exempt = {result.contract: result.reason for result in report.results if result.verdict == "exempt"}
    assert exempt.keys() == {"permutation", "tie_order"}
    assert report
    assert all("declared order='given': documents are ranked as they stand" in reason for reason in exempt.values())
    assert report.conventions == Conventions(order="given")
    assert "ranked as given" in str(report)


def test_keywords_bound_by_a_partial_are_declared_and_arguments_override():
    loss = functools.partial(planted.list_mle, order="given", reduction="sum")
    assert check(loss, only=["device"]).conventions == Conventions(order="given", reduction="sum")
    assert check(loss, only=["device"], order="labels").conventions == Conventions(order="labels", reduction="sum")
