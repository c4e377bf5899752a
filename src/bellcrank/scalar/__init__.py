"""Scalars of every kind: traced expression graphs, elementary functions, jets, operation counts."""
