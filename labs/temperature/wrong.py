"""Common wrong answers to "Who gets the gradient": name, what is wrong, and the function as it was handed in."""

WRONG = [
    (
        "gradient-logits",
        "It differentiates by the logit and not by the score: the chain rule's 1/τ is missing.",
        """
def score_gradient(scores, positive, temperature):
    gradient = torch.softmax(scores / temperature, dim=1)
    gradient[torch.arange(len(scores)), positive] -= 1
    return gradient
""",
    ),
    (
        "gradient-mean",
        "It lets autograd differentiate the mean over rows, so everything is divided by their number.",
        """
def score_gradient(scores, positive, temperature):
    leaf = scores.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(leaf / temperature, positive)
    return torch.autograd.grad(loss, leaf)[0]
""",
    ),
    (
        "gradient-exp",
        "It exponentiates the logits by hand, and a logit of 100 is inf over inf.",
        """
def score_gradient(scores, positive, temperature):
    weights = torch.exp(scores / temperature)
    gradient = weights / weights.sum(1, keepdim=True)
    gradient[torch.arange(len(scores)), positive] -= 1
    return gradient / temperature
""",
    ),
    (
        "gradient-diagonal",
        "It takes the positives to stand on the diagonal, as in a square batch, and does not look at positive.",
        """
def score_gradient(scores, positive, temperature):
    own = torch.eye(*scores.shape)
    return (torch.softmax(scores / temperature, dim=1) - own) / temperature
""",
    ),
    (
        "shares-of-everything",
        "It gives probabilities, the positive's set to 0, and does not divide by what is left.",
        """
def negative_shares(scores, positive, temperature):
    shares = torch.softmax(scores / temperature, dim=1)
    shares[torch.arange(len(scores)), positive] = 0
    return shares
""",
    ),
    (
        "shares-one-minus",
        "It divides by 1 − p(positive), which is 0 in float32 once the query is won.",
        """
def negative_shares(scores, positive, temperature):
    rows = torch.arange(len(scores))
    shares = torch.softmax(scores / temperature, dim=1)
    left = 1 - shares[rows, positive]
    shares[rows, positive] = 0
    return shares / left[:, None]
""",
    ),
    (
        "shares-zero-score",
        "It sets the positive's score to 0, and a score of 0 still has a share.",
        """
def negative_shares(scores, positive, temperature):
    others = scores.clone()
    others[torch.arange(len(scores)), positive] = 0
    return torch.softmax(others / temperature, dim=1)
""",
    ),
    (
        "effective-nan",
        "It multiplies 0 by log 0, which is NaN.",
        """
def effective_negatives(shares):
    return torch.exp(-(shares * shares.log()).sum(1))
""",
    ),
    (
        "effective-bits",
        "It takes the entropy in bits, and then e to that power.",
        """
def effective_negatives(shares):
    bits = torch.special.entr(shares).sum(1) / math.log(2)
    return bits.exp()
""",
    ),
    (
        "effective-squares",
        "It is another effective number, one over the sum of squares, which weighs large shares more.",
        """
def effective_negatives(shares):
    return 1 / (shares**2).sum(1)
""",
    ),
    (
        "takeover-list",
        "It tries a list of usual temperatures and reports the first that will do, not where half is reached.",
        """
def takeover_temperature(negatives, suspect):
    for temperature in (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005):
        if torch.softmax(negatives / temperature, 0)[suspect] > 0.5:
            return temperature
    return 0.0
""",
    ),
    (
        "takeover-always",
        "It never asks whether the suspect is the hardest, and returns the end that its search ran into.",
        """
def takeover_temperature(negatives, suspect):
    low, high = 0.001, 10.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        if torch.softmax(negatives.double() / middle, 0)[suspect] > 0.5:
            low = middle
        else:
            high = middle
    return low
""",
    ),
    (
        "takeover-wrong-half",
        "It throws away the half in which the answer lies.",
        """
def takeover_temperature(negatives, suspect):
    behind = [negatives[suspect].item() - s for j, s in enumerate(negatives.tolist()) if j != suspect]
    if min(behind) <= 0:
        return 0.0
    low, high = 0.001, 10.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        if sum(math.exp(-gap / middle) for gap in behind) > 1:
            low = middle
        else:
            high = middle
    return low
""",
    ),
    (
        "spacing-relative",
        "It multiplies the number itself by the format's relative step, and so has no stairs.",
        """
def spacing(numbers, bits):
    return numbers.abs() * 2.0 ** -(bits - 1)
""",
    ),
    (
        "spacing-sign",
        "It takes the logarithm of a negative number.",
        """
def spacing(numbers, bits):
    return 2.0 ** (torch.floor(torch.log2(numbers)) - bits + 1)
""",
    ),
    (
        "price-signed",
        "It leaves the sign on, so that prices of opposite rows would cancel in a mean.",
        """
def rounding_price(scores, positive, temperature):
    exact = scores.double() / temperature
    rounded = exact.bfloat16().double()
    loss = torch.nn.functional.cross_entropy
    return loss(rounded, positive, reduction="none") - loss(exact, positive, reduction="none")
""",
    ),
    (
        "price-scores",
        "It rounds the scores, before they are divided, and not the logits.",
        """
def rounding_price(scores, positive, temperature):
    exact = scores.double() / temperature
    rounded = scores.bfloat16().double() / temperature
    loss = torch.nn.functional.cross_entropy
    return (loss(rounded, positive, reduction="none") - loss(exact, positive, reduction="none")).abs()
""",
    ),
    (
        "price-all-bf16",
        "It computes softmax and logarithm in bfloat16 too, and finds that rounding, not the logits'.",
        """
def rounding_price(scores, positive, temperature):
    exact = scores.double() / temperature
    loss = torch.nn.functional.cross_entropy
    low = loss(exact.bfloat16(), positive, reduction="none").double()
    return (low - loss(exact, positive, reduction="none")).abs()
""",
    ),
]
