"""The model at a fault: layers, tables, parameters, NaN."""
