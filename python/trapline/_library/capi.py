"""The C face of libtrapline for ctypes: numbers, structures, signatures.

Made by scripts/binding.py of the headers in include/trapline, which say what each is: do not edit.
"""

from __future__ import annotations

import ctypes
from typing import Any

CAPI_VERSION = 4
BOOL = 0
UINT8 = 1
INT8 = 2
INT16 = 3
INT32 = 4
INT64 = 5
FLOAT16 = 6
BFLOAT16 = 7
FLOAT32 = 8
FLOAT64 = 9
OTHER_DTYPE = 255
ARG_NONE = 0
ARG_TENSOR = 1
ARG_INT = 2
ARG_LIST = 3
ARG_SIZES = 4
PREDICATE_INDEX = 0
PREDICATE_WRAPPED_INDEX = 1
PREDICATE_INDEX_LIST = 2
PREDICATE_UNIT_INTERVAL = 3
PREDICATE_NON_NEGATIVE = 4
PREDICATE_PROBABILITY_ROWS = 5
PREDICATE_OFFSETS = 6
PREDICATE_FINITE_TO_INTEGER = 7
PREDICATE_PADDED_INDEX = 8
PREDICATE_ENDED_INDEX = 9
PREDICATE_PIVOTS = 10
PREDICATE_ENDS = 11
PREDICATE_COUNTS = 12
PREDICATE_LENGTHS = 13
PREDICATE_MASK_COUNT = 14
PREDICATE_COMPRESSED = 15
ALSO_NONE = 0
ALSO_ALLOWED = 1
ALSO_LENGTHS = 2
ALSO_FLAG = 3
ALSO_BROADCAST = 4
ALSO_STEP = 5
BOUND_NONE = 0
BOUND_SIZE_OF_DIM = 1
BOUND_CLASSES = 2
BOUND_LAST_DIM = 3
BOUND_NUMEL = 4
BOUND_INTEGER = 5
BOUND_PRODUCT = 6
BOUND_MATRIX_ROWS = 7
BOUND_SPATIAL = 8
BOUND_GROUPED = 9
ON_CPU_REFUSES = 0
ON_CPU_PARTLY = 1
ON_CPU_AT_ENDS = 2
ON_CPU_SILENT = 3
HEAL_NONE = 0
HEAL_ELEMENT = 1
HEAL_ROW = 2
HEAL_ALL = 3
HEAL_REPORT = 4
REASON_NONE = 0
REASON_BELOW = 1
REASON_ABOVE = 2
REASON_NAN = 3
REASON_INF = 4
REASON_NEGATIVE = 5
REASON_ZERO_SUM = 6
REASON_NOT_ASCENDING = 7
REASON_FIRST_NOT_ZERO = 8
REASON_TOO_MANY = 9
REASON_TOO_FEW = 10
OK = 0
VIOLATED = 1
NOT_APPLICABLE = 2
OFFENDERS_ELEMENTS = 0
OFFENDERS_HEALED = 1
DATA_LABELS = 0
DATA_IDS = 1
DATA_FINITE = 2
DATA_PROBABILITIES = 3
DEVICE_DIMS = 12
PLAN_NOTHING = 0
PLAN_CHECK = 1
PLAN_VIOLATED = 2
LAUNCH_CAPTURING = 1
SITE_NONE = 0
SITE_CHECKED = 1
SITE_TENSOR = 2
SITE_SHAPE = 3
SITE_INT = 4
SITE_INTS = 5
SITE_FLAG = 6
SITE_LIST = 7
FILE_WRITTEN = 0
FILE_ENOUGH = 1
FILE_FAILED = 2
MAX_FINDINGS = 20
EXIT_STOPPED = 65
MAX_VALUES = 16


class Tensor(ctypes.Structure):
    """trapline_tensor of include/trapline."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("dim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class Arg(ctypes.Structure):
    """trapline_arg of include/trapline."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("list_size", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("tensor", Tensor),
        ("list", ctypes.POINTER(Tensor)),
    ]


