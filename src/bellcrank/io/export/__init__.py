"""Machines as code for other programs, C, and as functions of other libraries: CasADi, SymPy, JAX, PyTorch."""
