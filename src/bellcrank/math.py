"""Functions for motion and force laws; they work on numbers and inside compiled code."""

from bellcrank.engine.functions import atan2, cos, exp, log, pi, select_less, sin, sqrt, tan, tanh

__all__ = ["atan2", "cos", "exp", "log", "pi", "select_less", "sin", "sqrt", "tan", "tanh"]
