"""Least squares with no negative coefficient, exactly: a cost below zero is noise."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

IMPROVES = 1e-9  # of the squares: what a further column must explain, so that of two alike only one is used


def non_negative(columns: Floats, values: Floats) -> list[float]:
    """Coefficients >= 0 that minimise |columns @ coefficients - values|; columns (n, k), values (n,)."""
    gram, moment = columns.T @ columns, columns.T @ values
    found: list[float] = from_moments(gram[None], moment[None], np.array([values @ values]))[0].tolist()
    return found


def from_moments(gram: Floats, moment: Floats, square: Floats) -> Floats:
    """The same for many problems at once, from X'X (m, k, k), X'y (m, k) and y'y (m,) -> (m, k).

    The optimum is the plain solution on some subset of the columns (Lawson and Hanson 1974, chapter 23). With
    a handful of columns all subsets are tried, the smaller first: of columns that say the same, as rows
    and a constant where the rows never vary, the first is used.
    """
    problems, width = moment.shape
    scale = np.sqrt(np.maximum(np.einsum("mkk->mk", gram), 1e-300))
    gram, moment = gram / scale[:, :, None] / scale[:, None, :], moment / scale
    best, best_error = np.zeros((problems, width)), square.astype(np.float64)
    for size in range(1, width + 1):
        for subset in map(list, combinations(range(width), size)):
            part = gram[:, subset][:, :, subset]
            right = moment[:, subset]
            sound = np.linalg.det(part) > IMPROVES
            part = np.where(sound[:, None, None], part, np.eye(size))
            found = np.linalg.solve(part, right[:, :, None])[:, :, 0]
            error = square - np.einsum("mk,mk->m", found, right)
            better = sound & (found >= 0).all(axis=1) & (error < best_error - IMPROVES * square)
            best_error = np.where(better, error, best_error)
            row = np.zeros((problems, width))
            row[:, subset] = found
            best = np.where(better[:, None], row, best)
    coefficients: Floats = best / scale
    return coefficients
