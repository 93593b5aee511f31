"""The temperature grid: heads trained alike but for τ, and what they retrieve on held-out queries."""

from __future__ import annotations

from collections.abc import Iterator

from losslab.measure.record import Measurement, Progress, Row, Value
from losslab.measure.trained_head import EPOCHS, RATES, Recipe, chosen_rate, compare, evaluate, over_seeds, run, tasks

TEMPERATURES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0)
SEEDS = (0, 1, 2)
BATCH = 256
USUAL = 0.05  # what the others are compared with: the default of much software


def collect(progress: Progress) -> Iterator[Row]:
    """Every temperature on both corpora."""
    validation, *held_out = tasks()
    rates = {}
    for temperature in TEMPERATURES:
        rates[temperature] = chosen_rate(validation, Recipe(BATCH, temperature, rate=RATES[0]))
        progress(f"temperature {temperature}: learning rate {rates[temperature]}, chosen on {validation.name}")
    for task in held_out:
        frozen = evaluate(task)
        yield from compare({0: frozen}, {}, task, {"corpus": task.name, "temperature": None, "rate": None})
        runs = {}
        for temperature in TEMPERATURES:
            progress(f"{task.name}, temperature {temperature}")
            recipe = Recipe(BATCH, temperature, rates[temperature])
            runs[temperature] = {seed: run(task, recipe.with_seed(seed)) for seed in SEEDS}
        others = {"frozen": frozen, f"τ {USUAL}": over_seeds(runs[USUAL])}
        for temperature in TEMPERATURES:
            conditions: dict[str, Value] = {"corpus": task.name, "temperature": temperature, "rate": rates[temperature]}
            yield from compare(runs[temperature], others, task, conditions)


MEASUREMENT = Measurement(
    name="temperature",
    title="Held-out retrieval of heads trained at ten temperatures, apidocs and SciFact",
    columns=("corpus", "temperature", "rate", "seed", "slice", "metric", "value", "lo", "hi"),
    collect=collect,
    settings={"batch": BATCH, "epochs": EPOCHS, "seeds": list(SEEDS), "rates tried": list(RATES)},
)
