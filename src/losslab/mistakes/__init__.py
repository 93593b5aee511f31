"""The same objectives done wrong: one public bug a module, named after it. Some contract must catch every one."""

from __future__ import annotations

from losslab.mistakes import (
    ce_mnrl_sigmoid_floor,
    gist_exact_duplicate,
    gradcache_equals_full,
    infonce_clamped_scores,
    infonce_cpu_targets,
    infonce_dup_floor,
    infonce_grad_accum,
    infonce_half_scores,
    infonce_inbatch_off_broadcast,
    infonce_last_row_dropped,
    infonce_mean_denominator,
    infonce_multipos_denominator,
    infonce_no_normalise,
    infonce_nonzero_mean,
    infonce_offset_ignored,
    infonce_overflow,
    infonce_padded_negatives,
    infonce_positive_twice,
    infonce_saturated_log,
    infonce_symmetric,
    lambda_micro_average,
    lambda_tied_logits,
    listmle_epsilon,
    listmle_half_sum,
    listmle_ignores_labels,
    listmle_nan_gradient,
    listmle_overflow,
    listmle_padding,
    listmle_sentinel,
    listmle_tied_sort,
    metric_pad_outranks,
    padded_length_in_mean,
    pairwise_label_scale,
    plistmle_cpu_ranks,
    plistmle_one_document,
    plistmle_rank0,
    pml_single_pair_zero,
    soft_target_collapse,
)
from losslab.mistakes._record import Mistake

#: Every mistake by name, in the order in which the book meets them.
MISTAKES: dict[str, Mistake] = {
    module.MISTAKE.name: module.MISTAKE
    for module in (
        listmle_padding,
        listmle_sentinel,
        listmle_overflow,
        listmle_epsilon,
        listmle_nan_gradient,
        listmle_tied_sort,
        lambda_tied_logits,
        listmle_ignores_labels,
        padded_length_in_mean,
        lambda_micro_average,
        plistmle_rank0,
        plistmle_one_document,
        plistmle_cpu_ranks,
        listmle_half_sum,
        metric_pad_outranks,
        pairwise_label_scale,
        infonce_no_normalise,
        infonce_overflow,
        infonce_saturated_log,
        infonce_half_scores,
        infonce_clamped_scores,
        infonce_cpu_targets,
        infonce_last_row_dropped,
        infonce_positive_twice,
        infonce_mean_denominator,
        infonce_nonzero_mean,
        pml_single_pair_zero,
        infonce_grad_accum,
        gradcache_equals_full,
        infonce_offset_ignored,
        infonce_symmetric,
        infonce_multipos_denominator,
        soft_target_collapse,
        infonce_dup_floor,
        gist_exact_duplicate,
        infonce_padded_negatives,
        infonce_inbatch_off_broadcast,
        ce_mnrl_sigmoid_floor,
    )
}


def get(name: str) -> Mistake:
    """Return the mistake called ``name``, written with hyphens or underscores.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    mistake = MISTAKES.get(name.replace("-", "_"))
    if mistake is None:
        raise ValueError(f"no mistake is called {name!r}; there are {', '.join(MISTAKES)}")
    return mistake


__all__ = ["MISTAKES", "Mistake", "get"]
