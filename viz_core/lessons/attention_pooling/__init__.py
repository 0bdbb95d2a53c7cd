"""Regression by a kernel: points to fit, a width to learn, and the bridge to dot-product attention."""
