// What is done at one overload of one operation: made by _guard/plan.py, kept for good.
#pragma once

#include "kernel/python.hpp"
#include "trapline/capi.h"

namespace trapline::kernel {

constexpr int kMaxArguments = 32;
constexpr int kMaxRows = 8;
constexpr int kMaxRecorded = 4;

// Positions in the schema; -1: the row names no such argument.
struct Row {
  const trapline_contract* contract = nullptr;
  int argument = -1, bound = -1, dim = -1, also = -1;
  bool remember = false;
};

struct Plan {
  PyObject* op = nullptr;  // "aten::embedding"
  int arguments = 0;
  PyObject* names[kMaxArguments] = {};
  PyObject* defaults[kMaxArguments] = {};
  int tensors = 0, recorded = 0, rows = 0;
  int tensor[kMaxArguments] = {};  // positions of single tensors
  int record[kMaxRecorded] = {};   // positions of what the history keeps
  Row row[kMaxRows];
  bool remember = false;  // all rows only remember: not worth a place in the history
  PyObject* redispatch = nullptr;
  PyObject* known = nullptr;  // raw_repr of a key set -> (key set below, where it leads)
  // Python's part: everything that is rare. args: the key set below, then the arguments; kwargs may be None.
  PyObject* classify = nullptr;      // (key set) -> the entry of `known`
  PyObject* with_tensors = nullptr;  // (args) -> args: with tensors for the numbers that torch handed over
  PyObject* answer = nullptr;        // (args, kwargs) -> those to go on with, or the exception to raise
  PyObject* remembered = nullptr;    // (row, args, kwargs)
  PyObject* on_device = nullptr;     // (args, kwargs) -> the result
};

// From the dictionary that _guard/kernel.py makes; nullptr with an exception set.
Plan* make_plan(PyObject* spec);

}  // namespace trapline::kernel
