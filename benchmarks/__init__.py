"""Ratios of cygrad's times to those of its peers; run them with `python -m benchmarks [names]`."""