class Contract(ctypes.Structure):
    """trapline_contract of include/trapline."""

    _fields_ = [
        ("id", ctypes.c_char_p),
        ("op", ctypes.c_char_p),
        ("argument", ctypes.c_char_p),
        ("bound_arg", ctypes.c_char_p),
        ("dim_arg", ctypes.c_char_p),
        ("also_arg", ctypes.c_char_p),
        ("public_op", ctypes.c_char_p),
        ("public_argument", ctypes.c_char_p),
        ("predicate", ctypes.c_int32),
        ("bound", ctypes.c_int32),
        ("also", ctypes.c_int32),
        ("heal", ctypes.c_int32),
        ("composite", ctypes.c_int32),
        ("remember", ctypes.c_int32),
        ("on_cpu", ctypes.c_int32),
    ]


class Scan(ctypes.Structure):
    """trapline_scan of include/trapline."""

    _fields_ = [
        ("bad", ctypes.c_int64),
        ("total", ctypes.c_int64),
        ("first", ctypes.c_int64),
        ("is_float", ctypes.c_int32),
        ("list_position", ctypes.c_int32),
        ("ivalue", ctypes.c_int64),
        ("imin", ctypes.c_int64),
        ("imax", ctypes.c_int64),
        ("fvalue", ctypes.c_double),
        ("fmin", ctypes.c_double),
        ("fmax", ctypes.c_double),
        ("lo", ctypes.c_int64),
        ("hi", ctypes.c_int64),
        ("has_also", ctypes.c_int32),
        ("reason", ctypes.c_int32),
        ("also", ctypes.c_int64),
    ]


class Value(ctypes.Structure):
    """trapline_value of include/trapline."""

    _fields_ = [
        ("ivalue", ctypes.c_int64),
        ("fvalue", ctypes.c_double),
        ("count", ctypes.c_int64),
    ]


