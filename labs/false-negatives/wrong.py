"""Common wrong answers to "A mask that knows": name, what is wrong, and the function as it was handed in."""

WRONG = [
    (
        "chance-replaced",
        "It draws with replacement: the formula with a rate and a power.",
        """
def chance_of_meeting(right, pairs, width):
    return 1 - (1 - right / (pairs - 1)) ** (width - 1)
""",
    ),
    (
        "chance-query-drawn",
        "It leaves the query's own pair in the urn, from which nobody can draw it.",
        """
def chance_of_meeting(right, pairs, width):
    return 1 - math.comb(pairs - right, width - 1) / math.comb(pairs, width - 1)
""",
    ),
    (
        "chance-expected",
        "It gives the mean number of right answers in the batch, which is no chance and can pass 1.",
        """
def chance_of_meeting(right, pairs, width):
    return right * (width - 1) / (pairs - 1)
""",
    ),
    (
        "ids-documents-only",
        "It looks at the documents' ids and forgets that two queries may ask the same.",
        """
def allowed_by_ids(query_ids, document_ids):
    same = document_ids[:, None] == document_ids
    return ~same | torch.eye(len(query_ids), dtype=torch.bool)
""",
    ),
    (
        "ids-positive-masked",
        "It masks the positives with the rest: a document has its own id.",
        """
def allowed_by_ids(query_ids, document_ids):
    return (query_ids[:, None] != query_ids) & (document_ids[:, None] != document_ids)
""",
    ),
    (
        "ids-inverted",
        "It says True for what is forbidden.",
        """
def allowed_by_ids(query_ids, document_ids):
    same = (query_ids[:, None] == query_ids) | (document_ids[:, None] == document_ids)
    return same & ~torch.eye(len(query_ids), dtype=torch.bool)
""",
    ),
    (
        "guide-above-only",
        "It wants a false negative to score higher than the bound, and spares what scores the same: exact copies.",
        """
def allowed_by_guide(guide_scores, margin):
    allowed = guide_scores <= guide_scores.diagonal()[:, None] - margin
    return allowed | torch.eye(len(guide_scores), dtype=torch.bool)
""",
    ),
    (
        "guide-positive-masked",
        "It masks the positives too: they score as high as themselves.",
        """
def allowed_by_guide(guide_scores, margin):
    return guide_scores < guide_scores.diagonal()[:, None] - margin
""",
    ),
    (
        "guide-margin-up",
        "It adds the margin, and so forgives what is ahead of the positive.",
        """
def allowed_by_guide(guide_scores, margin):
    allowed = guide_scores < guide_scores.diagonal()[:, None] + margin
    if margin == 0:
        allowed = guide_scores < guide_scores.diagonal()[:, None]
    return allowed | torch.eye(len(guide_scores), dtype=torch.bool)
""",
    ),
    (
        "guide-by-column",
        "It compares a document with its own query's positive, the column's, and not with that of the query who asks.",
        """
def allowed_by_guide(guide_scores, margin):
    allowed = guide_scores < guide_scores.diagonal()[None, :] - margin
    return allowed | torch.eye(len(guide_scores), dtype=torch.bool)
""",
    ),
    (
        "loss-zero-logit",
        "It multiplies the logits by the mask: a masked document keeps a logit of 0, and e to the 0 is 1.",
        """
def masked_info_nce(queries, documents, negatives=None, temperature=0.05):
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    logits = q @ d.T / temperature
    if negatives is not None:
        own = torch.eye(len(q), len(d), dtype=torch.bool)
        logits = logits * (negatives | own)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(q)))
""",
    ),
    (
        "loss-late-mask",
        "It masks the probabilities, when the masked documents have taken theirs already.",
        """
def masked_info_nce(queries, documents, negatives=None, temperature=0.05):
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    log_p = torch.log_softmax(q @ d.T / temperature, dim=1)
    if negatives is not None:
        own = torch.eye(len(q), len(d), dtype=torch.bool)
        log_p = log_p * (negatives | own)
    return -log_p.diagonal().mean()
""",
    ),
    (
        "loss-inf-times-zero",
        "It adds minus infinity times the mask, which is NaN wherever the mask is 0.",
        """
def masked_info_nce(queries, documents, negatives=None, temperature=0.05):
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    logits = q @ d.T / temperature
    if negatives is not None:
        own = torch.eye(len(q), len(d), dtype=torch.bool)
        logits = logits - torch.inf * (~(negatives | own)).float()
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(q)))
""",
    ),
    (
        "loss-positive-dropped",
        "It believes the mask, and a positive that the mask forbids costs infinitely much.",
        """
def masked_info_nce(queries, documents, negatives=None, temperature=0.05):
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    logits = q @ d.T / temperature
    if negatives is not None:
        logits = logits.masked_fill(~negatives, -torch.inf)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(q)))
""",
    ),
    (
        "loss-lonely-left-out",
        "It takes the mean over queries that have a negative left, so the others weigh more.",
        """
def masked_info_nce(queries, documents, negatives=None, temperature=0.05):
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    logits = q @ d.T / temperature
    target = torch.arange(len(q))
    if negatives is None:
        return torch.nn.functional.cross_entropy(logits, target)
    own = torch.eye(len(q), len(d), dtype=torch.bool)
    logits = logits.masked_fill(~(negatives | own), -torch.inf)
    some = (negatives & ~own).any(1)
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")[some].mean()
""",
    ),
    (
        "loss-not-normalised",
        "It takes dot products where cosines are wanted, so long vectors count more.",
        """
def masked_info_nce(queries, documents, negatives=None, temperature=0.05):
    logits = queries @ documents.T / temperature
    if negatives is not None:
        own = torch.eye(*logits.shape, dtype=torch.bool)
        logits = logits.masked_fill(~(negatives | own), -torch.inf)
    return torch.nn.functional.cross_entropy(logits, torch.arange(len(queries)))
""",
    ),
    (
        "count-alone",
        "It looks for rows without a True, and finds none: the positive always is.",
        """
def count_masked(allowed, wrong):
    masked = ~allowed
    caught = (masked & wrong).sum().item()
    alone = (~allowed.any(1)).sum().item()
    return {"masked": masked.sum().item(), "caught": caught, "lost": masked.sum().item() - caught, "alone": alone}
""",
    ),
    (
        "count-missed",
        "It counts as lost the right answers that the mask missed, not the plain negatives that it took.",
        """
def count_masked(allowed, wrong):
    others = ~torch.eye(len(allowed), dtype=torch.bool)
    masked = ~allowed & others
    alone = (masked.sum(1) == len(allowed) - 1).sum().item()
    return {
        "masked": masked.sum().item(),
        "caught": (masked & wrong).sum().item(),
        "lost": (allowed & others & wrong).sum().item(),
        "alone": alone,
    }
""",
    ),
]
