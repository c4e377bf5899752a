"""Compiled code: a neutral language for programs, and one folder for each kind of machine that runs them."""
