"""One matrix moves every position by the same offset: proven, fitted, and held against rounding."""
