"""Ordinary exceptions of the same family (sizes, devices, dtypes) that nobody caught, explained as faults."""
