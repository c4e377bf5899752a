"""Derivatives of functions of a machine, as functions of the same kind: traced, compiled, batched like all others."""
