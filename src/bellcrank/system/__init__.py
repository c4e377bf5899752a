"""The compiled machine: what a user computes with."""

from bellcrank.system.compile import compile
from bellcrank.system.system import System

__all__ = ["System", "compile"]
