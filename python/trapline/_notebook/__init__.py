"""``%load_ext trapline``: the guard in a notebook, its findings below the cells, the magic ``%trapline``."""
