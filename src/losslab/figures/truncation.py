"""Truncation: what retrieval keeps when embeddings are cut to some of their dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Any, ClassVar

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _series as series_
from losslab.figures._choice import Choice
from losslab.figures._numbers import num, percent, signed
from losslab.figures._plots import balance
from losslab.figures._sheet import TEXT, Point, Sheet, linear, logarithmic, measure
from losslab.figures.base import Figure, FigureError, _number, _whole
from losslab.figures.sweep import _shape, named, runs

PREFIX = "prefix"
KINDS = ("random dims", "random rotation", "SVD", "PCA")
METRIC = "ndcg@10"
METRICS = (METRIC, f"{METRIC} over prefix", f"{METRIC} over not renormalised", "retention")
COLUMNS = (
    "corpus",
    "model",
    "reduction",
    "centred",
    "renormalised",
    "dim",
    "seed",
    "metric",
    "value",
    "lo",
    "hi",
    "published",
)
_LISTS = (
    "values",
    "low",
    "high",
    "gap",
    "gap_low",
    "gap_high",
    "gain",
    "gain_low",
    "gain_high",
    "keep_low",
    "keep_high",
    "least",
    "most",
    "published",
)
_PAIRS = (
    ("low", "high"),
    ("gap_low", "gap_high"),
    ("gain_low", "gain_high"),
    ("keep_low", "keep_high"),
    ("least", "most"),
)
_LOOKS = {
    "random dims": ("ghost", 4),
    "random rotation": ("muted", 3),
    "SVD": ("plum", 2),
    "PCA": ("ink", 1),
}
_STEP = 15  # between marks side by side, px
_DATA = ("sets", "metric")

Run = dict[str, Any]
Set = dict[str, Any]


def _kept(value: float | None) -> float | None:
    """Four digits, but nothing that is above or below 0 becomes 0: the verdict on an interval must not change."""
    if value is None or not value:
        return value
    return round(value, 4) or (0.0001 if value > 0 else -0.0001)


class _Sets(traitlets.TraitType[list[Set], object]):
    """What was measured, checked, as plain lists of numbers with four digits."""

    def __init__(self) -> None:
        super().__init__([])

    def validate(self, obj: object, value: object) -> list[Set]:
        """Return `value` with every list there, empty where nothing was measured."""
        place = f"{type(obj).__name__}: {self.name}"
        if not isinstance(value, Sequence) or isinstance(value, str) or not 1 <= len(value) <= 6:
            raise FigureError(f"{place} must be a list of 1 to 6 sets of runs, not {value!r}")
        sets = [self._set(f"{place}[{i}]", one) for i, one in enumerate(value)]
        names = [one["name"] for one in sets]
        if len(set(names)) < len(names):
            raise FigureError(f"{place} must each have a name of its own, not {names}")
        return sets

    def _set(self, place: str, given: object) -> Set:
        if not isinstance(given, Mapping) or set(given) != {"name", "size", "dims", "runs"}:
            raise FigureError(f"{place} must be a dict with name, size, dims and runs, not {given!r}")
        name, size, dims = given["name"], _whole(given["size"]), [_whole(d) for d in given["dims"]]
        if not isinstance(name, str) or not 1 <= len(name) <= 40:
            raise FigureError(f"{place}['name'] must be a text of 1 to 40 characters, not {name!r}")
        place = f"{place} ({name})"
        if None in dims or len(dims) < 2 or dims != sorted(set(dims)) or dims[0] < 1:  # type: ignore[type-var,operator]
            raise FigureError(f"{place} must have two or more dims, whole, ascending, from 1 on, not {given['dims']}")
        if size is None or dims[-1] != size:
            raise FigureError(f"{place} must be measured at its full size, {given['size']!r}, not up to {dims[-1]}")
        runs_ = [self._run(f"{place}, runs[{i}]", one, len(dims)) for i, one in enumerate(given["runs"])]
        seen = [_key(run) for run in runs_]
        if twice := [key for key in seen if seen.count(key) > 1]:
            raise FigureError(f"{place} has {_called(*twice[0])} twice")
        plain = next((run for run in runs_ if _key(run) == _PLAIN), None)
        if plain is None:
            raise FigureError(f"{place} needs the prefix, neither centred nor without renormalising: all is held to it")
        if not value_of(plain, len(dims) - 1):
            raise FigureError(f"{place} needs the prefix at full size, {size}, and above 0")
        for run in runs_:
            base = next((b for b in runs_ if _key(b) == (PREFIX, False, run["renormalised"])), None)
            raw = next((b for b in runs_ if _key(b) == (run["kind"], run["centred"], False)), None)
            self._agree(place, run, dims, "gap", base)  # type: ignore[arg-type]
            self._agree(place, run, dims, "gain", raw if run["renormalised"] else None)  # type: ignore[arg-type]
        return {"name": name, "size": size, "dims": dims, "runs": runs_}

    def _run(self, place: str, given: object, n: int) -> Run:
        if not isinstance(given, Mapping) or not {"kind", "centred", "renormalised"} <= set(given):
            raise FigureError(f"{place} must be a dict with kind, centred, renormalised and measured lists")
        if strange := set(given) - {"kind", "centred", "renormalised", *_LISTS}:
            raise FigureError(f"{place} has {min(strange)!r}, which is none of {', '.join(_LISTS)}")
        kind, flags = given["kind"], {key: given[key] for key in ("centred", "renormalised")}
        if kind not in (PREFIX, *KINDS):
            raise FigureError(f"{place}: kind must be one of {', '.join((PREFIX, *KINDS))}, not {kind!r}")
        for key, flag in flags.items():
            if not isinstance(flag, bool):
                raise FigureError(f"{place}: {key} must be True or False, not {flag!r}")
        if kind in ("SVD", "PCA") and flags["centred"] != (kind == "PCA"):
            raise FigureError(f"{place}: {kind} is {'always' if kind == 'PCA' else 'never'} centred")
        place = f"{place} ({_called(kind, **flags)})"
        run: Run = {"kind": kind, **flags}
        for key in _LISTS:
            row = given.get(key)
            row = [] if row is None else row.tolist() if hasattr(row, "tolist") else list(row)
            if len(row) not in (0, n):
                raise FigureError(f"{place}: {key} must hold {n} numbers, one for each of the dims, not {len(row)}")
            for i, v in enumerate(row):
                if v is not None and _number(v) is None:
                    raise FigureError(f"{place}: {key}[{i}] must be a finite number or None, not {v!r}")
            numbers = [_kept(None if v is None else _number(v)) for v in row]
            run[key] = numbers if any(v is not None for v in numbers) else []
        run["values"] = run["values"] or [None] * n
        if not any(value_of(run, i) is not None for i in range(n)):
            raise FigureError(f"{place} must hold a value, measured or published, at one of the dims at least")
        for low, high in _PAIRS:
            self._ordered(place, run, low, high, n)
        return run

    def _ordered(self, place: str, run: Run, low: str, high: str, n: int) -> None:
        for i in range(n):
            a, b = entry(run[low], i), entry(run[high], i)
            if (a is None) != (b is None) or (a is not None and b is not None and a > b):
                raise FigureError(f"{place}: {low} ≤ {high} must hold, or neither be given, at index {i}, not {a}, {b}")

    def _agree(self, place: str, run: Run, dims: Sequence[int], key: str, base: Run | None) -> None:
        """A difference must be that of the two curves drawn, or the reader sees one thing and reads another."""
        what = _called(*_key(run))
        if run[key] and base is None:
            to = "the prefix" if key == "gap" else "the same without renormalising"
            raise FigureError(f"{place}: {what} has {key}, the difference to {to}, which is not there")
        for i, dim in enumerate(dims):
            far = entry(run[key], i)
            if far is None or base is None:
                continue
            value, other = value_of(run, i), value_of(base, i)
            if value is None or other is None or abs(value - other - far) > 2.1e-4:
                two = f"{what} at {dim} is {value}, {_called(*_key(base))} {other}"
                raise FigureError(f"{place}: {two}, so {key} is not {far}")


_PLAIN = (PREFIX, False, True)


def _key(run: Run) -> tuple[str, bool, bool]:
    return run["kind"], run["centred"], run["renormalised"]


def _called(kind: str, centred: bool, renormalised: bool) -> str:
    moved = centred and kind != "PCA"
    return f"{kind}{', centred' if moved else ''}{'' if renormalised else ', not renormalised'}"


def entry(row: Sequence[float | None], i: int) -> float | None:
    """Return what a list holds at `i`, None where it is empty."""
    return row[i] if row else None


def value_of(run: Run, i: int) -> float | None:
    """Return what was measured at the i-th size, else what was published."""
    value: float | None = run["values"][i]
    return entry(run["published"], i) if value is None else value


@dataclass(frozen=True)
class _Curve:
    """A curve as it is drawn: its name, its run, and how it looks."""

    name: str
    run: Run
    tone: str
    shape: int
    dashed: bool = False
    far: str = "gap"


@dataclass(frozen=True)
class _Outcome:
    """What there is to draw; the first is the prefix that all differences are taken to."""

    set: Set
    i: int
    curves: list[_Curve]
    kept: bool
    moved: bool
    full: float

    @property
    def setting(self) -> str:
        """In words, what was done otherwise than plainly."""
        return ", ".join(filter(None, ("centred" if self.moved else "", "" if self.kept else "not renormalised")))


class Truncation(Figure):
    """Retrieval quality against kept dimensions: the prefix and other reductions, and what each gains over the prefix.

    Nothing is measured here. The upper plot shows the metric with its intervals, the lower one every reduction's paired
    difference to the prefix that is not centred and, like the reduction, renormalised or not.

    Attributes
    ----------
    sets : list of dict
        One to six corpora with a model each: ``name``; ``size``, the full number of dimensions d; ``dims``, shape (D,),
        the sizes kept, ascending, the last of them d; and ``runs``, each a dict of ``kind`` ("prefix", "random dims",
        "random rotation", "SVD", "PCA"), ``centred``, ``renormalised`` (bool), and lists of D numbers, None where
        nothing was measured; a list that is missing altogether is empty:

        ``values``, ``low``, ``high``
            The metric, 0 to 1, and its interval over queries.
        ``gap``, ``gap_low``, ``gap_high``
            Paired difference to the prefix of the same size, not centred and renormalised as the run is.
        ``gain``, ``gain_low``, ``gain_high``
            Of a renormalised run: paired difference to the same run without renormalising. Only the prefix's is shown.
        ``keep_low``, ``keep_high``
            Interval of the retention, which is the value over the renormalised prefix's at full size.
        ``least``, ``most``
            Range of single draws, where something was drawn and ``values`` is their mean.
        ``published``
            What others published. It is ringed beside ``values``; where there are none it is the curve, dashed.

        SVD is never centred and PCA always is. All are kept with four digits.
    metric : str
        What was measured, as printed; "nDCG@10" by default.
    set : str
        The set shown; at first the first.
    dim : int
        Dimensions kept. Where the set shown was not measured there, its nearest size is read out.
    kinds : list of str
        What is drawn beside the prefix.
    centred : bool
        Whether embeddings are centred before prefix, random dims and random rotation are cut.
    renormalised : bool
        Whether what is kept is brought back to length 1, so that scores are cosines and not inner products.
    scale : str
        "score" or "retention".
    axis : str
        "dimensions" (logarithmic) or "fraction" (the share of the dimensions that is kept, linear).

    Raises
    ------
    TypeError
        If sets are missing.
    FigureError
        If numbers are missing or in disorder, differences are not those of the curves, or a state is not offered.
    """

    NAME = "truncation"
    TITLE = "What a cut keeps"
    KINDS: ClassVar[tuple[str, ...]] = KINDS

    sets = _Sets().tag(sync=True)
    metric = traitlets.Unicode("nDCG@10").tag(sync=True)
    set = traitlets.Unicode().tag(sync=True)
    dim = traitlets.Int().tag(sync=True)
    kinds = traitlets.List(traitlets.Unicode(), ["random dims", "SVD", "PCA"]).tag(sync=True)
    centred = traitlets.Bool(False).tag(sync=True)
    renormalised = traitlets.Bool(True).tag(sync=True)
    scale = Choice("score", ["score", "retention"]).tag(sync=True)
    axis = Choice("dimensions", ["dimensions", "fraction"]).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        self._need(traits, "sets")
        super().__init__(**traits)
        self._seal()

    @classmethod
    def from_rows(
        cls, rows: Iterable[Mapping[str, Any]], *, names: Mapping[tuple[str, str], str] | None = None, **traits: object
    ) -> Truncation:
        """Build the figure from rows as ``losslab measure truncation`` writes them.

        Parameters
        ----------
        rows : iterable of mapping
            With the columns corpus, model, reduction, centred, renormalised ("yes" or "no"), dim, seed, metric, value,
            lo, hi, published, such as those of `csv.DictReader`; others are left alone. Read are the metrics "ndcg@10",
            "ndcg@10 over prefix" (not centred, renormalised as the row is), "ndcg@10 over not renormalised" and
            "retention", of the mean over seeds (seed empty), and "ndcg@10" of single seeds.
        names : mapping from (corpus, model) to str
            What each set is called, and in which order they come; sets not named are left out. By default
            "corpus, model", all of them, as they come.
        traits
            Of the figure: ``dim``, ``kinds``, ….

        Raises
        ------
        FigureError
            If a column is missing, a reduction unknown, a value no number, something was measured twice, sizes do not
            fit the full one, or nothing is left.
        """
        return cls(sets=sets_from(rows, names), **traits)

    @traitlets.default("set")
    def _first(self) -> str:
        return str(self.sets[0]["name"])

    @traitlets.default("dim")
    def _sixth(self) -> int:
        """Where much is cut and something still stands: a sixth of the dimensions, or what is nearest."""
        dims = self.sets[0]["dims"]
        return int(min(dims, key=lambda d: abs(d - dims[-1] / 6)))

    @traitlets.validate(*_DATA, "set", "dim", "kinds")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)
        sets = value if name == "sets" else self.sets
        if name == "metric" and not 1 <= len(value) <= 30:
            self._refuse(f"metric must be a text of 1 to 30 characters, not {value!r}")
        if name == "set" and value not in (offered := [one["name"] for one in sets]):
            self._refuse(f"set must be one of {', '.join(map(repr, offered))}, not {value!r}")
        if name == "dim" and value not in (sizes := sorted({d for one in sets for d in one["dims"]})):
            self._refuse(f"dim must be one of {', '.join(map(str, sizes))}, not {value}")
        if name == "kinds":
            if strange := [kind for kind in value if kind not in KINDS]:
                self._refuse(f"kinds must be of {', '.join(KINDS)}, not {strange[0]!r}")
            return [kind for kind in KINDS if kind in value]
        return value

    def _outcome(self) -> _Outcome:
        shown = next(one for one in self.sets if one["name"] == self.set)

        def find(kind: str, centred: bool, renormalised: bool) -> Run | None:
            return next((run for run in shown["runs"] if _key(run) == (kind, centred, renormalised)), None)

        kept = self.renormalised or find(PREFIX, False, False) is None
        moved = self.centred and find(PREFIX, True, kept) is not None
        dims, tone = shown["dims"], "best" if kept else "wrong"
        name = "prefix as it is" if moved else PREFIX
        found: list[tuple[str, Run | None, str, int, bool, str]] = [
            (name, find(PREFIX, False, kept), tone, 0, moved, "gap"),
        ]
        if moved:
            found.append(("centred prefix", find(PREFIX, True, kept), tone, 0, False, "gap"))
        if not kept:  # the right one stands beside the wrong one
            found.append(("renormalised", _plain(shown), "right", 0, True, "gain"))
        for kind in self.kinds:
            centred = kind == "PCA" or (kind != "SVD" and moved)
            found.append((kind, find(kind, centred, kept), *_LOOKS[kind], False, "gap"))
        curves = [
            _Curve(name, run, tone, shape, dashed or all(v is None for v in run["values"]), far)
            for name, run, tone, shape, dashed, far in found
            if run is not None
        ]
        i = min(range(len(dims)), key=lambda j: (abs(dims[j] - self.dim), j))
        return _Outcome(shown, i, curves, kept, moved, _full(shown))

    def _reading(self, curve: _Curve, i: int, full: float) -> tuple[str, str]:
        """A curve at the i-th size as printed: its value and its interval, if it has one."""
        run, keep = curve.run, self.scale == "retention"
        value = value_of(run, i)
        if value is None:
            return "not measured", ""
        text = percent(value / full) if keep else num(value, 3)
        ends = [entry(run[key], i) for key in (("keep_low", "keep_high") if keep else ("low", "high"))]
        if ends[0] is None:
            return text, "published" if run["values"][i] is None else ""
        return text, f"[{', '.join(num(100 * e, 1) if keep else num(e, 3) for e in ends if e is not None)}]"

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now = self._outcome()
        plain, *others = now.curves
        where = f"{now.set['name']}, {now.set['dims'][now.i]:,} of {now.set['size']:,} dimensions"
        where += "" if now.kept else ", not renormalised"
        value = value_of(plain.run, now.i)
        if value is None:
            start = f"the {plain.name} was not measured"
        elif self.scale == "retention":
            start = f"the {plain.name} keeps {percent(value / now.full)} of {self.metric} {num(now.full, 3)}"
        else:
            share = percent(value / now.full)
            start = f"the {plain.name} scores {num(value, 3)} in {self.metric}, {share} of full size"
        each = [self._compared(curve, now) for curve in others]
        if not each:
            return f"{where}: {start}."
        return f"{where}: {start}. Difference to it{' when centred' if now.moved else ''}: {'; '.join(each)}."

    def _compared(self, curve: _Curve, now: _Outcome) -> str:
        text, _ = self._reading(curve, now.i, now.full)
        far = _difference(curve, now.i)
        if far is None:
            return f"{curve.name} {text}"
        gap, interval, verdict = far
        if verdict == "the same":
            return f"{curve.name} {text} (the same)"
        end = " holds 0" if verdict == "holds 0" else f", {verdict}" if verdict else ""
        return f"{curve.name} {text} ({' '.join(filter(None, (gap, interval)))}{end})"

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        return _Drawing(self).canvas()


def _difference(curve: _Curve, i: int) -> tuple[str, str, str] | None:
    """Difference to the first curve as printed, its interval, and whether that holds 0."""
    gap, low, high = (entry(curve.run[f"{curve.far}{end}"], i) for end in ("", "_low", "_high"))
    if gap is None:
        return None
    if low is None or high is None:
        return signed(gap, 3), "", ""
    same = low == 0 and high == 0
    verdict = "better" if low > 0 else "worse" if high < 0 else "the same" if same else "holds 0"
    return signed(gap, 3), f"[{signed(low, 3)}, {signed(high, 3)}]", verdict


def _flag(where: str, row: Mapping[str, Any], column: str) -> bool:
    if row[column] not in ("yes", "no"):
        raise FigureError(f"{where}: {column} must be yes or no, not {row[column]!r}")
    return bool(row[column] == "yes")


def _cell(where: str, row: Mapping[str, Any], column: str) -> float | None:
    raw = row[column]
    if raw is None or raw == "":
        return None
    try:
        value = _number(float(raw))
    except (TypeError, ValueError):
        value = None
    if value is None:
        raise FigureError(f"{where}: {column} must be a finite number or empty, not {raw!r}")
    return value


def sets_from(rows: Iterable[Mapping[str, Any]], names: Mapping[tuple[str, str], str] | None = None) -> list[Set]:
    """Return rows of ``losslab measure truncation`` as the trait `sets`; see `Truncation.from_rows`."""
    found: dict[tuple[str, str], dict[tuple[str, bool, bool], dict[tuple[str, str, int], Any]]] = {}
    for number, row in enumerate(rows, 1):
        where = f"Truncation: row {number}"
        if missing := [column for column in COLUMNS if column not in row]:
            raise FigureError(f"{where} has no column {', '.join(missing)}; it has {', '.join(map(str, row))}")
        if row["reduction"] not in (PREFIX, *KINDS):
            known = ", ".join((PREFIX, *KINDS))
            raise FigureError(f"{where}: reduction must be one of {known}, not {row['reduction']!r}")
        dim = _cell(where, row, "dim")
        if dim is None or dim != int(dim) or dim < 1:
            raise FigureError(f"{where}: dim must be a whole number from 1 on, not {row['dim']!r}")
        run = (row["reduction"], _flag(where, row, "centred"), _flag(where, row, "renormalised"))
        of = (row["corpus"], row["model"])
        if row["metric"] not in METRICS or (names is not None and of not in names):
            continue
        cells = found.setdefault(of, {}).setdefault(run, {})
        key = (row["metric"], str(row["seed"]), int(dim))
        if key in cells:
            seed = f", seed {row['seed']}" if row["seed"] != "" else ""
            raise FigureError(f"{where}: {', '.join(of)}: {_called(*run)} at {int(dim)}{seed}: {key[0]} comes twice")
        cells[key] = tuple(_cell(where, row, column) for column in ("value", "lo", "hi", "published"))
    if names is not None and (absent := [of for of in names if of not in found]):
        raise FigureError(f"Truncation: no rows of {', '.join(absent[0])}")
    if not found:
        raise FigureError(f"Truncation: no rows of {' or '.join(METRICS)}")
    order = list(found) if names is None else list(names)
    return [_set_of(of, found[of], f"{of[0]}, {of[1]}" if names is None else names[of]) for of in order]


def _set_of(of: tuple[str, str], runs_: Mapping[tuple[str, bool, bool], Mapping[Any, Any]], name: str) -> Set:
    if _PLAIN not in runs_:
        raise FigureError(f"Truncation: {', '.join(of)} has no prefix that is renormalised and not centred")
    dims = sorted({dim for _, _, dim in runs_[_PLAIN]})
    for run, cells in runs_.items():
        if strange := sorted({dim for _, _, dim in cells} - set(dims)):
            what = f"{', '.join(of)}: {_called(*run)} was measured at {', '.join(map(str, strange))} dimensions"
            raise FigureError(f"Truncation: {what}, the prefix at {', '.join(map(str, dims))}")
    found = [_run_of(run, cells, dims) for run, cells in runs_.items()]
    return {"name": name, "size": dims[-1], "dims": dims, "runs": found}


def _run_of(key: tuple[str, bool, bool], cells: Mapping[tuple[str, str, int], Any], dims: Sequence[int]) -> Run:
    kind, centred, renormalised = key
    run: Run = {"kind": kind, "centred": centred, "renormalised": renormalised}
    names = [
        ("values", "low", "high", "published"),
        () if (kind, centred) == (PREFIX, False) else ("gap", "gap_low", "gap_high"),  # it is what others are held to
        ("gain", "gain_low", "gain_high") if key == _PLAIN else (),  # nobody else's is shown
        ("", "keep_low", "keep_high"),
    ]
    for metric, columns in zip(METRICS, names, strict=True):
        rows = [cells.get((metric, "", dim), (None,) * 4) for dim in dims]
        run |= {column: [row[k] for row in rows] for k, column in enumerate(columns) if column}
    for name, pick in (("least", min), ("most", max)):
        draws = [[c[0] for (m, seed, d), c in cells.items() if m == METRIC and seed and d == dim] for dim in dims]
        drawn = [[v for v in one if v is not None] for one in draws]
        run[name] = [pick(one) if len(one) > 1 else None for one in drawn]
    return run


def _ladder(
    low: float, high: float, most: int, choice: Sequence[float]
) -> tuple[tuple[float, float], list[float], float]:
    """Ends and round ticks of an axis (`ladder` in ``js/truncation.js``)."""
    step = next((s for s in choice if (high - low) / s <= most), choice[-1])
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return (first * step, last * step), [k * step for k in range(first, last + 1)], step


def _all(found: Iterable[Run], *keys: str) -> list[float]:
    return [v for run in found for key in keys for v in run[key] if v is not None]


def _plain(one: Set) -> Run:
    """The run that all others are held to."""
    return next(run for run in one["runs"] if _key(run) == _PLAIN)


def _full(one: Set) -> float:
    """The metric at full size."""
    return value_of(_plain(one), len(one["dims"]) - 1) or 1.0


def _ringed(run: Run) -> bool:
    """Whether what others published stands beside what was measured."""
    return bool(run["published"]) and any(v is not None for v in run["values"])


class _Drawing:
    """The twin, part by part, as ``js/truncation.js`` draws it."""

    def __init__(self, figure: Truncation) -> None:
        self.figure, self.now = figure, figure._outcome()
        self.keep, self.fraction = figure.scale == "retention", figure.axis == "fraction"
        self.sheet = Sheet(height=580)
        reach = measure("−0.888", strong=True) + 5 + measure("[−0.888, −0.888]")
        self.left, self.right = max(46, measure("−0.00") + 12), 760 - reach - 48
        self.start = self.right + 28
        dims, size = self.now.set["dims"], self.now.set["size"]
        if self.fraction:
            sx = linear((0, 1), (self.left + 8, self.right - 10))
            self.places = [sx(d / size) for d in dims]
            self.texts = [percent(d / size, 1 if d / size < 0.0995 else 0) for d in dims]
        else:
            log = logarithmic((dims[0], size), (self.left + 12, self.right - 10))
            self.places, self.texts = [log(d) for d in dims], [f"{d:,}" for d in dims]

    def canvas(self) -> Canvas:
        figure, now, sheet, i = self.figure, self.now, self.sheet, self.now.i
        top, bottom, upper, lower = 70.0, 330.0, 396.0, 526.0
        title = f"{figure.metric} kept of full size" if self.keep else figure.metric
        sheet.text(0, 14, title, size=TEXT, strong=True)
        sheet.text(0, 34, f"{now.set['name']}: {now.setting}" if now.setting else now.set["name"], colour="muted")
        sheet.text(0, 52, self._note(), colour="muted")
        sy = self._score(top, bottom)
        sg = self._gaps(bottom, upper, lower)
        for x in self.places:
            sheet.line([(x, lower + 4), (x, lower + 9)], "tick")
        here = self.places[i]
        sheet.line([(here, top), (here, bottom)], "here-line")
        sheet.line([(here, upper), (here, lower + 4)], "here-line")
        self._stops(lower + 25)
        x_name = "share of the dimensions kept" if self.fraction else "dimensions kept (log scale)"
        sheet.text(self.right, lower + 46, x_name, colour="muted", anchor="end")

        def share(row: Sequence[float | None]) -> list[float | None]:
            return [None if v is None else v / now.full if self.keep else v for v in row]

        n = len(self.places)
        tops = []
        for curve in now.curves:
            run = curve.run
            own: list[Sequence[float | None]] = [[], []]
            if run["least"]:
                own = [share(run["least"]), share(run["most"])]
            elif run is now.curves[0].run:
                own = [run[key] for key in (("keep_low", "keep_high") if self.keep else ("low", "high"))]
            values = [value_of(run, j) for j in range(n)]
            rings = share(run["published"]) if _ringed(run) else []
            tops.append([self._heights(row, sy) for row in (share(values), *own, rings)])
        self._curves(now.curves, tops)
        others = [curve for curve in now.curves[1:] if curve.run[curve.far]]
        gaps = [
            [self._heights(c.run[f"{c.far}{end}"], sg) for end in ("", "_low", "_high")] + [[None] * n] for c in others
        ]
        self._curves(others, gaps, whiskers=True)
        if not others:
            middle = (self.left + self.right) / 2
            sheet.text(middle, sg(0) - 8, "no paired differences here", colour="muted", anchor="middle")
        self._read(tops, top, bottom)
        self._read_gaps(others, gaps, upper, lower)
        return sheet.canvas

    def _note(self) -> str:
        curves = self.now.curves
        banded = curves[0].run["keep_low" if self.keep else "low"]
        parts = (
            "95% band of the prefix" if banded else "",
            "random: range of draws" if any(c.run["least"] for c in curves) else "",
            "rings: published" if any(_ringed(c.run) for c in curves) else "",
        )
        return "; ".join(filter(None, parts))

    def _score(self, top: float, bottom: float) -> Any:  # noqa: ANN401
        def most(one: Set) -> float:
            return max(_all(one["runs"], "values", "high", "published", "most"))

        if self.keep:
            kept = max(1.0, *(most(one) / _full(one) for one in self.figure.sets))
            ends, ticks, step = _ladder(0, kept, 6, [0.2, 0.5])
        else:
            ends, ticks, step = _ladder(0, most(self.now.set), 7, [0.05, 0.1, 0.2])
        sy = linear(ends, (bottom, top + 6))
        show = (lambda t: percent(t, 0)) if self.keep else (lambda t: num(t, 2 if step < 0.1 else 1))
        self.sheet.levels(sy, ticks, self.left, self.right, show)
        return sy

    def _gaps(self, bottom: float, upper: float, lower: float) -> Any:  # noqa: ANN401
        now = self.now
        inside = [
            run
            for run in now.set["runs"]
            if run["renormalised"] == now.kept and (run["kind"] in ("PCA", "SVD") or run["centred"] == now.moved)
        ]
        far = [*_all(inside, "gap", "gap_low", "gap_high"), 0.0]
        if not now.kept:
            far += _all([_plain(now.set)], "gain", "gain_low", "gain_high")
        far = far if len(far) > 1 else [-0.05, 0.05]
        ends, ticks, step = _ladder(min(far), max(far), 5, [0.01, 0.02, 0.05, 0.1, 0.2])
        sg = linear(ends, (lower, upper + 6))
        title = f"Difference to the {now.curves[0].name} in {self.figure.metric}"
        self.sheet.text(0, bottom + 30, title, size=TEXT, strong=True)
        note = "paired over queries; bold: 0 is outside the interval"
        self.sheet.text(0, bottom + 50, note, colour="muted")
        exact = [0.0 if abs(t) < 1e-9 else t for t in ticks]
        self.sheet.levels(sg, exact, self.left, self.right, lambda t: signed(t, 2 if step < 0.1 else 1) if t else "0")
        return sg

    def _stops(self, y: float) -> None:
        i, widths = self.now.i, [measure(text, strong=True) for text in self.texts]
        middles = [min(760 - w / 2, max(w / 2, x)) for x, w in zip(self.places, widths, strict=True)]
        for j in named(middles, widths):
            if j != i and abs(middles[j] - middles[i]) >= (widths[j] + widths[i]) / 2 + 7:
                self.sheet.text(middles[j], y, self.texts[j], colour="muted", anchor="middle")
        self.sheet.text(middles[i], y, self.texts[i], strong=True, anchor="middle")

    def _heights(self, row: Sequence[float | None], scale: Any) -> list[float | None]:  # noqa: ANN401
        return [None if (v := entry(row, j)) is None else scale(v) for j in range(len(self.places))]

    def _curves(
        self, curves: Sequence[_Curve], drawn: Sequence[list[list[float | None]]], *, whiskers: bool = False
    ) -> None:
        places, i = self.places, self.now.i
        for curve, (_, low, high, _) in zip(curves, drawn, strict=True):
            for run in runs(len(places), lambda j, a=low, b=high: a[j] is not None and b[j] is not None):  # type: ignore[misc]
                if len(run) > 1:
                    there, back = ([(places[j], row[j]) for j in run] for row in (high, low))
                    self.sheet.veil([*there, *reversed(back)], curve.tone)  # type: ignore[list-item]
        for curve, (ys, _, _, rings) in reversed([*zip(curves, drawn, strict=True)]):
            look = f"{curve.tone}-open" if curve.dashed else curve.tone
            for run in runs(len(places), lambda j, row=ys: row[j] is not None):  # type: ignore[misc]
                if len(run) > 1:
                    points: list[Point] = [(places[j], ys[j]) for j in run]  # type: ignore[misc]
                    self.sheet.line(points, f"curve-{curve.tone}{'-dashed' if curve.dashed else ''}")
            for x, y, ring in zip(places, ys, rings, strict=True):
                if y is not None:
                    self._mark(curve, x, y, 3, f"mark-{look}")
                if ring is not None:
                    self.sheet.circle(x, ring, 6.5, f"whisker-{curve.tone}")
        extents: list[tuple[float, float] | None] = []
        for ys, low, high, _ in drawn:
            y = ys[i]
            a, b = (y if v is None else v for v in (high[i], low[i]))
            extents.append(
                None if y is None or a is None or b is None or not whiskers else (min(y - 7, a), max(y + 7, b))
            )
        shifts = series_.beside(extents)
        for curve, (ys, low, high, _), (shift, half) in reversed([*zip(curves, drawn, shifts, strict=True)]):
            y, a, b = ys[i], low[i], high[i]
            if y is None:
                continue
            reach = _STEP * half + 8
            x = min(self.right - reach, max(places[0] - 6 + reach, places[i])) + _STEP * shift
            if whiskers and a is not None and b is not None:
                for line in ([(x - 4, a), (x + 4, a)], [(x, a), (x, b)], [(x - 4, b), (x + 4, b)]):
                    self.sheet.line(line, f"whisker-{curve.tone}")
            self._mark(curve, x, y, 5.5, f"mark-{curve.tone}-{'open' if curve.dashed else 'ringed'}")

    def _mark(self, curve: _Curve, x: float, y: float, r: float, look: str) -> None:
        if curve.shape == 0:
            self.sheet.circle(x, y, r, look)
        else:
            self.sheet.polygon(_shape(curve.shape, x, y, r), look)

    def _pointer(self, curve: _Curve, start: float, end: float) -> None:
        """From the height of a mark, at the edge of its plot, to what is written about it."""
        self.sheet.line([(self.right - 2, start), (self.right + 5, start)], f"whisker-{curve.tone}")
        self.sheet.line([(self.right + 6, start), (self.start - 4, end)], "leader")

    def _two(self, x: float, y: float, text: str, interval: str, *, strong: bool) -> None:
        self.sheet.text(x, y, text, strong=strong, colour="ink" if strong else "muted")
        if interval:
            self.sheet.text(x + measure(text, strong=strong) + 5, y, interval, colour="muted")

    def _read(self, tops: Sequence[list[list[float | None]]], top: float, bottom: float) -> None:
        now, i = self.now, self.now.i
        head = f"at {now.set['dims'][i]:,} of {now.set['size']:,}"
        self.sheet.text(self.start, top - 18, head, colour="muted")
        at = [ys[i] for ys, *_ in tops]
        order = sorted(range(len(at)), key=lambda n: (inf if at[n] is None else at[n], n))
        wanted = [(top if (y := at[n]) is None else y, 34.0) for n in order]
        for n, (y0, _), y in zip(order, wanted, balance(wanted, top - 8, bottom + 10, 4), strict=True):
            curve = now.curves[n]
            if at[n] is not None:
                self._pointer(curve, y0, y - 5.5)
            self._mark(curve, self.start + 6, y - 5.5, 5, f"mark-{curve.tone}{'-open' if curve.dashed else ''}")
            self.sheet.text(self.start + 18, y - 1, curve.name, strong=True, colour=curve.tone)
            self._two(self.start + 18, y + 15, *self.figure._reading(curve, i, now.full), strong=True)

    def _read_gaps(
        self, others: Sequence[_Curve], gaps: Sequence[list[list[float | None]]], upper: float, lower: float
    ) -> None:
        i = self.now.i
        there = sorted((y, n) for n, (ys, *_) in enumerate(gaps) if (y := ys[i]) is not None)
        spots = balance([(y, 17.0) for y, _ in there], upper - 8, lower + 30, 3)
        for (y0, n), y in zip(there, spots, strict=True):
            curve = others[n]
            far = _difference(curve, i)
            if far is None:
                continue
            self._pointer(curve, y0, y)
            self._mark(curve, self.start + 6, y, 5, f"mark-{curve.tone}{'-open' if curve.dashed else ''}")
            self._two(self.start + 18, y + 4.5, far[0], far[1], strong=far[2] in ("better", "worse"))
