"""Functions by what they do to numbers, for the readers of the program's text."""

from __future__ import annotations

# Each gives numbers of its own, whatever it was given.
SEARCHES = ("bucketize", "searchsorted", "digitize")
MAKES = {
    *SEARCHES,
    *("argmax", "argmin", "argsort", "topk", "nonzero", "multinomial", "randint", "randint_like", "randperm"),
    *("arange", "cumsum", "floor", "ceil", "round", "trunc", "floor_divide", "remainder", "bincount"),
    "ravel_multi_index",
}
# Two results, of which the second is places: `values, index = x.max(dim=1)`.
PAIRS = {"max", "min", "kthvalue", "mode", "median", "sort", "cummax", "cummin"}
# Each gives the numbers that it was given, in another form.
KEEPS = {
    *("to", "long", "int", "cuda", "cpu", "view", "reshape", "squeeze", "unsqueeze", "flatten", "contiguous"),
    *("clone", "detach", "type", "expand", "repeat", "transpose", "permute", "numpy", "short", "ravel"),
    *("astype", "expand_as", "view_as", "type_as", "t", "copy"),
}
# Each has nothing of its own yet, until something is written into it.
EMPTY = (
    *("zeros", "ones", "empty", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones"),
    "new_empty",
)
GATHERS = ("stack", "cat", "concatenate", "pad_sequence", "hstack", "vstack", "default_collate")
CUTS = ("int", "round")
DRAWS = {
    *("rand", "rand_like", "randn", "randint", "randint_like", "randperm", "multinomial", "integers"),
    "choice",
}
ACROSS = {"cumsum", "cumprod", "cummax", "cummin", "argsort", "sort", "bincount", "unique"}
