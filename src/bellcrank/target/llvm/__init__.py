"""Native code for the CPU through LLVM: one state, or one SIMD lane per state."""

#: place among the targets that code is run on
ORDER = 0
#: packages that compile, whose versions results tell
LIBRARIES = ("llvmlite",)
