// Every row of the catalogue through every damage of log_damage.cpp, the whole way from bytes to the verdict:
// the cause must be the one that the row has undamaged, and no surer.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "catalogue/asserts.hpp"
#include "catalogue/fold.hpp"
#include "catalogue/wordings.hpp"
#include "core/cause.hpp"
#include "diagnose/host/errors.hpp"
#include "explain_bytes.hpp"
#include "log_damage.hpp"

namespace trapline {
namespace {

TEST(ExplainDamage, AssertionsKeepTheirCause) {
  for (const AssertRow& row : assert_rows()) {
    if (row.reach != Reach::kUser || fold(row.condition).size() < 9 ||
        row.sample.find("block: [") == std::string_view::npos || row.sample.starts_with("RuntimeError"))
      continue;
    const std::string log = std::string(row.sample) + "\n";
    const Finding plain = root_of(log);
    for (const LogDamage& damage : log_damages()) {
      const std::string text = damage.apply(log);
      const Finding f = root_of(text);
      EXPECT_EQ(info(f.cause).slug, info(plain.cause).slug) << damage.name << ": " << text;
      EXPECT_EQ(f.device_assert, plain.device_assert) << damage.name << ": " << text;
      EXPECT_GE(static_cast<int>(f.certainty), static_cast<int>(plain.certainty))
          << damage.name << ": " << text;
      if (damage.keeps_op) {
        EXPECT_EQ(f.op, plain.op) << damage.name << ": " << text;
      }
    }
  }
}

// A log rarely suffers only once. What is then illegible may stay open, but nothing may be sure and wrong.
TEST(ExplainDamage, TwoDamagesOnTopOfEachOther) {
  for (const std::string log : {"../aten/src/ATen/native/cuda/Loss.cu:250: "
                                "nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: "
                                "[6,0,0] Assertion `t >= 0 && t < n_classes` failed.\n",
                                "/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1284: indexSelectLargeIndex: "
                                "block: [17,0,0], thread: [96,0,0] "
                                "Assertion `srcIndex < srcSelectDimSize` failed.\n",
                                "/opt/conda/conda-bld/pytorch_1607370172916/src/aten/src/ATen/native/cuda/"
                                "IndexKernel.cu:142: operator(): "
                                "block: [1,0,0], thread: [32,0,0] Assertion `index >= -sizes[i] && index < "
                                "sizes[i] && \"index out of "
                                "bounds\"` failed.\n",
                                "/pytorch/aten/src/THCUNN/BCECriterion.cu:42: Acctype bce_functor<Dtype, "
                                "Acctype>::operator()(Tuple) [with "
                                "Tuple = thrust::detail::tuple_of_iterator_references<float, float>, Dtype = "
                                "float, Acctype = float]: block: "
                                "[0,0,0], thread: [11,0,0] Assertion `input >= 0. && input <= 1.` failed.\n",
                                "RuntimeError: CUDA error: an illegal memory access was encountered\n"}) {
    const Finding plain = root_of(log);
    for (const LogDamage& first : log_damages()) {
      if (std::string_view(first.name) == "utf-16") continue;  // the next one would not know its characters
      const std::string once = first.apply(log);
      for (const LogDamage& second : log_damages()) {
        const std::string text = second.apply(once);
        const Finding f = root_of(text);
        if (f.certainty != Certainty::kDetermined && f.certainty != Certainty::kProven) continue;
        EXPECT_EQ(info(f.cause).slug, info(plain.cause).slug)
            << first.name << ", then " << second.name << ": " << text;
      }
    }
  }
}

TEST(ExplainDamage, MessagesKeepTheirCause) {
  for (const WordingRow& row : wording_rows()) {
    if (row.kind == WordingKind::kHint || row.kind == WordingKind::kEvidence ||
        row.kind == WordingKind::kContext)
      continue;
    const std::string log = std::string(row.sample) + "\n";
    const Finding plain = root_of(log);
    for (const LogDamage& damage : log_damages()) {
      if (!damage.for_messages) continue;
      const std::string text = damage.apply(log);
      const Finding f = root_of(text);
      EXPECT_EQ(info(f.cause).slug, info(plain.cause).slug) << row.id << ", " << damage.name << ": " << text;
      EXPECT_EQ(f.device_assert, plain.device_assert) << row.id << ", " << damage.name << ": " << text;
    }
  }
}

TEST(ExplainDamage, HostChecksKeepTheirCause) {
  for (const diagnose::HostErrorRow* row : diagnose::host_error_rows()) {
    const std::string log = std::string(row->exceptions.substr(0, row->exceptions.find('|'))) + ": " +
                            std::string(row->samples.front()) + "\n";
    const Finding plain = root_of(log);
    for (const LogDamage& damage : log_damages()) {
      if (!damage.for_messages) continue;
      const std::string text = damage.apply(log);
      const Finding f = root_of(text);
      EXPECT_EQ(info(f.cause).slug, info(plain.cause).slug) << row->id << ", " << damage.name << ": " << text;
      EXPECT_EQ(f.device_assert, plain.device_assert) << row->id << ", " << damage.name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace trapline
