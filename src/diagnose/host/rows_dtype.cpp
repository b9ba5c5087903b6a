// Wrong dtypes: labels, indices, operands of products, inputs of layers.
#include <fmt/format.h>

#include <utility>

#include "diagnose/host/case.hpp"
#include "diagnose/host/dtypes.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kDtype = Cause::kDtypeMismatch;

bool classification(const HostCase& c) {
  return c.functional().find("cross_entropy") == 0 || c.functional().find("nll_loss") == 0;
}

void target_dtype(const HostCase& c, Finding& f) { explain_label_dtype(c, f, c.capture(1)); }

// "expected scalar type A but found B": labels, or operands of a product or a layer.
void scalar_type(const HostCase& c, Finding& f) {
  const std::string& want = c.capture(1);
  const std::string& got = c.capture(2);
  if (classification(c)) return explain_label_dtype(c, f, got);
  // Before PyTorch 1.0 the name of a type says where its tensors are.
  const bool got_gpu = got.starts_with("torch.cuda."), want_gpu = want.starts_with("torch.cuda.");
  if (got_gpu != want_gpu && dtype_name(got) == dtype_name(want)) {
    f.cause = Cause::kDeviceMismatch;
    f.op = c.functional();
    f.summary = fmt::format("{}one tensor is on cpu and another on cuda", f.op.empty() ? "" : f.op + ": ");
    f.fix.push_back(want_gpu ? "move what was made on the CPU: `x.to(\"cuda\")`, or make it there: "
                               "torch.zeros(..., device=y.device)"
                             : "move the model as well as the data: `model.to(\"cuda\")`");
    return;
  }
  const Operand* operand = operand_of_dtype(c, got);
  const Operand* wanted = operand_of_dtype(c, want);
  // Between an input and a weight it is the input that should follow, whichever the message calls "found".
  if (wanted && wanted->user && operand && !operand->user) std::swap(operand, wanted);
  const std::string name = operand ? operand->name : "the argument";
  const std::string goal = wanted ? wanted->dtype : dtype_name(want);
  const std::string have = operand ? operand->dtype : dtype_name(got);
  f.argument = operand ? (operand->role.empty() ? operand->name : operand->role) : "";
  set_tensor(f, operand);
  f.op = c.functional();
  f.summary = fmt::format("{}{} is {} but {} is expected", f.op.empty() ? "" : f.op + ": ", name, have,
                          goal + (wanted ? " (as " + wanted->name + ")" : ""));
  f.fix.push_back(
      fmt::format("use `{}.{}`", operand && operand->user ? operand->name : "x", dtype_cast(goal)));
  if (goal == "int64" && !operand) f.fix.push_back("class labels and indices must be int64: `target.long()`");
  if (have == "float64")
    f.fix.push_back("NumPy arrays are float64: convert once with `torch.from_numpy(a).float()`");
}

// Two operands of one product.
void operand_dtypes(const HostCase& c, Finding& f, std::string_view first, std::string_view second) {
  const Operand* a = operand_of_dtype(c, first);
  const Operand* b = operand_of_dtype(c, second);
  const std::string a_name = a ? a->name : "mat1";
  std::string b_name = b ? b->name : "mat2";
  const bool weight = c.module() && c.module()->attribute("in_features");
  if (weight) f.op = "linear";
  // What the user's line made the input of has the weight's dtype by chance.
  if (weight && b && b->role != "weight") b = nullptr;
  if (weight && (!b || !b->user)) b_name = "the weight of " + c.module()->text();
  f.argument = weight ? "input" : f.argument;
  f.summary =
      fmt::format("{}: {} is {} but {} is {}", f.op, a_name, dtype_name(first), b_name, dtype_name(second));
  set_tensor(f, a);
  if (is_storage_only(first) || is_storage_only(second)) {
    f.fix.push_back(
        fmt::format("PyTorch's products do not compute in {}: cast it up first (`w.to(x.dtype)`), or run the "
                    "layer by the "
                    "library that stored it so",
                    dtype_name(is_storage_only(second) ? second : first)));
    return;
  }
  const std::string cast = ".double()";
  if (a && a->user && a->name.ends_with(cast)) {
    const std::string before = a->name.substr(0, a->name.size() - cast.size());
    f.fix.push_back(fmt::format("use `{}.{}` in place of `{}`", before, dtype_cast(second), a->name));
    return;
  }
  f.fix.push_back(fmt::format("use `{}.{}`", a && a->user ? a->name : "x", dtype_cast(second)));
  if (dtype_name(first) == "float64")
    f.fix.push_back("NumPy arrays are float64: convert once with `torch.from_numpy(a).float()`");
  if (dtype_name(first) == "float16" || dtype_name(first) == "bfloat16" || dtype_name(second) == "float16" ||
      dtype_name(second) == "bfloat16") {
    f.fix.push_back("for mixed precision run the model under `torch.autocast(...)`");
  }
}

