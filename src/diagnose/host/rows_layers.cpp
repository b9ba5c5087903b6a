// Convolution, pooling, normalization, recurrent, attention layers and state_dict: shapes that do not fit.
#include <fmt/format.h>

#include "diagnose/host/case.hpp"
#include "diagnose/host/rows.hpp"

namespace trapline::diagnose {
namespace {

constexpr auto kShape = Cause::kShapeMismatch;

// "`features.0` Conv2d(3, 16)" or the fallback.
std::string layer_text(const HostCase& c, std::string_view fallback) {
  return c.module() ? c.module()->text() : std::string(fallback);
}

void set_layer(const HostCase& c, Finding& f, std::string_view attribute, std::int64_t value,
               std::int64_t needed) {
  if (c.module() && c.module()->attribute(attribute)) {
    f.layer = Layer{c.module()->name, c.module()->type, std::string(attribute), value, needed};
  }
}

std::string class_name(const HostCase& c, std::string_view fallback) {
  return c.module() && !c.module()->type.empty() ? c.module()->type : std::string(fallback);
}

void convolution(const HostCase& c, Finding& f) {
  const Shape weight = c.shape(1), input = c.shape(2);
  const std::int64_t want = c.number(3), got = c.number(4);
  const bool transposed = c.message().starts_with("Given transposed=1");
  if (transposed) f.op = "conv_transpose";
  f.summary = fmt::format("{}: the input {} has {} channels but {} takes {}", f.op, to_text(input), got,
                          layer_text(c, "the weight " + to_text(weight)), want);
  const Operand* operand = c.find("input", input);
  f.tensor = TensorInfo{input, operand ? operand->dtype : "", operand ? operand->device : ""};
  set_layer(c, f, "in_channels", want, got);
  const std::string name = operand && operand->user ? operand->name : "x";
  if (input.size() >= 3 && input.back() == want && got != want) {
    std::string order = "0, " + std::to_string(input.size() - 1);
    for (std::size_t d = 1; d + 1 < input.size(); ++d) order += ", " + std::to_string(d);
    f.fix.push_back(fmt::format("the channels come last in {}: use `{}.permute({})`", name, name, order));
  } else if (input.size() == 4 && input[0] == 1 && input[1] == want) {
    f.fix.push_back(fmt::format("use `{}.squeeze(0)`", name));
  }
  if (got == 1 && want == 3)
    f.fix.push_back(fmt::format("grey images: load them as RGB, or use `{}.expand(-1, 3, -1, -1)`", name));
  if (got == 4 && want == 3)
    f.fix.push_back(fmt::format("RGBA images: convert them to RGB, or use `{}[:, :3]`", name));
  const std::string call =
      fmt::format("{}({}, {}, ...)", class_name(c, transposed ? "ConvTranspose2d" : "Conv2d"), got,
                  weight.size() < 2 ? 0 : weight[transposed ? 1 : 0]);
  f.fix.push_back(c.make_fit(call, name));
}

void convolution_dims(const HostCase& c, Finding& f) {
  const Shape input = c.shape(4);
  f.op = c.capture(3);
  f.summary = fmt::format("{}: the input {} must have {} dimensions (or {} without a batch)", f.op,
                          to_text(input), c.number(2), c.number(1));
  const std::string name = c.name("input", input, "x");
  if (static_cast<std::int64_t>(input.size()) + 2 == c.number(2)) {
    f.fix.push_back(fmt::format("add batch and channel: `{}[None, None]`", name));
  } else if (static_cast<std::int64_t>(input.size()) + 1 == c.number(1)) {
    f.fix.push_back(fmt::format("add the channel: `{}.unsqueeze(0)`", name));
  }
  f.fix.push_back("input is [N, C, ...]: batch, channels, then the sizes");
}

void kernel_size(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: the kernel ({}) is larger than its padded input ({})",
                          class_name(c, "convolution"), c.capture(2), c.capture(1));
  f.fix.push_back("feed larger images, pad, or pool less before this layer");
}

void pooled_away(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: an input of {} leaves an output of {}", class_name(c, "pooling"), c.capture(1),
                          c.capture(2));
  f.fix.push_back(
      "feed larger images or use fewer pooling or strided layers; `nn.AdaptiveAvgPool2d(1)` takes any size");
}

