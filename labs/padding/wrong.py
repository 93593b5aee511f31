"""Common wrong answers: a name, what is wrong, and the function that stands in place of the right one."""

WRONG = [
    (
        "mask-after-the-sum",
        "Empty slots are filled with 1e-16 and masked after the sum: their mass stays in every denominator.",
        """
def choice_costs(logits, mask):
    logits = logits.masked_fill(~mask, 1e-16)
    return (mass_left(logits) - logits).masked_fill(~mask, 0)
""",
    ),
    (
        "fill-with-minus-ten",
        "A smaller number in the empty slots: lighter ghosts, and as heavy as any document where logits are near -10.",
        """
def choice_costs(logits, mask):
    logits = logits.masked_fill(~mask, -10.0)
    return (mass_left(logits) - logits).masked_fill(~mask, 0)
""",
    ),
    (
        "times-the-mask",
        "The costs are multiplied by the mask, and 0 times what is infinite or NaN is NaN.",
        """
def choice_costs(logits, mask):
    left = mass_left(logits.masked_fill(~mask, -torch.inf))
    return (left - logits) * mask
""",
    ),
    (
        "exponentials",
        "The mass is a running sum of exponentials, which overflow above 88 and vanish below -103 in float32.",
        """
def mass_left(logits):
    return logits.exp().flip(1).cumsum(1).flip(1).log()
""",
    ),
    (
        "sum-from-the-start",
        "The running sum is not turned around: pick i is charged for the documents before it.",
        """
def mass_left(logits):
    return logits.logcumsumexp(1)
""",
    ),
    (
        "unstable-sort",
        "Ties are left to a sort that promises nothing about them: another order in rows of 17 slots or more.",
        """
def by_label(labels, mask):
    return labels.masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True)
""",
    ),
    (
        "worst-first",
        "Sorted from the lowest label up, with the empty slots last: the loss teaches the reverse of the ranking.",
        """
def by_label(labels, mask):
    return labels.masked_fill(~mask, torch.inf).argsort(dim=1, stable=True)
""",
    ),
    (
        "short-lists-counted",
        "Lists of one document are counted in the mean, so that they dilute everybody else's gradient.",
        """
def list_mle(logits, labels, mask):
    if not (mask.sum(1) >= 2).any():
        raise ValueError("no list has two documents")
    places = by_label(labels, mask)
    return choice_costs(logits.gather(1, places), mask.gather(1, places)).sum(1).mean()
""",
    ),
    (
        "mean-over-documents",
        "The mean is over all documents of the batch: a query's weight depends on how long the other lists are.",
        """
def list_mle(logits, labels, mask):
    rankable = mask.sum(1) >= 2
    if not rankable.any():
        raise ValueError("no list has two documents")
    places = by_label(labels, mask)
    costs = choice_costs(logits.gather(1, places), mask.gather(1, places))
    return costs[rankable].sum() / mask[rankable].sum()
""",
    ),
    (
        "no-error",
        "With nothing to rank the loss is 0 / 0 and nobody is told.",
        """
def list_mle(logits, labels, mask):
    rankable = mask.sum(1) >= 2
    places = by_label(labels, mask)
    costs = choice_costs(logits.gather(1, places), mask.gather(1, places)).sum(1)
    return costs.masked_fill(~rankable, 0).sum() / rankable.sum()
""",
    ),
]
