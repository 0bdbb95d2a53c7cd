"""One matrix that moves every position by the same offset: proven, fitted, and compared with rounding errors."""