void layer_norm(const HostCase& c, Finding& f) {
  const Shape want = c.shape(1), got = c.shape(2);
  f.op = c.functional() == "rms_norm" ? "rms_norm" : "layer_norm";
  f.summary = fmt::format("{}: {} normalizes {} but the input is {}", f.op, layer_text(c, "the layer"),
                          to_text(want), to_text(got));
  const Operand* operand = c.find("input", got);
  f.tensor = TensorInfo{got, operand ? operand->dtype : "", operand ? operand->device : ""};
  const std::string name = operand && operand->user ? operand->name : "x";
  if (want.size() == 1) {
    for (std::size_t d = 0; d + 1 < got.size(); ++d) {
      if (got[d] == want[0]) {
        f.fix.push_back(fmt::format("dimension {} has {}: use `{}.movedim({}, -1)`", d, want[0], name, d));
        break;
      }
    }
  }
  if (got.size() >= want.size()) {
    const Shape last(got.end() - static_cast<std::ptrdiff_t>(want.size()), got.end());
    const std::string sizes = last.size() == 1 ? std::to_string(last[0]) : to_text(last);
    f.fix.push_back(c.make_fit(fmt::format("{}({})", class_name(c, "nn.LayerNorm"), sizes), name));
  }
  if (f.fix.empty()) f.fix.push_back(fmt::format("give an input that ends in {}", to_text(want)));
}

void running_statistics(const HostCase& c, Finding& f) {
  const std::int64_t got = c.number(2), want = c.number(3);
  f.summary = fmt::format("batch_norm: the input has {} channels but {} has {}", got,
                          layer_text(c, "the layer"), want);
  f.argument = "input";
  set_layer(c, f, "num_features", want, got);
  if (const Operand* input = c.by_role("input")) {
    f.tensor = TensorInfo{input->shape, input->dtype, input->device};
    if (!input->shape.empty() && input->shape.size() > 2 && input->shape.back() == want) {
      f.fix.push_back(
          fmt::format("the channels come last: use `{}.movedim(-1, 1)`", input->user ? input->name : "x"));
    }
  }
  f.fix.push_back(c.make_fit(fmt::format("{}({})", class_name(c, "nn.BatchNorm"), got), "an input"));
}

void norm_features(const HostCase& c, Finding& f) {
  f.summary = fmt::format("{}: the input has {} channels but {} takes {}", class_name(c, "instance_norm"),
                          c.number(2), layer_text(c, "the layer"), c.number(1));
  set_layer(c, f, "num_features", c.number(1), c.number(2));
  f.fix.push_back(
      c.make_fit(fmt::format("{}({})", class_name(c, "nn.InstanceNorm2d"), c.number(2)), "an input"));
}

void norm_dims(const HostCase& c, Finding& f) {
  const std::string type = class_name(c, "the layer");
  f.op = type;
  f.summary = fmt::format("{}: the input must be {} but is {}D", layer_text(c, "the layer"), c.capture(1),
                          c.number(2));
  const std::int64_t dims = c.number(2);
  if (type.starts_with("BatchNorm") || type.starts_with("InstanceNorm")) {
    const std::string family = type.substr(0, type.size() - 2);
    if (dims >= 2 && dims <= 5)
      f.fix.push_back(
          fmt::format("for {} dimensions use `nn.{}{}d`", dims, family, dims <= 3 ? 1 : dims - 2));
  }
  f.fix.push_back("check a `flatten` or `squeeze` before this layer");
}

void one_value(const HostCase& c, Finding& f) {
  f.summary = fmt::format("batch_norm: one value per channel ({}) gives no statistics to train with",
                          to_text(c.shape(1)));
  f.fix.push_back("a last batch of one sample: pass `drop_last=True` to the DataLoader");
  f.fix.push_back("for inference call `model.eval()` first");
}