void product_dtypes(const HostCase& c, Finding& f) { operand_dtypes(c, f, c.capture(1), c.capture(2)); }

void input_and_weight(const HostCase& c, Finding& f) {
  const std::string& got = c.capture(1);
  const std::string& want = c.capture(3);
  const Operand* input = c.by_role("input");
  const std::string name = input && input->user ? input->name : "x";
  const std::string layer = c.module() ? c.module()->text() : std::string("the layer");
  if (!c.functional().empty()) f.op = c.functional();
  f.summary = fmt::format("{}: the input is {} but the {} of {} is {}", f.op, dtype_name(got), c.capture(2),
                          layer, dtype_name(want));
  set_tensor(f, input);
  if (dtype_name(got) == "uint8") {
    f.fix.push_back(fmt::format("images are bytes: use `{}.float() / 255`", name));
  } else {
    f.fix.push_back(fmt::format("use `{}.{}`", name, dtype_cast(want)));
  }
  if (dtype_name(want) != "float32")
    f.fix.push_back(fmt::format("or make the model float32: `model.float()`"));
}

void mixed_norm(const HostCase& c, Finding& f) {
  const Operand* input = c.by_role("input");
  const std::string name = input && input->user ? input->name : "x";
  f.op = c.functional().empty() ? "normalization" : c.functional();
  f.summary = fmt::format("{}: the input{} and the parameters of {} have different dtypes", f.op,
                          input ? " (" + input->dtype + ")" : "",
                          c.module() ? c.module()->text() : std::string("the layer"));
  set_tensor(f, input);
  f.fix.push_back(
      fmt::format("use `{}.float()`, the dtype of the parameters, or `model.to({}.dtype)`", name, name));
}

void recurrent(const HostCase& c, Finding& f) {
  const Operand* input = c.by_role("input");
  const std::string name = input && input->user ? input->name : "x";
  f.op = c.module() ? c.module()->type : "RNN";
  f.summary = fmt::format("{}: the input is {} but the weights are {}", f.op, dtype_name(c.capture(1)),
                          dtype_name(c.capture(2)));
  set_tensor(f, input);
  f.fix.push_back(fmt::format("use `{}.{}`", name, dtype_cast(c.capture(2))));
}

void loss_dtype(const HostCase& c, Finding& f) {
  const std::string& got = c.capture(1);
  const std::string& want = c.capture(2);
  const Operand* target = c.by_role("target");
  if (target == nullptr) target = operand_of_dtype(c, got);
  const std::string name = target ? target->name : "target";
  if (!c.functional().empty()) f.op = c.functional();
  f.summary = fmt::format("{}{} is {} but must be {} as the other side", f.op.empty() ? "" : f.op + ": ",
                          name, dtype_name(got), dtype_name(want));
  set_tensor(f, target);
  f.fix.push_back(fmt::format("use `{}.{}`", name, dtype_cast(want)));
}

void result_cast(const HostCase& c, Finding& f) {
  const std::string& result = c.capture(1);
  const std::string& output = c.capture(2);
  const Operand* target = operand_of_dtype(c, output);
  const bool loss = c.functional().find("binary_cross_entropy") == 0;
  const std::string name = loss ? c.name("target", "target") : target ? target->name : "x";
  if (loss) f.op = c.functional();
  f.argument = loss ? "target" : "";
  set_tensor(f, target);
  f.summary = loss ? fmt::format("{}: {} is {} but must be floating point", f.op, name, dtype_name(output))
                   : fmt::format("a {} result cannot be written into {}, which is {}", dtype_name(result),
                                 name, dtype_name(output));
  f.fix.push_back(fmt::format("use `{}.{}`", name, dtype_cast(result)));
  if (!loss) f.fix.push_back("or write the result to a new tensor instead of in place (`x = x + y`)");
}

bool is_floating(const Operand& operand) { return operand.dtype.find("float") != std::string::npos; }