class DataRule(ctypes.Structure):
    """trapline_data_rule of include/trapline."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("has_ignore_index", ctypes.c_int32),
        ("limit", ctypes.c_int64),
        ("ignore_index", ctypes.c_int64),
        ("positions", ctypes.c_int64),
    ]


class DeviceCheck(ctypes.Structure):
    """trapline_device_check of include/trapline."""

    _fields_ = [
        ("row", ctypes.POINTER(Contract)),
        ("predicate", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("heal", ctypes.c_int32),
        ("list_position", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("has_also", ctypes.c_int32),
        ("repeated", ctypes.c_int32),
        ("lo", ctypes.c_int64),
        ("hi", ctypes.c_int64),
        ("also", ctypes.c_int64),
        ("numel", ctypes.c_int64),
        ("last_dim", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * DEVICE_DIMS),
        ("strides", ctypes.c_int64 * DEVICE_DIMS),
        ("data", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        ("lengths_count", ctypes.c_int64),
    ]


class DeviceReport(ctypes.Structure):
    """trapline_device_report of include/trapline."""

    _fields_ = [
        ("slot", ctypes.c_int64),
        ("device", ctypes.c_int32),
        ("list_position", ctypes.c_int32),
        ("row", ctypes.POINTER(Contract)),
        ("scan", Scan),
    ]


def declare(lib: Any) -> None:
    """Set the types of the functions of a loaded library."""
    lib.trapline_version.restype = ctypes.c_char_p
    lib.trapline_version.argtypes = []
    lib.trapline_capi_version.restype = ctypes.c_int
    lib.trapline_capi_version.argtypes = []
    lib.trapline_dtype_name.restype = ctypes.c_char_p
    lib.trapline_dtype_name.argtypes = [ctypes.c_int32]
    lib.trapline_contracts.restype = ctypes.POINTER(Contract)
    lib.trapline_contracts.argtypes = [ctypes.POINTER(ctypes.c_size_t)]
    lib.trapline_check.restype = ctypes.c_int
    lib.trapline_check.argtypes = [
        ctypes.POINTER(Contract),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Scan),
    ]
    lib.trapline_offenders.restype = ctypes.c_int
    lib.trapline_offenders.argtypes = [
        ctypes.c_int32,
        ctypes.POINTER(Scan),
        ctypes.POINTER(Tensor),
        ctypes.c_int,
        ctypes.c_void_p,
    ]
    lib.trapline_bad_values.restype = ctypes.c_int
    lib.trapline_bad_values.argtypes = [
        ctypes.c_int32,
        ctypes.POINTER(Scan),
        ctypes.POINTER(Tensor),
        ctypes.POINTER(Value),
        ctypes.c_int,
    ]
    lib.trapline_heal_copy.restype = ctypes.c_int
    lib.trapline_heal_copy.argtypes = [
        ctypes.c_int32,
        ctypes.POINTER(Scan),
        ctypes.POINTER(Tensor),
        ctypes.c_void_p,
    ]
    lib.trapline_data_check.restype = ctypes.c_int
    lib.trapline_data_check.argtypes = [
        ctypes.POINTER(DataRule),
        ctypes.POINTER(Tensor),
        ctypes.POINTER(Scan),
    ]
    lib.trapline_data_tally.restype = ctypes.c_void_p
    lib.trapline_data_tally.argtypes = [ctypes.POINTER(DataRule), ctypes.POINTER(Tensor), ctypes.c_int64]
    lib.trapline_data_findings.restype = ctypes.c_void_p
    lib.trapline_data_findings.argtypes = [ctypes.POINTER(DataRule), ctypes.c_char_p, ctypes.c_char_p]
    lib.trapline_diagnose.restype = ctypes.c_void_p
    lib.trapline_diagnose.argtypes = [ctypes.c_char_p]
    lib.trapline_bare_sentence.restype = ctypes.c_int
    lib.trapline_bare_sentence.argtypes = [
        ctypes.c_char_p,
        ctypes.POINTER(Scan),
        ctypes.c_void_p,
        ctypes.c_size_t,
    ]
    lib.trapline_bare_finding.restype = ctypes.c_void_p
    lib.trapline_bare_finding.argtypes = [ctypes.c_char_p, ctypes.POINTER(Scan), ctypes.c_char_p]
    lib.trapline_render.restype = ctypes.c_void_p
    lib.trapline_render.argtypes = [ctypes.c_char_p, ctypes.c_int]
    lib.trapline_render_html.restype = ctypes.c_void_p
    lib.trapline_render_html.argtypes = [ctypes.c_char_p]
    lib.trapline_write_finding.restype = ctypes.c_int
    lib.trapline_write_finding.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_void_p),
    ]
    lib.trapline_findings_written.restype = ctypes.c_int
    lib.trapline_findings_written.argtypes = [ctypes.c_char_p]
    lib.trapline_write_file.restype = ctypes.c_int
    lib.trapline_write_file.argtypes = [
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_void_p),
    ]
    lib.trapline_free.restype = None
    lib.trapline_free.argtypes = [ctypes.c_void_p]
    lib.trapline_device_plan.restype = ctypes.c_int
    lib.trapline_device_plan.argtypes = [
        ctypes.POINTER(Contract),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Arg),
        ctypes.POINTER(Arg),
        ctypes.POINTER(DeviceCheck),
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_int),
        ctypes.POINTER(Scan),
    ]
    lib.trapline_device_ready.restype = ctypes.c_int
    lib.trapline_device_ready.argtypes = [ctypes.c_int]
    lib.trapline_device_why.restype = ctypes.c_char_p
    lib.trapline_device_why.argtypes = []
    lib.trapline_device_reserve.restype = ctypes.c_int64
    lib.trapline_device_reserve.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    lib.trapline_device_scratch.restype = ctypes.c_int64
    lib.trapline_device_scratch.argtypes = [ctypes.POINTER(DeviceCheck), ctypes.c_int]
    lib.trapline_device_launch.restype = ctypes.c_int
    lib.trapline_device_launch.argtypes = [
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int64,
        ctypes.POINTER(DeviceCheck),
        ctypes.c_void_p,
        ctypes.c_void_p,
        ctypes.c_int,
    ]
    lib.trapline_device_pending.restype = ctypes.c_int
    lib.trapline_device_pending.argtypes = []
    lib.trapline_device_poll.restype = ctypes.c_int
    lib.trapline_device_poll.argtypes = [ctypes.POINTER(DeviceReport), ctypes.c_int]
    lib.trapline_device_wait.restype = ctypes.c_int
    lib.trapline_device_wait.argtypes = []
    lib.trapline_device_wait_stream.restype = ctypes.c_int
    lib.trapline_device_wait_stream.argtypes = [ctypes.c_int, ctypes.c_void_p]
