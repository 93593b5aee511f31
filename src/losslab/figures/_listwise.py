"""Plackett–Luce (ListMLE) for one query, with and without ghosts, in plain floats: what `js/listwise.js` computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

PAD_LOGIT = 1e-16  # what the faulty code wrote into empty slots: a logit, and exp(1e-16) is 1


@dataclass(frozen=True)
class Choice:
    """One choice among the documents that are left.

    Parameters
    ----------
    shares : tuple of float
        Each document's share of the normaliser, 0 once it has been ranked.
    ghosts : float
        The empty slots' share; with `shares` it sums to 1.
    cost : float
        −ln of the right document's share, nats.
    """

    shares: tuple[float, ...]
    ghosts: float
    cost: float


@dataclass(frozen=True)
class Outcome:
    """Loss (nats), its gradient with respect to each logit, and the choices that make it up."""

    loss: float
    gradient: tuple[float, ...]
    choices: tuple[Choice, ...]


def list_mle(logits: Sequence[float], padding: int, masked: bool) -> Outcome:
    """Return ListMLE of one list, best document first: sum over i of [ln(sum over j >= i of exp z_j + ghosts) − z_i].

    Parameters
    ----------
    logits : sequence of float, shape (n,)
        The real documents' logits, best first.
    padding : int
        Empty slots that the batch adds to this list.
    masked : bool
        True: empty slots leave before the sum. False: they are summed, which is the bug.

    Notes
    -----
    Xia et al. 2008, "Listwise Approach to Learning to Rank", section 4.3.
    """
    ghosts = [] if masked else [PAD_LOGIT] * padding
    choices = []
    for i, z in enumerate(logits):
        left = [*logits[i:], *ghosts]
        peak = max(left)  # anew for each choice: no exp overflows, and no sum underflows to 0
        mass = [exp(v - peak) for v in left]
        total = sum(mass)
        real = len(logits) - i
        shares = (0.0,) * i + tuple(m / total for m in mass[:real])
        choices.append(Choice(shares, sum(mass[real:]) / total, log(total) + peak - z))
    gradient = tuple(sum(c.shares[j] for c in choices) - 1 for j in range(len(logits)))
    return Outcome(sum(c.cost for c in choices), gradient, tuple(choices))
