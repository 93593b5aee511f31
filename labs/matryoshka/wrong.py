"""Common wrong answers: a name, what is wrong, and the function that stands in place of the right one."""

WRONG = [
    (
        "not-renormalised",
        "The rows are cut and left as short as they are: a document that keeps more of itself in front ranks higher.",
        """
def truncate(x, dim):
    if not 1 <= dim <= x.shape[1]:
        raise ValueError(f"dim must lie between 1 and {x.shape[1]}, got {dim}")
    return x[:, :dim]
""",
    ),
    (
        "normalised-before-the-cut",
        "The rows are brought to length 1 and then cut, so that the prefixes are not unit vectors.",
        """
def truncate(x, dim):
    if not 1 <= dim <= x.shape[1]:
        raise ValueError(f"dim must lie between 1 and {x.shape[1]}, got {dim}")
    return torch.nn.functional.normalize(x, dim=1)[:, :dim]
""",
    ),
    (
        "divided-by-zero",
        "A row with nothing left is divided by its length, 0, and becomes NaN.",
        """
def truncate(x, dim):
    if not 1 <= dim <= x.shape[1]:
        raise ValueError(f"dim must lie between 1 and {x.shape[1]}, got {dim}")
    cut = x[:, :dim]
    return cut / cut.norm(dim=1, keepdim=True)
""",
    ),
    (
        "rank-from-zero",
        "The discount is 1 / log2(rank): the second document is worth as much as the first.",
        """
def ndcg(scores, relevant, k=10):
    k = min(k, scores.shape[1])
    discount = 1 / torch.arange(1, k + 1, dtype=torch.float64).log2().clamp(min=1)
    ranking = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    gained = relevant.gather(1, ranking).double() @ discount
    return gained / discount.cumsum(0)[relevant.sum(1).clamp(max=k) - 1]
""",
    ),
    (
        "ideal-without-cutoff",
        "The best order counts all right documents, even those that no list of k has room for: 1 is out of reach.",
        """
def ndcg(scores, relevant, k=10):
    discount = 1 / torch.arange(2, scores.shape[1] + 2, dtype=torch.float64).log2()
    ranking = scores.argsort(dim=1, descending=True, stable=True)
    gained = relevant.gather(1, ranking)[:, :k].double() @ discount[:k]
    return gained / discount.cumsum(0)[relevant.sum(1) - 1]
""",
    ),
    (
        "mean-over-queries",
        "The mean is taken at once: one number, and nothing left to pair.",
        """
def ndcg(scores, relevant, k=10):
    k = min(k, scores.shape[1])
    discount = 1 / torch.arange(2, k + 2, dtype=torch.float64).log2()
    ranking = scores.argsort(dim=1, descending=True, stable=True)[:, :k]
    gained = relevant.gather(1, ranking).double() @ discount
    return (gained / discount.cumsum(0)[relevant.sum(1).clamp(max=k) - 1]).mean()
""",
    ),
    (
        "centred",
        "The documents' mean is subtracted first. That is PCA, and it moves the origin that cosines are measured from.",
        """
def svd_scores(queries, documents, dim):
    mean = documents.mean(0)
    directions = torch.linalg.svd(documents - mean, full_matrices=False).Vh[:dim].T
    return truncate((queries - mean) @ directions, dim) @ truncate((documents - mean) @ directions, dim).T
""",
    ),
    (
        "fitted-on-the-queries",
        "The directions are those of the queries, which nobody has when the documents are indexed.",
        """
def svd_scores(queries, documents, dim):
    directions = torch.linalg.svd(queries, full_matrices=True).Vh[:dim].T
    return truncate(queries @ directions, dim) @ truncate(documents @ directions, dim).T
""",
    ),
    (
        "no-seed",
        "The draws come from torch's global generator, so that nobody can draw them again.",
        """
def draw_queries(queries, resamples, seed):
    return torch.randint(queries, (resamples, queries))
""",
    ),
    (
        "without-replacement",
        "Each set is a permutation of the queries: every mean is the same, and every interval has no width.",
        """
def draw_queries(queries, resamples, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randperm(queries, generator=generator) for _ in range(resamples)])
""",
    ),
    (
        "unpaired",
        "The second system is averaged over other sets than the first: what makes a query hard no longer drops out.",
        """
def paired_interval(ours, baseline, drawn, level=0.95):
    means = ours[drawn].mean(1) - baseline[drawn.flip(0)].mean(1)
    low, high = torch.quantile(means, torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=means.dtype))
    return ours.mean() - baseline.mean(), low, high
""",
    ),
    (
        "quantiles-of-one-tail",
        "Each end leaves out 1 - level, twice what it should: an interval of 90 % that is called one of 95 %.",
        """
def paired_interval(ours, baseline, drawn, level=0.95):
    means = (ours - baseline)[drawn].mean(1)
    low, high = torch.quantile(means, torch.tensor([1 - level, level], dtype=means.dtype))
    return (ours - baseline).mean(), low, high
""",
    ),
    (
        "no-ties",
        "The verdict goes by the middle of the interval, so that nothing is ever a tie.",
        """
def verdict(low, high):
    return "win" if low + high > 0 else "loss"
""",
    ),
]
