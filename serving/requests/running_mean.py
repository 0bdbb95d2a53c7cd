"""Running means of observations, with confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

_NORMAL = 1.959963984540054  # 95 % of a normal distribution lie within so many standard deviations of its mean


@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean and sum of squared deviations of several quantities.

    Two of them add up to those of all their observations, so that nothing of an observation need be kept:

        n = n_a + n_b,  d = mean_b - mean_a,  mean = mean_a + d n_b / n,  M = M_a + M_b + d^2 n_a n_b / n

    with M = sum (x - mean)^2 (Chan, Golub and LeVeque 1983, "Algorithms for Computing the Sample Variance", equation
    2.1; one observation at a time it is Welford's of 1962). Sums of squares, from which squared sums are taken, would
    lose all digits where a mean is large beside its spread.
    """

    count: Float[np.ndarray, "*quantities"]
    mean: Float[np.ndarray, "*quantities"]
    squares: Float[np.ndarray, "*quantities"]

    @classmethod
    def of(cls, values: Float[np.ndarray, "*quantities"]) -> Moments:
        """Return the moments of one observation; a quantity that is NaN was not observed."""
        seen = ~np.isnan(values)
        return cls(seen.astype(np.float64), np.where(seen, values, 0.0).astype(np.float64), np.zeros(values.shape))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of observations together."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1.0)
        apart = other.mean - self.mean
        squares = self.squares + other.squares + apart**2 * self.count * share
        return Moments(count, self.mean + apart * share, squares)

    def value(self) -> Float[np.ndarray, "*quantities"]:
        """Return the means; NaN for a quantity never observed."""
        return np.where(self.count > 0, self.mean, np.nan)

    def half_width(self) -> Float[np.ndarray, "*quantities"]:
        """Half-width of each mean's normal 95% interval, 1.96 s / sqrt(n) with s^2 = M / (n - 1); NaN if n < 2.

        By the central limit theorem, for which a few dozen observations do (Wasserman 2004, "All of Statistics",
        section 6.3.2). Observations must be independent: sentences are, tokens of one sentence are not.
        """
        n = np.where(self.count > 1, self.count, np.nan)
        found: Float[np.ndarray, "*quantities"] = _NORMAL * np.sqrt(self.squares / (n - 1) / n)
        return found
