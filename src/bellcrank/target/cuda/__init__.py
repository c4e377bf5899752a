"""CUDA through CuPy: a state is a thread, and neighbouring threads read neighbouring words."""

#: place among the targets that code is run on
ORDER = 1
#: packages that compile, whose versions results tell
LIBRARIES = ("cupy",)
