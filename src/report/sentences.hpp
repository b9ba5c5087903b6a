// Parts of a finding as short pieces of English. What they return still holds the program's own bytes: clean
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/finding.hpp"

namespace trapline {

// train.py:41 in step; Cell In[4], line 3. A file below `directory` is named relative to it: shorter, and
// still clickable.
std::string place_text(const Frame& frame, std::string_view directory = {});
std::string tensor_text(const TensorInfo& tensor);  // int64 [32] on cuda:0
std::string found_text(const Finding& finding);     // target[3] is 195, in int64 [32] on cpu
// 1 of 32; min 0, max 195; of an expanded tensor what was looked at, and how often it stands there
std::string count_text(const Element& element, const std::vector<std::int64_t>& shape = {});
std::string valid_text(const Valid& valid);  // [0, 195) or -100
// "195 (12 times), -1": the offending values, when there is more than one kind or count; else empty.
std::string values_text(const Finding& finding);
std::string classes_text(const Classes& classes);
std::string layer_text(const Layer& layer);     // "fc.5" Linear(out_features=195): needs 196
std::string sample_text(const Sample& sample);  // train_set[4711] (batch 12, row 3)
// 1200, epoch 2.4, validation (Trainer, bert-tiny), after the name of what comes first: "step".
std::string_view progress_label(const Progress& progress);
std::string progress_text(const Progress& progress);
std::string kernel_text(const Kernel& kernel);     // block [0,0,0], thread [31,0,0] and 1 more
std::string process_text(const Process& process);  // rank 2, cuda:1, pid 4242 on gpu7
// "gradient norm: 1.2 -> 3e+04 -> inf over steps 401-407", and the loss likewise; none where fewer than two
// numbers are known.
std::vector<std::string> last_steps_texts(const Finding& finding);
std::string operation_text(const Operation& operation);  // embedding(weight float32 [100, 16], ...)

}  // namespace trapline
