"""The checks of data at hand: ``trapline.check_labels`` and its relatives, and loaders that are checked."""
