"""Functions for motion and force laws; they work on numbers and inside compiled code."""

from bellcrank.engine.functions import cos, exp, log, pi, select_less, sin, sqrt, tan, tanh

__all__ = ["cos", "exp", "log", "pi", "select_less", "sin", "sqrt", "tan", "tanh"]
