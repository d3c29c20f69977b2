"""Kernels for training and running on a CPU: what stands between the matrix products, each in one pass over memory.

They are C++, compiled on the user's machine for its processor, once, in a few seconds. Where there is no compiler,
torch's own operations do the same and take longer; `usable` says which.
"""
