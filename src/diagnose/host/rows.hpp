// The families of the host-error table; one file each.
#pragma once

#include <span>

#include "diagnose/host/case.hpp"
#include "diagnose/host/errors.hpp"

namespace trapline::diagnose {

std::span<const HostErrorRow> position_rows();   // text beyond the position table
std::span<const HostErrorRow> loss_rows();       // sizes in losses
std::span<const HostErrorRow> ctc_rows();        // those of ctc_loss
std::span<const HostErrorRow> product_rows();    // matmul, linear, bmm, einsum
std::span<const HostErrorRow> broadcast_rows();  // broadcasting, expand
std::span<const HostErrorRow> layout_rows();     // view, cat, stack, split
std::span<const HostErrorRow> layer_rows();  // convolution, normalization, recurrent, attention, state_dict
std::span<const HostErrorRow> backward_rows();     // shapes in backward
std::span<const HostErrorRow> device_rows();       // devices
std::span<const HostErrorRow> numpy_rows();        // numpy(), item(), if
std::span<const HostErrorRow> gpu_rows();          // which process, which GPU, what memory
std::span<const HostErrorRow> dtype_rows();        // dtypes of labels, products, layers
std::span<const HostErrorRow> index_dtype_rows();  // dtypes of ids, indices, masks
std::span<const HostErrorRow> index_rows();        // host IndexErrors
std::span<const HostErrorRow> sampling_rows();     // distributions, multinomial, one_hot, domains of losses

// Summary and fix for a loss whose input and target must have one shape.
void explain_same_shape(const HostCase& host_case, Finding& finding, const Shape& input, const Shape& target);

}  // namespace trapline::diagnose