void groups(const HostCase& c, Finding& f) {
  f.summary = fmt::format("group_norm: {} channels cannot be divided into {} groups",
                          c.shape(1).size() > 1 ? c.shape(1)[1] : 0, c.number(2));
  f.fix.push_back("choose num_groups so that it divides the number of channels");
}

void recurrent_input(const HostCase& c, Finding& f) {
  const std::int64_t want = c.number(1), got = c.number(2);
  const std::string type = class_name(c, "RNN");
  f.op = type;
  f.summary =
      fmt::format("{}: the input has {} features but input_size is {}", layer_text(c, type), got, want);
  set_layer(c, f, "input_size", want, got);
  if (const Operand* input = c.by_role("input")) {
    f.tensor = TensorInfo{input->shape, input->dtype, input->device};
    for (std::size_t d = 0; d + 1 < input->shape.size(); ++d) {
      if (input->shape[d] == want) {
        f.fix.push_back(fmt::format("dimension {} has {}: use `{}.movedim({}, -1)`", d, want,
                                    input->user ? input->name : "x", d));
        break;
      }
    }
  }
  f.fix.push_back(c.make_fit(fmt::format("nn.{}({}, ...)", type, got), "an input"));
}

void recurrent_cell(const HostCase& c, Finding& f) {
  const std::int64_t got = c.number(1), want = c.number(2);
  const std::string type = class_name(c, "RNNCell");
  f.op = type;
  f.summary =
      fmt::format("{}: the input has {} features but input_size is {}", layer_text(c, type), got, want);
  set_layer(c, f, "input_size", want, got);
  f.fix.push_back(c.make_fit(fmt::format("nn.{}({}, ...)", type, got), "an input"));
}

void hidden_size(const HostCase& c, Finding& f) {
  const std::string type = class_name(c, "RNN");
  const Shape want = c.shape(2), got = c.shape(3);
  f.op = type;
  f.argument = c.capture(1);
  f.summary = fmt::format("{}: {} has shape {} but must have {} (layers x directions, batch, hidden_size)",
                          layer_text(c, type), c.capture(1), to_text(got), to_text(want));
  if (want.size() == 3 && got.size() == 3 && want[1] != got[1]) {
    f.fix.push_back(
        "the batch size differs: make the hidden state from `x.size(0)` (batch_first) or `x.size(1)`, or "
        "leave it out");
  }
  f.fix.push_back(fmt::format("make it with `torch.zeros({}, device=x.device)`",
                              to_text(want).substr(1, to_text(want).size() - 2)));
}

void embedding_dimension(const HostCase& c, Finding& f) {
  f.summary = fmt::format("multi_head_attention: {} has embed_dim {} but the query has {} features",
                          layer_text(c, "the layer"), c.number(1), c.number(2));
  f.fix.push_back(
      fmt::format("give the query {} features in its last dimension, or make the layer with embed_dim={}",
                  c.number(1), c.number(2)));
}

void empty_length(const HostCase& c, Finding& f) {
  const Operand* given = c.by_role("lengths");
  const std::string name = given != nullptr && given->user ? given->name : "lengths";
  f.summary = fmt::format("pack_padded_sequence: an element of {} is 0: a sample is empty", name);
  f.fix.push_back("leave empty samples out of the data set, or give them one padding element and length 1");
  f.fix.push_back(fmt::format("to find it: print(({} <= 0).nonzero())", name));
}

void attention_mask(const HostCase& c, Finding& f) {
  f.summary = fmt::format("multi_head_attention: attn_mask has shape {} but must have {}",
                          to_text(c.shape(1)), to_text(c.shape(2)));
  const Shape given = c.shape(1), wanted = c.shape(2);
  if (given.size() == 2 && wanted.size() == 2 && given[0] != wanted[0] && given[1] == wanted[1]) {
    f.fix.push_back(
        "if it has a row for each sample and marks its padding, pass it as `key_padding_mask=`: True where "
        "padding is");
  }
  f.fix.push_back(
      fmt::format("make a mask of shape {}: queries x keys; check `batch_first`", to_text(wanted)));
}

