"""Devices, cores, memory, time and interruption of computations; files that ship with the code."""
