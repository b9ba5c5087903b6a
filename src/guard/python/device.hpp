// The part of the extension module that is about the device.
#pragma once

#include <Python.h>

#include "guard/python/convert.hpp"

namespace trapline::guard {

PyObject* device_poll(PyObject*, PyObject* own);
PyObject* device_step(PyObject*, PyObject*);
PyObject* device_backward(PyObject*, PyObject* roots);
PyObject* device_pool(PyObject*, PyObject* begins);
PyObject* device_export(PyObject*, PyObject* tensor);
PyObject* device_batch(PyObject*, PyObject* serial);
PyObject* device_remaining(PyObject*, PyObject*);

PyRef device_info();
void device_uninstalled();

}  // namespace trapline::guard
