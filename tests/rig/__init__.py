"""Shared tools: real servers, real data and row comparison for the tests and the benchmarks."""
