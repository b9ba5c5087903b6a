// What torch_python.hpp says of PyTorch's own structures, compared with PyTorch's headers. Compiled and
// thrown away by scripts/adapters.py, with one Python's whole API, which is what those headers need.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstddef>
#include <string>
#include <type_traits>

#ifdef TRAPLINE_TENSOR_IS_MAYBE_OWNED
using TensorInPython = c10::MaybeOwned<at::Tensor>;
#else
using TensorInPython = at::Tensor;
#endif

static_assert(std::is_same_v<decltype(THPVariable::cdata), TensorInPython>);
static_assert(offsetof(THPVariable, cdata) == 2 * sizeof(void*));
static_assert(offsetof(python_error, type) == sizeof(void*));
static_assert(offsetof(python_error, value) == 2 * sizeof(void*));
static_assert(offsetof(python_error, traceback) == 3 * sizeof(void*));
static_assert(offsetof(python_error, message) == 4 * sizeof(void*));
static_assert(sizeof(python_error) == 4 * sizeof(void*) + sizeof(std::string));
static_assert(std::is_base_of_v<std::exception, python_error>);
static_assert(std::is_same_v<decltype(THPVariableClass), PyObject*>);
static_assert(std::is_same_v<decltype(ParameterClass), PyObject*>);
static_assert(std::is_same_v<decltype(torch::processErrorMsg), std::string(std::string)>);
static_assert(
    std::is_same_v<decltype(torch::translate_exception_to_python), void(const std::exception_ptr&)>);