// cross_entropy(labels, logits): the integers arrived where the logits go, and the other way round.
bool swapped(const HostCase& c, Finding& f) {
  const Operand* input = c.by_role("input");
  const Operand* target = c.by_role("target");
  if (!classification(c) || !input || !target || is_floating(*input) || !is_floating(*target)) return false;
  f.argument = "input";
  f.op = c.functional();
  set_tensor(f, input);
  const std::string labels = input->user ? input->name : "labels";
  const std::string logits = target->user ? target->name : "logits";
  f.summary =
      fmt::format("{}: the arguments are the wrong way round: {} is {} {}, and {} is {} {}", f.op, labels,
                  input->dtype, to_text(input->shape), logits, target->dtype, to_text(target->shape));
  f.fix.push_back(fmt::format("the logits go first, the labels second: `({}, {})`", logits, labels));
  return true;
}

void not_implemented(const HostCase& c, Finding& f) {
  if (swapped(c, f)) return;
  const std::string& kernel = c.capture(1);
  const std::string& got = c.capture(2);
  f.summary = fmt::format("{} does not take {}", kernel, dtype_name(got));
  const Operand* operand = operand_of_dtype(c, got);
  set_tensor(f, operand);
  const std::string name = operand ? operand->name : "x";
  if (kernel.find("nll_loss") == 0) return explain_label_dtype(c, f, got);
  f.op = c.functional().empty() ? kernel.substr(0, kernel.find("_cpu")) : c.functional();
  if (kernel.find("bincount") == 0) {
    f.fix.push_back(fmt::format("use `{}.long()`", name));
    return;
  }
  f.summary = fmt::format("{}: {} is {}, which the operation does not take", f.op,
                          operand ? operand->name : "the input", dtype_name(got));
  f.fix.push_back(fmt::format("use `{}.float()`", name));
}

// An operation that has a kernel for quantized tensors only, or none for them.
void quantized(const HostCase& c, Finding& f) {
  const bool wanted = !c.capture(1).empty();
  const std::string& op = c.capture(wanted ? 2 : 3);
  f.op = op;
  const Operand* x = c.operands().empty() ? nullptr : &c.operands().front();
  set_tensor(f, x);
  const std::string name = x ? x->name : "x";
  if (!wanted) {
    f.summary = fmt::format("{}: {} is quantized, and the operation has no kernel for quantized tensors", op,
                            x ? name : "the input");
    f.fix.push_back(
        fmt::format("dequantize it before the operation: DeQuantStub() in the model, or {}.dequantize(); "
                    "additions of quantized "
                    "tensors go through torch.ao.nn.quantized.FloatFunctional",
                    name));
    return;
  }
  const bool layer = c.module() && !c.module()->name.empty();
  f.summary = fmt::format("quantized {}: {} is {}, but {} is quantized and takes a quantized tensor", op,
                          x ? name : "the input", x && !x->dtype.empty() ? x->dtype : "not quantized",
                          layer ? layer_name(c.module()->name, '`') : "the layer");
  f.fix.push_back(
      "quantize it before the layer: torch.ao.quantization.QuantStub() in the model, called at the start of "
      "forward, "
      "before prepare and convert (DeQuantStub() behind the last quantized layer)");
}

void needs_floating(const HostCase& c, Finding& f) {
  if (c.message().starts_with("mean")) f.op = "mean";
  const Operand* x = c.capture(1).empty() ? nullptr : operand_of_dtype(c, c.capture(1));
  set_tensor(f, x);
  f.summary = fmt::format("{}: {} is {}, but only floating point will do", f.op, x ? x->name : "the input",
                          c.capture(1).empty() ? "of an integer dtype" : dtype_name(c.capture(1)));
  f.fix.push_back(fmt::format("use `{}.float()`", x ? x->name : "x"));
}

}  // namespace

