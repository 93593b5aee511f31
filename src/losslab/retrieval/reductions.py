r"""Fewer dimensions for an embedding: its first ones, random ones, or the axes that a corpus is spread along.

Every reduction is an affine map :math:`e \mapsto (e - \mu) C_m`, fitted on documents alone and applied to queries and
documents alike; :math:`C_m` has ``dim`` columns, :math:`\mu` is the documents' mean or 0:

===================  =========================================================  ==================
kind                 columns of C                                               centred
===================  =========================================================  ==================
``prefix``           the first m unit vectors                                   as asked
``random-dims``      m distinct unit vectors, drawn anew for each m             as asked
``random-rotation``  the first m of a random orthonormal basis                  as asked
``pca``              the first m axes of largest variance                       always
``svd``              the first m right singular vectors of the documents        never
===================  =========================================================  ==================

Except for random dims, the columns of a smaller size are the first columns of a larger one: fit once, at the largest
size wanted. Centring is not a matter of taste: cosine is measured from the origin, and the mean becomes the origin.

References
----------
Jolliffe, "Principal Component Analysis", 2nd edition, 2002, chapter 3; Eckart and Young, "The approximation of one
matrix by another of lower rank", Psychometrika 1, 1936 (SVD keeps scalar products best); Mezzadri, "How to generate
random matrices from the classical compact groups", Notices of the AMS 54, 2007 (rotation).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.retrieval.exact_search import check_embeddings, near_one, power_of_two

Kind = Literal["prefix", "random-dims", "random-rotation", "pca", "svd"]
KINDS: tuple[Kind, ...] = ("prefix", "random-dims", "random-rotation", "pca", "svd")
DRAWN: tuple[Kind, ...] = ("random-dims", "random-rotation")  # those that depend on a seed
FITTED: tuple[Kind, ...] = ("pca", "svd")  # those that cannot be centred otherwise than they are


@dataclass(frozen=True)
class Reduction:
    """A fitted reduction, for every size up to ``largest``; made by `fit`.

    Attributes
    ----------
    kind
        One of `KINDS`.
    width
        Dimensions d of the embeddings it is for.
    largest
        The largest size it serves.
    seed
        Of what is drawn; None where nothing is.
    mean : (d,) float64, or None
        What is subtracted first: the mean of the documents it was fitted on. None: nothing.
    basis : (d, largest) float64, or None
        Orthonormal columns. None: the coordinates stay as they are.
    """

    kind: Kind
    width: int
    largest: int
    seed: int | None
    mean: Tensor | None
    basis: Tensor | None

    @property
    def centred(self) -> bool:
        """Whether a mean is subtracted."""
        return self.mean is not None

    def reduce(self, embeddings: Tensor | NDArray[np.floating], dim: int, renormalise: bool = True) -> Tensor:
        """Bring embeddings (N, d) to ``dim`` dimensions, (N, dim).

        Parameters
        ----------
        embeddings
            Queries or documents, finite; float16 and bfloat16 become float32.
        dim
            From 1 to ``largest``.
        renormalise
            Bring each row to length 1, so that scalar products are cosines. Without it they also reward documents of
            which much is left. A row of zeros stays one.

        Raises
        ------
        ValueError
            The width is not that of the documents it was fitted on, a row is not finite, ``dim`` is out of range, or a
            coordinate that is not renormalised is too large for its format; or ``renormalise`` is no bool.
        """
        (dim,) = check_dims([dim], self.largest)
        if not check_flag(renormalise, "renormalise"):
            return self.project(embeddings)[:, self.columns(dim)]
        kept = self.coordinates(embeddings)[0][:, self.columns(dim)]
        return torch.nn.functional.normalize(near_one(kept, each=True), dim=1)

    def project(self, embeddings: Tensor | NDArray[np.floating]) -> Tensor:
        """All coordinates of embeddings (N, d), of which `columns` chooses; errors as for `reduce`."""
        coordinates, unit = self.coordinates(embeddings)
        found = coordinates * unit
        if not found.isfinite().all():
            largest = torch.linalg.vector_norm(torch.as_tensor(embeddings).double(), dim=1).max()
            raise ValueError(
                f"embeddings has norms up to {float(largest):.3g}: some coordinates are beyond {found.dtype}; "
                "rescale the rows, or pass them in float64"
            )
        return found

    def coordinates(self, embeddings: Tensor | NDArray[np.floating]) -> tuple[Tensor, Tensor]:
        """The same over a power of two that is found in the rows and the mean, and that power, ()."""
        rows = check_embeddings(embeddings, "embeddings")
        if rows.shape[1] != self.width:
            raise ValueError(
                f"embeddings have {rows.shape[1]} dimensions, but the documents of this reduction had {self.width}"
            )
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
        unit = power_of_two(rows)
        if self.mean is not None:
            unit = torch.maximum(unit, power_of_two(self.mean[None]).to(unit))
        rows = rows / unit
        if self.mean is not None:
            rows = rows - (self.mean.to(rows.device) / unit).to(rows)
        return (rows if self.basis is None else rows @ self.basis.to(rows)), unit

    def columns(self, dim: int) -> slice | Tensor:
        """Which coordinates of `project` make up ``dim`` dimensions: the first ones, or a random set."""
        if self.kind != "random-dims":
            return slice(dim)
        return torch.from_numpy(np.random.default_rng(self.seed).choice(self.width, dim, replace=False))


def fit(
    kind: Kind,
    documents: Tensor | NDArray[np.floating],  # (N, d)
    dims: int | Sequence[int] | None = None,
    *,
    centre: bool | None = None,
    seed: int = 0,
) -> Reduction:
    """Fit a reduction on documents; queries have no part in it.

    Parameters
    ----------
    kind
        One of `KINDS`.
    documents
        Finite rows. PCA and SVD need at least as many of them as the largest size.
    dims
        Sizes wanted, each from 1 to d; by default up to d.
    centre
        Subtract the documents' mean. By default only PCA does, which always does; SVD never does.
    seed
        Of the random dims or the random rotation. Random dims of size m are
        ``numpy.random.default_rng(seed).choice(d, m, replace=False)``.

    Raises
    ------
    ValueError
        The kind is unknown; there are no documents, or one is not finite (the first is named); a size is below 1,
        above d, or for PCA and SVD above the number of documents; PCA is to be uncentred or SVD centred; documents have
        no axis, all of them equal (PCA) or zero (SVD); ``centre`` is no bool, or ``seed`` no whole number from 0.
    ImportError
        PCA or SVD is wanted and scikit-learn is not installed.

    Examples
    --------
    >>> documents = torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [1.0, 1.0, 2.0]])
    >>> fit("prefix", documents).reduce(documents, 2)[2]
    tensor([0.7071, 0.7071])
    """
    check_kind(kind, "kind")
    if centre is not None:
        centre = check_flag(centre, "centre", "True, False or None")
    seed = check_seed(seed, "seed")
    rows = check_embeddings(documents, "documents")
    count, width = rows.shape
    largest = check_dims(width if dims is None else dims, width)[-1]
    if kind in FITTED and largest > count:
        raise ValueError(
            f"{kind} needs at least as many documents as dimensions, got {count} documents for {largest} dimensions; "
            f"pass dims up to {count}, or more documents"
        )
    if kind in FITTED and centre not in (None, kind == "pca"):
        raise ValueError(f"centre={centre} contradicts {kind}: PCA is centred, SVD is not; choose the other one")
    if kind == "pca" and bool((rows == rows[0]).all()):
        raise ValueError(
            f"documents must differ for pca, but all {count} are the same row, so no axis has variance; "
            "pass documents that differ, or choose another kind"
        )
    if kind == "svd" and not rows.any():
        raise ValueError(
            f"documents must not all be zero for svd, but all {count} are; pass documents that are not, or another kind"
        )
    mean = _mean(rows) if centre or kind == "pca" else None
    basis = _basis(kind, rows, largest, seed)
    return Reduction(kind, width, largest, seed if kind in DRAWN else None, mean, basis)


def check_dims(dims: int | Sequence[int], largest: int) -> tuple[int, ...]:
    """Sizes, ascending and each once.

    Raises
    ------
    ValueError
        There are none, one is no whole number, or one is not from 1 to ``largest``.
    """
    sizes = list(dims) if isinstance(dims, Iterable) else [dims]
    if not sizes:
        raise ValueError("dims must hold at least one size, got none")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= largest:
            raise ValueError(f"a dimension must be a whole number from 1 to {largest}, got {size!r}")
    return tuple(sorted({int(size) for size in sizes}))


def check_kind(kind: object, name: str) -> Kind:
    """Return the kind if it is one of `KINDS`; ``name`` is what the message of the ValueError calls it."""
    for known in KINDS:
        if isinstance(kind, str) and kind == known:
            return known
    raise ValueError(f"{name} must be one of {', '.join(KINDS)}, got {kind!r}")


def check_flag(flag: object, name: str, choices: str = "True or False") -> bool:
    """Return the flag if it is a bool; ``name`` is what the message of the ValueError calls it."""
    if not isinstance(flag, (bool, np.bool_)):
        raise ValueError(f"{name} must be {choices}, got {flag!r}")
    return bool(flag)


def check_seed(seed: object, name: str) -> int:
    """Return the seed if it is a whole number from 0; ``name`` is what the message of the ValueError calls it."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"{name} must be a whole number of at least 0, got {seed!r}")
    return int(seed)


