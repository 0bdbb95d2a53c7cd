"""Drawings of the sample pictures that ship: garments and small scenes."""
