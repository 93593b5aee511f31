"""Random inputs for a contract and the shrinking of what breaks it: hypothesis, silent, seeded, leaving no files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.internal.conjecture import shrinker

from losslab.contracts.model import BrokenPromise, Draw, LossFailed

providers: Any
try:
    from hypothesis.internal.conjecture import providers
except ImportError:  # a hypothesis older than the feature that `_same_numbers_everywhere` is about
    providers = None


SHRINKING = 250  # inputs tried in order to make the first one that breaks a promise smaller


class _SmallEnough(BaseException):
    """Leaves hypothesis in the middle of shrinking, as an interrupt from the keyboard would."""


def search(body: Callable[[Draw], None], *, seed_value: int, examples: int) -> None:
    """Run ``body`` on random inputs; where it raises, shrink the input and raise for the smallest one found.

    Shrinking ends after `SHRINKING` inputs: counted, not timed, so that a seed means the same counterexample on any
    machine.

    Raises
    ------
    BrokenPromise, LossFailed
        Whatever ``body`` raised on that smallest input.
    """
    found: list[tuple[Any, BrokenPromise | LossFailed]] = []  # how large the input was, what it broke; the latest last
    tried_since = 0

    def run(data: st.DataObject) -> None:
        nonlocal tried_since
        tried_since += bool(found)
        if tried_since > SHRINKING:
            raise _SmallEnough
        try:
            body(data.draw)
        except (BrokenPromise, LossFailed) as failed:
            found.append((_size_of(data), failed))
            raise

    quiet = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,  # the seed decides, in CI as anywhere
        phases=(Phase.generate, Phase.shrink),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    try:
        with _same_numbers_everywhere():
            seed(seed_value)(quiet(given(st.data())(run)))()
    except _SmallEnough:
        raise min(found, key=lambda one: one[0])[1] from None
    except Flaky:  # the same input broke it once and not again: the loss rolls dice, and what it did is on record
        if found:
            raise found[-1][1] from None
        raise
    except Unsatisfiable:
        raise AssertionError("the contract's strategy rejects all its inputs") from None


def _size_of(data: st.DataObject) -> Any:  # noqa: ANN401
    """What hypothesis makes smaller: first the number of choices behind an input, then each of them."""
    return shrinker.sort_key(data.conjecture_data.nodes)


@contextmanager
def _same_numbers_everywhere() -> Iterator[None]:
    """Keep hypothesis from reading constants out of whatever local source files happen to be imported.

    It mixes them into its draws and caches them in a folder where the user stands. The same seed would then try other
    inputs in a notebook than in a test. A hypothesis without that feature has nothing to switch off.
    """
    replaced: dict[str, Any] = {}
    if hasattr(providers, "_get_local_constants") and hasattr(providers, "Constants"):
        nothing = providers.Constants()
        replaced["_get_local_constants"] = lambda: nothing
    if hasattr(providers, "CONSTANTS_CACHE"):
        replaced["CONSTANTS_CACHE"] = type(providers.CONSTANTS_CACHE)(1024)
    kept = {name: getattr(providers, name) for name in replaced}
    for name, value in replaced.items():
        setattr(providers, name, value)
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(providers, name, value)
