"""Common wrong answers to "InfoNCE from scratch": name, what is wrong, and the function as it was handed in."""

WRONG = [
    (
        "scores-dot-products",
        "It multiplies without dividing by the lengths: dot products, not cosines.",
        """
def cosine_scores(queries, documents):
    return queries @ documents.T
""",
    ),
    (
        "scores-pairs-only",
        "It compares query i with document i alone and returns one score a pair.",
        """
def cosine_scores(queries, documents):
    return F.cosine_similarity(queries, documents[: len(queries)], dim=1)
""",
    ),
    (
        "scores-whole-matrix",
        "It divides by the norm of the whole matrix, because norm was called without a dimension.",
        """
def cosine_scores(queries, documents):
    return (queries / queries.norm()) @ (documents / documents.norm()).T
""",
    ),
    (
        "loss-exponentials",
        "It forms exponentials and takes the logarithm of their ratio, which overflows at low temperatures.",
        """
def info_nce(queries, documents, temperature=0.05):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    mass = (cosine_scores(queries, documents) / temperature).exp()
    return -(mass.diagonal() / mass.sum(dim=1)).log().mean()
""",
    ),
    (
        "loss-columns",
        "It normalises over the columns: documents choose among queries.",
        """
def info_nce(queries, documents, temperature=0.05):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    logits = cosine_scores(queries, documents) / temperature
    return (logits.logsumexp(dim=0)[: len(queries)] - logits.diagonal()).mean()
""",
    ),
    (
        "loss-sum",
        "It sums over the queries where the mean was asked for.",
        """
def info_nce(queries, documents, temperature=0.05):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    logits = cosine_scores(queries, documents) / temperature
    return (logits.logsumexp(dim=1) - logits.diagonal()).sum()
""",
    ),
    (
        "loss-without-positive",
        "It leaves the query's own document out of the denominator.",
        """
def info_nce(queries, documents, temperature=0.05):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    logits = cosine_scores(queries, documents) / temperature
    own = torch.eye(*logits.shape, dtype=torch.bool)
    return (logits.masked_fill(own, -torch.inf).logsumexp(dim=1) - logits.diagonal()).mean()
""",
    ),
    (
        "loss-multiplied",
        "It multiplies by the temperature where it should divide.",
        """
def info_nce(queries, documents, temperature=0.05):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    logits = cosine_scores(queries, documents) * temperature
    return (logits.logsumexp(dim=1) - logits.diagonal()).mean()
""",
    ),
    (
        "loss-detached",
        "It returns a plain number: the value is right, and nothing can be trained with it.",
        """
def info_nce(queries, documents, temperature=0.05):
    if not temperature > 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    logits = cosine_scores(queries, documents) / temperature
    return torch.tensor((logits.logsumexp(dim=1) - logits.diagonal()).mean().item())
""",
    ),
    (
        "temperature-unchecked",
        "It divides by whatever temperature it is given, 0 included.",
        """
def info_nce(queries, documents, temperature=0.05):
    logits = cosine_scores(queries, documents) / temperature
    return (logits.logsumexp(dim=1) - logits.diagonal()).mean()
""",
    ),
    (
        "start-only-guessing",
        "It says ln B: the price of equal scores, not of random ones.",
        """
def expected_start(width, dimension, temperature):
    return math.log(width)
""",
    ),
    (
        "start-deviation",
        "It takes the standard deviation of the scores for their variance.",
        """
def expected_start(width, dimension, temperature):
    return math.log(width) + 1 / (2 * math.sqrt(dimension) * temperature)
""",
    ),
    (
        "gradient-no-mean",
        "It forgets the 1/B of the mean: right for a batch of one row.",
        """
def score_gradient(scores, temperature):
    own = torch.eye(*scores.shape, dtype=scores.dtype)
    return (torch.softmax(scores / temperature, dim=1) - own) / temperature
""",
    ),
    (
        "gradient-no-temperature",
        "It differentiates by the logit and not by the score: 1/τ is missing.",
        """
def score_gradient(scores, temperature):
    own = torch.eye(*scores.shape, dtype=scores.dtype)
    return (torch.softmax(scores / temperature, dim=1) - own) / len(scores)
""",
    ),
    (
        "gradient-downhill",
        "It gives minus the gradient: the way the scores should go.",
        """
def score_gradient(scores, temperature):
    own = torch.eye(*scores.shape, dtype=scores.dtype)
    return (own - torch.softmax(scores / temperature, dim=1)) / (temperature * len(scores))
""",
    ),
    (
        "query-unprojected",
        "It keeps the part of the push along the query, which a cosine does not feel.",
        """
def query_gradient(queries, documents, temperature=0.05):
    push = score_gradient(cosine_scores(queries, documents), temperature) @ F.normalize(documents, dim=1)
    return push / queries.norm(dim=1, keepdim=True)
""",
    ),
    (
        "query-length",
        "It projects and forgets to divide by the query's length: right for unit vectors only.",
        """
def query_gradient(queries, documents, temperature=0.05):
    units = F.normalize(queries, dim=1)
    push = score_gradient(cosine_scores(queries, documents), temperature) @ F.normalize(documents, dim=1)
    return push - (push * units).sum(dim=1, keepdim=True) * units
""",
    ),
]