std::span<const HostErrorRow> dtype_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"dtype.target",
       "RuntimeError",
       R"(expected target dtype to be Long or Byte, but got (\w+))",
       "expected target dtype to be Long",
       kDtype,
       "cross_entropy",
       "target",
       target_dtype,
       {"expected target dtype to be Long or Byte, but got Float",
        "expected target dtype to be Long or Byte, but got Int"}},
      {"dtype.scalar_type",
       "RuntimeError",
       R"([Ee]xpected (?:object of )?scalar type (\w+) but (?:got|found) (?:scalar type )?(\w+))",
       "expected scalar type|expected object of scalar type",
       kDtype,
       "",
       "",
       scalar_type,
       {"expected scalar type Float but found Double", "expected scalar type Long but found Float",
        "Expected object of scalar type Long but got scalar type Float for argument #2 'target' in "
        "call to _thnn_nll_loss_forward"},
       nullptr,
       {.refine = Refine::kOpOfFrames}},
      {"dtype.type_old",
       "RuntimeError",
       R"(Expected object of type (torch\.(?:cuda\.|sparse\.)?\w+Tensor) but found type (torch\.(?:cuda\.|sparse\.)?\w+Tensor) for argument)",
       "Expected object of type torch",
       kDtype,
       "",
       "",
       scalar_type,
       {"Expected object of type torch.LongTensor but found type torch.FloatTensor for argument #2 "
        "'target'"}},
      {"dtype.mat",
       "RuntimeError",
       R"(mat1 and mat2 must have the same dtype, but got (\w+) and (\w+))",
       "must have the same dtype",
       kDtype,
       "matmul",
       "mat2",
       product_dtypes,
       {"mat1 and mat2 must have the same dtype, but got Double and Float",
        "mat1 and mat2 must have the same dtype, but got Half and Float8_e4m3fn"},
       nullptr,
       {.refine = Refine::kOpOfFrames}},
      {"dtype.mat_old",
       "RuntimeError",
       R"(expected (?:m1 and m2|mat1 and mat2|mat and vec|batch1 and batch2) to have the same dtype, but got: ([\w: ]+) != ([\w: ]+))",
       "to have the same dtype, but got",
       kDtype,
       "matmul",
       "mat2",
       product_dtypes,
       {"expected m1 and m2 to have the same dtype, but got: float != double"}},
      {"dtype.addmv",
       "RuntimeError",
       R"(addmv input tensors must have the same dtype, but got \w+, (\w+), and (\w+))",
       "addmv input tensors must have the same dtype",
       kDtype,
       "mv",
       "vec",
       [](const HostCase& c, Finding& f) {
         // The message's third is the vector, its second repeats the result's dtype.
         f.summary = "mv: the matrix and the vector have different dtypes";
         f.fix.push_back(fmt::format("bring both to one dtype: `.{}`", dtype_cast("Float")));
         (void)c;
       },
       {"addmv input tensors must have the same dtype, but got Double, Float, and Double"}},
      {"dtype.dot",
       "RuntimeError",
       R"(dot : expected both vectors to have same dtype, but found (\w+) and (\w+))",
       "expected both vectors to have same dtype",
       kDtype,
       "dot",
       "tensor",
       product_dtypes,
       {"dot : expected both vectors to have same dtype, but found Float and Double"}},
      {"dtype.input_bias",
       "RuntimeError",
       R"(Input type \(([a-z][\w: ]*)\) and (bias|weight) type \(([a-z][\w: ]*)\) should be the same)",
       "Input type...and weight type...should be the same|Input type...and bias type...should be the same",
       kDtype,
       "conv",
       "input",
       input_and_weight,
       {"Input type (double) and bias type (float) should be the same",
        "Input type (unsigned char) and bias type (float) should be the same"}},
      {"dtype.input_weight",
       "RuntimeError",
       // LibTorch names types as C++ does.
       R"(Input type \((torch\.(?:cuda\.)?\w+Tensor|(?:CPU|CUDA)\w+Type|Variable\[\w+Type\])\) and (bias|weight) type \((torch\.(?:cuda\.)?\w+Tensor|(?:CPU|CUDA)\w+Type|Variable\[\w+Type\])\) should be the same)",
       "Input type (C...and weight type (C...should be the same|Input type (C...and bias type (C...should be "
       "the "
       "same|Input type (Variable[...and weight type (Variable[...should be the same|Input type (torch...and "
       "weight type (torch...should be the same|Input type (torch...and bias type "
       "(torch...should be the same|Input type (torch.cuda...and weight type (torch.cuda...should be the "
       "same|Input type (torch.cuda...and bias type (torch.cuda...should be the same",
       kDtype,
       "conv",
       "input",
       input_and_weight,
       {"Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be the "
        "same",
        "Input type (torch.DoubleTensor) and weight type (torch.FloatTensor) should be the same",
        "Input type (CUDAHalfType) and weight type (CUDAFloatType) should be the same",
        "Input type (Variable[CPUDoubleType]) and weight type (Variable[CPUFloatType]) should be the same"}},
      {"dtype.norm",
       "RuntimeError",
       R"(mixed dtype \(CPU\): (?:all inputs must share same datatype|expect parameter to have scalar type of Float))",
       "mixed dtype (CPU)",
       kDtype,
       "normalization",
       "input",
       mixed_norm,
       {"mixed dtype (CPU): all inputs must share same datatype.",
        "mixed dtype (CPU): expect parameter to have scalar type of Float"}},
      {"dtype.rnn",
       "ValueError",
       R"(RNN input dtype \((torch\.\w+)\) does not match weight dtype \((torch\.\w+)\))",
       "does not match weight dtype",
       kDtype,
       "RNN",
       "input",
       recurrent,
       {"RNN input dtype (torch.float64) does not match weight dtype (torch.float32). Convert input: "
        "input.to(torch.float32), or convert "
        "model: model.to(torch.float64)"}},
      {"dtype.loss",
       "RuntimeError",
       R"(Found dtype (\w+) but expected (\w+))",
       "Found dtype...but expected",
       kDtype,
       "",
       "target",
       loss_dtype,
       {"Found dtype Long but expected Float", "Found dtype Double but expected Float"}},
      {"dtype.result",
       "RuntimeError",
       R"(result type (\w+) can't be cast to the desired output type (\w+))",
       "can't be cast to the desired output type",
       kDtype,
       "",
       "",
       result_cast,
       {"result type Float can't be cast to the desired output type Long"}},
      {"dtype.kernel",
       "NotImplementedError|RuntimeError",
       R"re("(\w*(?:softmax|nll_loss|mse|smooth_l1|huber|binary_cross_entropy|addmm|bincount|cross_entropy)\w*)" not implemented for '(\w+)')re",
       "not implemented for",
       kDtype,
       "",
       "",
       not_implemented,
       {"\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'",
        "\"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'",
        "\"nll_loss_out_frame\" not implemented for 'Half'", "\"bincount_cpu\" not implemented for 'Float'",
        "\"mse_cpu\" not implemented for 'Long'", "\"addmm_impl_cpu_\" not implemented for 'Half'"},
       nullptr,
       {.refine = Refine::kOpOfFrames}},
      {"dtype.quantized",
       "NotImplementedError|RuntimeError",
       R"re(Could not run '(?:(quantized)::(\w+)(?:\.\w+)?' with arguments from the '(?:CPU|CUDA)'|\w+::(\w+)(?:\.\w+)?' with arguments from the 'Quantized(?:CPU|CUDA)') backend)re",
       "Could not run 'quantized::...with arguments from the|with arguments from the 'Quantized",
       kDtype,
       "",
       "input",
       quantized,
       {"Could not run 'quantized::conv2d.new' with arguments from the 'CPU' backend. This could be because "
        "the "
        "operator doesn't exist for this backend",
        "Could not run 'aten::add.out' with arguments from the 'QuantizedCPU' backend. This could be "
        "because"}},
      {"dtype.mean",
       "RuntimeError",
       R"(mean\(\): (?:could not infer output dtype\. )?[Ii]nput dtype (?:must|should) be either (?:a )?floating point or complex(?: dtypes?)?\.\s+Got:? (\w+))",
       "floating point or complex",
       kDtype,
       "mean",
       "input",
       needs_floating,
       {"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
        "Got: Long",
        "mean(): input dtype should be either floating point or complex dtypes. Got Long instead."}},
      {"dtype.requires_grad",
       "RuntimeError",
       R"(only Tensors of floating point (?:and complex )?dtype can require gradients)",
       "dtype can require gradients",
       kDtype,
       "requires_grad_",
       "self",
       needs_floating,
       {"only Tensors of floating point dtype can require gradients",
        "only Tensors of floating point and complex dtype can require gradients"}},
      {"dtype.attention",
       "RuntimeError",
       R"(Expected query, key, and value to have the same dtype, but got query\.dtype: ([\w:]+) key\.dtype: ([\w:]+) and value\.dtype: ([\w:]+) instead)",
       "query, key, and value to have the same dtype",
       kDtype,
       "scaled_dot_product_attention",
       "query",
       [](const HostCase& c, Finding& f) {
         f.summary = fmt::format(
             "scaled_dot_product_attention: query is {}, key {} and value {}; they must be the same",
             dtype_name(c.capture(1)), dtype_name(c.capture(2)), dtype_name(c.capture(3)));
         f.fix.push_back(
             "use `key.to(query.dtype)` and `value.to(query.dtype)`, or run under `torch.autocast(...)`");
       },
       {"Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: "
        "c10::Half and value.dtype: float instead."}},
      {"dtype.multinomial",
       "RuntimeError",
       R"(multinomial only supports floating-point dtypes for input, got: (\w+))",
       "multinomial only supports floating-point dtypes",
       kDtype,
       "multinomial",
       "input",
       needs_floating,
       {"multinomial only supports floating-point dtypes for input, got: Long"}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
