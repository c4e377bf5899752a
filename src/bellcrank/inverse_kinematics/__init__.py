"""Positions of machines, loops included, that meet targets."""