void state_dict(const HostCase& c, Finding& f) {
  const std::string& key = c.capture(1);
  const Shape saved = c.shape(2), model = c.shape(3);
  f.argument = key;
  f.tensor = TensorInfo{saved, "", ""};
  f.summary = fmt::format("load_state_dict: `{}` has shape {} in the checkpoint but {} in the model", key,
                          to_text(saved), to_text(model));
  const std::string layer = key.substr(0, key.rfind('.') == std::string::npos ? 0 : key.rfind('.'));
  if (!saved.empty() && model.size() == saved.size() && saved[0] != model[0]) {
    f.fix.push_back(fmt::format("build the model with the checkpoint's size: {} instead of {} in {}",
                                saved[0], model[0], layer.empty() ? "that layer" : "`" + layer + "`"));
  } else {
    f.fix.push_back(fmt::format("build the model with the sizes of the checkpoint: {}", to_text(saved)));
  }
  f.fix.push_back(fmt::format(
      "to train a new head, drop it first: remove the keys that start with `{}` and pass `strict=False`",
      layer.empty() ? key : layer));
}

}  // namespace

std::span<const HostErrorRow> layer_rows() {
  static const auto* const rows = new std::vector<HostErrorRow>{
      {"conv.channels",
       "RuntimeError",
       R"(Given (?:groups|transposed)=\d+, weight of size \[([\d, ]*)\], expected input\[([\d, ]*)\] to have (\d+) channels, but got (\d+) channels instead)",
       "channels, but got",
       kShape,
       "conv",
       "input",
       convolution,
       {"Given groups=1, weight of size [16, 3, 3, 3], expected input[8, 1, 28, 28] to have 3 channels, but "
        "got 1 channels instead",
        "Given transposed=1, weight of size [3, 16, 3, 3], expected input[8, 1, 28, 28] to have 3 channels, "
        "but got 1 channels instead"}},
      {"conv.dims",
       "RuntimeError",
       R"(Expected (\d)D \(unbatched\) or (\d)D \(batched\) input to (\w+), but got input of size: \[([\d, ]*)\])",
       "(batched) input to",
       kShape,
       "conv",
       "input",
       convolution_dims,
       {"Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [28, 28]"}},
      {"conv.kernel",
       "RuntimeError",
       R"(Calculated padded input size per channel: \(([\d x]+)\)\. Kernel size: \(([\d x]+)\)\. Kernel size can't be greater than actual input size)",
       "Kernel size can't be greater than actual input size",
       kShape,
       "conv",
       "input",
       kernel_size,
       {"Calculated padded input size per channel: (3 x 3). Kernel size: (5 x 5). Kernel size can't be "
        "greater than actual input size"}},
      {"pool.output",
       "RuntimeError",
       R"(Given input size: \(([\dx]+)\)\. Calculated output size: \(([-\dx]+)\)\. Output size is too small)",
       "Output size is too small",
       kShape,
       "pool",
       "input",
       pooled_away,
       {"Given input size: (3x1x1). Calculated output size: (3x0x0). Output size is too small"}},
      {"layer_norm.shape",
       "RuntimeError",
       R"(Given normalized_shape=\[([\d, ]*)\], expected input with shape \[\*(?:, )?[\d, ]*\], but got input of size\s?\[([\d, ]*)\])",
       "expected input with shape",
       kShape,
       "layer_norm",
       "input",
       layer_norm,
       {"Given normalized_shape=[10], expected input with shape [*, 10], but got input of size[4, 12]",
        "Given normalized_shape=[10], expected input with shape [*10], but got input of size[4, 12]"}},
      {"batch_norm.channels",
       "RuntimeError",
       R"((running_mean|running_var|weight|bias) should contain (\d+) elements not (\d+))",
       "running_mean should contain|running_var should contain|weight should contain|bias should contain",
       kShape,
       "batch_norm",
       "input",
       running_statistics,
       {"running_mean should contain 12 elements not 10"}},
      {"norm.features",
       "ValueError",
       R"(expected input's size at dim=\d+ to match num_features \((\d+)\), but got: (\d+))",
       "to match num_features",
       kShape,
       "instance_norm",
       "input",
       norm_features,
       {"expected input's size at dim=1 to match num_features (4), but got: 5."}},
      {"norm.dims",
       "ValueError",
       R"(expected (\d+D(?: or \d+D)*) input \(got (\d+)D input\))",
       "expected...D input (got",
       kShape,
       "batch_norm",
       "input",
       norm_dims,
       {"expected 4D input (got 2D input)", "expected 2D or 3D input (got 4D input)"}},
      {"batch_norm.one_value",
       "ValueError",
       R"(Expected more than 1 (?:value per channel|spatial element) when training, got input size torch\.Size\(\[([\d, ]*)\]\))",
       "when training, got input size",
       kShape,
       "batch_norm",
       "input",
       one_value,
       {"Expected more than 1 value per channel when training, got input size torch.Size([1, 10])"}},
      {"group_norm.groups",
       "RuntimeError",
       R"(Expected number of channels in input to be divisible by num_groups, but got input of shape \[([\d, ]*)\] and num_groups\s?=\s?(\d+))",
       "to be divisible by num_groups",
       kShape,
       "group_norm",
       "num_groups",
       groups,
       {"Expected number of channels in input to be divisible by num_groups, but got input of shape [4, 10, "
        "3] and num_groups=4"}},
      {"rnn.input",
       "RuntimeError",
       R"(input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+))",
       "must be equal to input_size",
       kShape,
       "rnn",
       "input",
       recurrent_input,
       {"input.size(-1) must be equal to input_size. Expected 3, got 5"}},
      {"rnn_cell.input",
       "RuntimeError",
       R"(input has inconsistent input_size: got (\d+),? expected (\d+))",
       "input has inconsistent input_size",
       kShape,
       "rnn",
       "input",
       recurrent_cell,
       {"input has inconsistent input_size: got 5 expected 3"}},
      {"rnn.hidden",
       "RuntimeError",
       R"(Expected (hidden(?:\[\d\])?|hx|cx) size \(([\d, ]*)\), got \[([\d, ]*)\])",
       "Expected hidden|Expected hx size|Expected cx size",
       kShape,
       "rnn",
       "hx",
       hidden_size,
       {"Expected hidden[0] size (1, 1, 4), got [1, 2, 4]"}},
      {"rnn.empty_length",
       "RuntimeError",
       R"(Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0)",
       "Length of all samples has to be greater than 0",
       kShape,
       "pack_padded_sequence",
       "lengths",
       empty_length,
       {"Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"}},
      {"attention.embedding",
       "AssertionError",
       R"(was expecting embedding dimension of (\d+), but got (\d+))",
       "was expecting embedding dimension of",
       kShape,
       "multi_head_attention",
       "query",
       embedding_dimension,
       {"was expecting embedding dimension of 8, but got 6"}},
      {"attention.mask",
       "RuntimeError",
       R"(The shape of the [23]D attn_mask is torch\.Size\(\[([\d, ]*)\]\), but should be \(([\d, ]*)\))",
       "attn_mask is torch.Size",
       kShape,
       "multi_head_attention",
       "attn_mask",
       attention_mask,
       {"The shape of the 2D attn_mask is torch.Size([4, 4]), but should be (3, 3)."}},
      {"state_dict.size",
       "RuntimeError",
       R"((?:Error\(s\) in loading state_dict for \w+:.*?)?size mismatch for ([\w.]+): copying a param with shape (?:torch\.Size\()?\[([\d, ]*)\]\)? from checkpoint, the shape in current model is (?:torch\.Size\()?\[([\d, ]*)\]\)?)",
       "the shape in current model is",
       kShape,
       "load_state_dict",
       "state_dict",
       state_dict,
       {"Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: copying a param with shape "
        "torch.Size([5, 3]) from "
        "checkpoint, the shape in current model is torch.Size([4, 3]).\n\tsize mismatch for bias: copying a "
        "param with shape "
        "torch.Size([5]) from checkpoint, the shape in current model is torch.Size([4])."}},
  };
  return *rows;
}

}  // namespace trapline::diagnose