def _mean(documents: Tensor) -> Tensor:
    """Float64; no sum is larger than the format holds."""
    unit = power_of_two(documents.double())
    return (documents.double() / unit).mean(0) * unit


def _basis(kind: Kind, documents: Tensor, largest: int, seed: int) -> Tensor | None:
    """Orthonormal columns, (d, largest) float64; None where coordinates stay as they are."""
    if kind in ("prefix", "random-dims"):
        return None
    if kind == "random-rotation":
        square = np.random.default_rng(seed).standard_normal((documents.shape[1],) * 2)
        orthogonal, triangle = np.linalg.qr(square)
        # the factorisation leaves signs open; with these the rotation is uniform, and the same everywhere
        columns = orthogonal * np.sign(np.diag(triangle))
        return torch.from_numpy(columns[:, :largest].copy()).to(documents.device)
    components = _components(kind, near_one(documents.double()).cpu().numpy(), largest)
    strongest = components[np.arange(largest), np.abs(components).argmax(1)]
    return torch.from_numpy((components * np.sign(strongest)[:, None]).T.copy()).to(documents.device)


def _components(kind: Kind, documents: NDArray[np.float64], largest: int) -> NDArray[np.float64]:
    """Axes in rows, (largest, d), best first, with whatever signs scikit-learn gives."""
    decomposition = _sklearn(kind)
    if kind == "pca":
        # all of the decomposition, not an iteration that ends when it is close
        fitted = decomposition.PCA(largest, svd_solver="full").fit(documents)
    else:
        # TruncatedSVD draws at random what it does not keep; keeping everything makes it exact
        fitted = decomposition.TruncatedSVD(min(documents.shape), random_state=0).fit(documents)
    return np.asarray(fitted.components_[:largest], dtype=np.float64)


def _sklearn(kind: str) -> Any:  # noqa: ANN401
    try:
        import sklearn.decomposition  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            f"{kind} is fitted with scikit-learn, which is not installed; run: pip install scikit-learn"
        ) from None
    return sklearn.decomposition
