"""Random inputs for a contract and the shrinking of what breaks it: hypothesis, silent, seeded, leaving no files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, Unsatisfiable

from losslab.contracts.model import BrokenPromise, Draw, LossFailed

providers: Any
try:
    from hypothesis.internal.conjecture import providers
except ImportError:  # a hypothesis older than the feature that `_same_numbers_everywhere` is about
    providers = None


def search(body: Callable[[Draw], None], *, seed_value: int, examples: int) -> None:
    """Run ``body`` on random inputs; where it raises, shrink the input and raise for the smallest one found.

    Raises
    ------
    BrokenPromise, LossFailed
        Whatever ``body`` raised on that smallest input.
    """
    last: list[BrokenPromise | LossFailed] = []

    def run(data: st.DataObject) -> None:
        try:
            body(data.draw)
        except (BrokenPromise, LossFailed) as found:
            last.append(found)
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
    except Flaky:  # the same input broke it once and not again: the loss rolls dice, and what it did is on record
        if last:
            raise last[-1] from None
        raise
    except Unsatisfiable:
        raise AssertionError("the contract's strategy rejects all its inputs") from None


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
