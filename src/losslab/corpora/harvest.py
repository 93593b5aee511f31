"""Docstrings of libraries that are installed anyway, as pairs of a question (the summary) and an answer (the rest)."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

MIN_SUMMARY = 4  # words; "Return a copy." asks for nothing in particular
MIN_BODY = 20  # words; less answers nothing

#: The public modules whose names are harvested. Written out, not walked, so that what is imported is known beforehand:
#: a walk would also import test suites, compilers and device back ends. Left out is what users rarely call.
MODULES: dict[str, tuple[str, ...]] = {
    package: tuple(f"{package}.{name}".removesuffix(".") for name in names)
    for package, names in {
        "numpy": (
            *("", "char", "fft", "lib.format", "lib.scimath", "lib.stride_tricks", "linalg", "ma"),
            *(f"polynomial.{kind}" for kind in ("chebyshev", "hermite", "hermite_e", "laguerre", "legendre")),
            *("polynomial.polynomial", "random", "rec", "strings"),
        ),
        "scipy": (
            *("cluster.hierarchy", "cluster.vq", "constants", "differentiate", "fft", "integrate", "interpolate"),
            *("io", "linalg", "linalg.interpolative", "ndimage", "optimize", "signal", "signal.windows", "sparse"),
            *("sparse.csgraph", "sparse.linalg", "spatial", "spatial.distance", "spatial.transform", "special"),
            *("stats", "stats.contingency", "stats.mstats", "stats.qmc", "stats.sampling"),
        ),
        "torch": (
            *("", "amp", "autograd", "autograd.functional", "distributions", "fft", "func", "linalg"),
            *("nested", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.parametrizations"),
            *("nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn", "optim", "optim.lr_scheduler"),
            *("optim.swa_utils", "profiler", "random", "serialization", "signal.windows", "sparse", "special"),
            *("utils.checkpoint", "utils.data"),
        ),
        "sklearn": (
            *("", "base", "calibration", "cluster", "compose", "covariance", "cross_decomposition", "datasets"),
            *("decomposition", "discriminant_analysis", "dummy", "ensemble", "feature_extraction"),
            *("feature_extraction.image", "feature_extraction.text", "feature_selection", "gaussian_process"),
            *("gaussian_process.kernels", "impute", "inspection", "isotonic", "kernel_approximation"),
            *("kernel_ridge", "linear_model", "manifold", "metrics", "metrics.cluster", "metrics.pairwise"),
            *("mixture", "model_selection", "multiclass", "multioutput", "naive_bayes", "neighbors"),
            *("neural_network", "pipeline", "preprocessing", "random_projection", "semi_supervised", "svm", "tree"),
        ),
        "matplotlib": (
            *("", "animation", "axes", "colors", "dates", "gridspec", "pyplot", "scale", "style", "ticker", "tri"),
        ),
    }.items()
}

# Legacy classes of torch (one a dtype), and the methods that a masked array only passes on.
_LEFT_OUT = re.compile(
    r"torch\.(cuda\.|\w+(Tensor|Storage)\b|Storage\b)"
    r"|numpy\.ma\.(MaskedArray|masked_array|mvoid|MaskedConstant|core\.\w+)\.\w+$"
    r"|numpy\.ma\.mrecords\.\w+\.\w+$"
    r"|matplotlib\.[\w.]+\.set$"  # written by a program: a table of every property the class has
)
_CALL = re.compile(r"[\w.]+\(")


@dataclass(frozen=True)
class Pair:
    """One docstring, cut in two.

    Attributes
    ----------
    name
        Qualified name under which it was found (``scipy.signal.welch``).
    summary
        Its first paragraph on one line: the query.
    body
        What follows, as `inspect.cleandoc` leaves it: the document.
    """

    name: str
    summary: str
    body: str


@dataclass(frozen=True)
class Harvest:
    """What was found, by name, and what could not be imported.

    Attributes
    ----------
    pairs
        Distinct pairs in the order of their names; of several names for one pair, the shortest path, then the first.
    aliases
        How many further names led to a pair already found.
    failed
        Modules that did not import, with the error's type.
    """

    pairs: tuple[Pair, ...]
    aliases: int
    failed: tuple[tuple[str, str], ...]


def harvest(packages: Sequence[str] = tuple(MODULES)) -> Harvest:
    """Collect the docstrings of the public names of ``packages``; quiet whatever the imports print or warn.

    Parameters
    ----------
    packages
        Any of numpy, scipy, torch, sklearn and matplotlib.

    Raises
    ------
    ValueError
        A package is none of these.
    """
    unknown = [name for name in packages if name not in MODULES]
    if unknown:
        raise ValueError(f"packages must be among {', '.join(MODULES)}, got {', '.join(unknown)}")
    found: list[Pair] = []
    failed: list[tuple[str, str]] = []
    with quiet():
        for package in packages:
            for module in MODULES[package]:
                try:
                    imported = importlib.import_module(module)
                except Exception as problem:  # whatever a library raises on import, the others are still there
                    failed.append((module, type(problem).__name__))
                    continue
                found += _pairs_of(module, imported)
    by_text: dict[tuple[str, str], Pair] = {}
    for pair in sorted(found, key=lambda pair: (pair.name.count("."), pair.name)):
        by_text.setdefault((pair.summary, pair.body), pair)
    names = len({pair.name for pair in found})
    pairs = tuple(sorted(by_text.values(), key=lambda pair: pair.name))
    return Harvest(pairs, names - len(pairs), tuple(failed))


def look_up(name: str) -> Pair | None:
    """Read the pair called ``name`` from the library installed here; None where there is none, for whatever reason."""
    parts = name.split(".")
    with quiet():
        for cut in range(len(parts) - 1, 0, -1):
            try:
                thing: Any = importlib.import_module(".".join(parts[:cut]))
            except Exception:  # not a module but a class, or a library that is not here or broken: try its parent
                continue
            try:
                for part in parts[cut:]:
                    thing = vars(thing)[part] if inspect.isclass(thing) else getattr(thing, part)
                return split_docstring(name, _own_docstring(thing))
            except Exception:  # gone in this version
                return None
    return None


def split_docstring(name: str, docstring: str | None) -> Pair | None:
    """Cut a docstring into summary and body; None if either is too short to ask or to answer anything.

    A signature that leads it (``add(x1, x2, /) -> Tensor``) is no summary and is dropped.
    """
    if docstring is None:
        return None
    text = _without_signatures(inspect.cleandoc(docstring))
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(paragraphs) < 2:
        return None
    summary, body = " ".join(paragraphs[0].split()), "\n\n".join(paragraphs[1:])
    if summary.startswith("Overloaded function") or len(summary.split()) < MIN_SUMMARY or len(body.split()) < MIN_BODY:
        return None
    return Pair(name, summary, body)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Nothing printed, nothing warned; and no window opened: matplotlib keeps to files unless told otherwise."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        unset = "MPLBACKEND" not in os.environ
        os.environ.setdefault("MPLBACKEND", "agg")
        try:
            yield
        finally:
            if unset:
                del os.environ["MPLBACKEND"]


def _pairs_of(module: str, imported: Any) -> Iterator[Pair]:  # noqa: ANN401
    listed = getattr(imported, "__all__", None)
    for name in sorted(set(listed or dir(imported))):
        full = f"{module}.{name}"
        if name.startswith("_") or _LEFT_OUT.match(full):
            continue
        try:
            thing = getattr(imported, name)
        except Exception:  # a name that is listed and not there, or deprecated and raising
            continue
        if inspect.ismodule(thing) or (not listed and _is_borrowed(thing, module)):
            continue
        yield from _pair(full, thing)
        if inspect.isclass(thing):
            for member, value in sorted(vars(thing).items()):
                if not member.startswith("_") and not _LEFT_OUT.match(f"{full}.{member}"):
                    yield from _pair(f"{full}.{member}", value)


def _pair(name: str, thing: Any) -> Iterator[Pair]:  # noqa: ANN401
    try:
        pair = split_docstring(name, _own_docstring(thing))
    except Exception:  # a docstring that computes itself, and fails
        return
    if pair is not None:
        yield pair


def _is_borrowed(thing: Any, module: str) -> bool:  # noqa: ANN401
    """Whether a module without ``__all__`` only imported this for its own use: it is at home beside or outside it."""
    home = getattr(thing, "__module__", None)
    return isinstance(home, str) and home != "builtins" and not f"{home}.".startswith(f"{module}.")


def _own_docstring(thing: Any) -> str | None:  # noqa: ANN401
    """Docstring of a function, a class or an instance that has one of its own; a number has only its class's."""
    docstring = getattr(thing, "__doc__", None)
    if not isinstance(docstring, str) or (not inspect.isclass(thing) and docstring == type(thing).__doc__):
        return None
    if type(thing).__name__ in ("_frommethod", "_convert2ma"):  # what numpy.ma only passes on to the array
        return None
    if not callable(thing) and not hasattr(type(thing), "__get__"):  # a constant: no function, no property
        return None
    return docstring


def _without_signatures(text: str) -> str:
    """Drop the calls that a docstring begins with: where the brackets close, the line ends, up to ``-> Tensor``."""
    while (call := _CALL.match(text)) is not None:
        depth, position = 1, call.end()
        while depth and position < len(text):
            depth += (text[position] == "(") - (text[position] == ")")
            position += 1
        rest, _, following = text[position:].partition("\n")
        if depth or not (rest.strip() in ("", "--") or rest.strip().startswith("->")):
            break
        text = following.lstrip().removeprefix("--\n").lstrip()
    return text
