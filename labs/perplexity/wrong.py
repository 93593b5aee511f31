"""Common wrong answers: a name, what is wrong, and the function that stands in place of the right one."""

WRONG = [
    (
        "no-maximum",
        "The largest logit is not subtracted: exp(1000) raises, and with logits near -1000 the sum is 0.",
        """
def log_softmax(logits):
    log_sum = math.log(sum(math.exp(z) for z in logits))
    return [z - log_sum for z in logits]
""",
    ),
    (
        "log-of-a-probability",
        "The probability is formed first: right for ordinary logits, and log(0) for a token far below the rest.",
        """
def log_softmax(logits):
    highest = max(logits)
    weights = [math.exp(z - highest) for z in logits]
    total = sum(weights)
    return [math.log(w / total) for w in weights]
""",
    ),
    (
        "wrong-order-done-right",
        "Step 2 asks for the wrong order, to see it happen; this one never leaves the logarithm.",
        """
def log_of_softmax(logits):
    return log_softmax(logits)
""",
    ),
    (
        "probability-for-cost",
        "A probability is returned instead of its negative logarithm.",
        """
def loss_at(logits, token):
    return math.exp(log_softmax(logits)[token])
""",
    ),
    (
        "bits-too-early",
        "The cost is in bits, while the perplexity raises e to it.",
        """
def loss_at(logits, token):
    return -log_softmax(logits)[token] / math.log(2)
""",
    ),
    (
        "sum",
        "The costs are added and not divided: every long text looks bad.",
        """
def mean(losses):
    if not losses:
        raise ValueError("no token was predicted")
    return sum(losses)
""",
    ),
    (
        "zero-for-nothing",
        "The mean of no token is given as 0, which is the cost of a perfect model.",
        """
def mean(losses):
    return sum(losses) / len(losses) if losses else 0.0
""",
    ),
    (
        "base-two",
        "2 is raised to a cost in nats.",
        """
def perplexity(nats):
    return 2**nats if nats < 700 else math.inf
""",
    ),
    (
        "overflow",
        "A mean of 1000 nats raises an OverflowError.",
        """
def perplexity(nats):
    return math.exp(nats)
""",
    ),
    (
        "share-of-nats",
        "Nats are divided by the nats of the uniform model: a share of the logarithm, not of the perplexity.",
        """
def share_of_uniform(nats, size):
    return nats / math.log(size) if size > 1 else 1.0
""",
    ),
    (
        "not-shifted",
        "Row t is asked for token t, the one it is just reading.",
        """
def text_losses(logits, ids, shift=1):
    return [loss_at(row, token) for row, token in zip(logits, ids)]
""",
    ),
    (
        "shift-is-always-one",
        "The shift of 1 is written in, and the argument ignored.",
        """
def text_losses(logits, ids, shift=1):
    return [loss_at(row, token) for row, token in zip(logits, ids[1:])]
""",
    ),
    (
        "padding-costs-nothing",
        "Padding costs 0 and stays in the list: taken out of the sum, and counted.",
        """
def batch_losses(logits, ids, mask=None):
    found = []
    for b in range(len(ids)):
        for t, cost in enumerate(text_losses(logits[b], ids[b])):
            real = mask is None or (mask[b][t] and mask[b][t + 1])
            found.append(cost if real else 0.0)
    return found
""",
    ),
    (
        "mask-of-the-row",
        "The mask is read at the row and not at what the row predicts: the first padding after each text is counted.",
        """
def batch_losses(logits, ids, mask=None):
    found = []
    for b in range(len(ids)):
        costs = text_losses(logits[b], ids[b])
        found += [cost for t, cost in enumerate(costs) if mask is None or mask[b][t]]
    return found
""",
    ),
    (
        "mask-of-the-label-alone",
        "Right with padding behind; with padding in front, the first token is counted though only padding was read.",
        """
def batch_losses(logits, ids, mask=None):
    found = []
    for b in range(len(ids)):
        costs = text_losses(logits[b], ids[b])
        found += [cost for t, cost in enumerate(costs) if mask is None or mask[b][t + 1]]
    return found
""",
    ),
    (
        "times-ln-2",
        "Nats are multiplied by ln 2 where they should be divided by it.",
        """
def bits(nats):
    return nats * math.log(2)
""",
    ),
]
