// Host checks stand in one table, for live exceptions and for logs: both must say the same of one message.
#include <gtest/gtest.h>

#include <string>

#include "catalogue/fold.hpp"
#include "core/cause.hpp"
#include "diagnose/diagnose.hpp"
#include "explain_bytes.hpp"
#include "log/events/messages.hpp"

namespace trapline {
namespace {

using diagnose::HostErrorRow;

std::string first_type(const HostErrorRow& row) {
  return std::string(row.exceptions.substr(0, row.exceptions.find('|')));
}

std::optional<Finding> live(const HostErrorRow& row, std::string_view message) {
  diagnose::HostError facts;
  facts.exception = first_type(row);
  facts.message = message;
  return diagnose::finding_of(facts);
}

TEST(HostMessages, ALineOfALogSaysWhatTheLiveExceptionSays) {
  for (const HostErrorRow* row : diagnose::host_error_rows()) {
    if (row->when != nullptr) continue;  // the message alone is another row's
    for (const std::string_view sample : row->samples) {
      const auto expected = live(*row, sample);
      ASSERT_TRUE(expected) << sample;
      const Finding f = root_of(first_type(*row) + ": " + std::string(sample) + "\n");
      EXPECT_EQ(info(f.cause).slug, info(expected->cause).slug) << row->id << ": " << sample;
      if (sample.find('\n') != std::string_view::npos) continue;  // its first line does not say all
      EXPECT_EQ(f.summary, expected->summary) << row->id;
      EXPECT_EQ(f.fix, expected->fix) << row->id;
      EXPECT_EQ(f.device_assert, false) << row->id;
      EXPECT_EQ(f.element.has_value(), expected->element.has_value()) << row->id;
      EXPECT_EQ(f.tensor.has_value(), expected->tensor.has_value()) << row->id;
    }
  }
}

TEST(HostMessages, WithoutTheTypeOfTheExceptionToo) {
  for (const HostErrorRow* row : diagnose::host_error_rows()) {
    if (row->when != nullptr) continue;
    for (const std::string_view sample : row->samples) {
      if (sample.find('\n') != std::string_view::npos) continue;
      const Finding f = root_of(
          "2025-11-17 12:07:40,001 - ERROR - train.py:88 - epoch 3 failed: " + std::string(sample) + "\n");
      EXPECT_EQ(info(f.cause).slug, info(row->cause).slug) << row->id << ": " << sample;
      EXPECT_EQ(f.summary, live(*row, sample)->summary) << row->id;
    }
  }
}

TEST(HostMessages, EverySampleHoldsAPhraseOfItsRow) {
  for (const HostErrorRow* row : diagnose::host_error_rows()) {
    for (const std::string_view sample : row->samples) {
      bool is_found = false;
      for (std::size_t i = 0; i < messages().rows.size(); ++i) {
        is_found = is_found || (messages().hosts[i] == row &&
                                fold(sample).find(fold(messages().rows[i]->phrase)) != std::string::npos);
      }
      EXPECT_TRUE(is_found) << row->id << ": " << sample;
    }
  }
}

TEST(HostMessages, NoMessageStandsInTwoTables) {
  std::vector<const HostErrorRow*> all(diagnose::host_error_rows().begin(),
                                       diagnose::host_error_rows().end());
  for (const WordingRow& row : wording_rows()) {
    const HostCheck host = host_check_in(all, {}, row.sample);
    EXPECT_EQ(host.row, nullptr) << row.id << " is " << (host.row == nullptr ? "" : host.row->id);
  }
  for (const HostErrorRow* row : all) {
    for (const std::string_view sample : row->samples) {
      const WordingRow* found = find_wording(sample);
      EXPECT_EQ(found, nullptr) << row->id << " is " << (found == nullptr ? "" : found->id);
    }
  }
}

TEST(HostMessages, AnEarlierWordingOrHalfAMessageKeepsItsCause) {
  struct {
    std::string_view line, cause;
  } constexpr kLines[] = {
      {"RuntimeError: index 3 is out of bounds for dimension 0 with size 3", "index_out_of_range"},
      {"ValueError: Expected parameter logits (Tensor of shape (4, 10)) of distribution Categorical to "
       "satisfy the "
       "constraint IndependentConstraint(Real(), 1)",
       "invalid_probability"},
      {"RuntimeError: size mismatch, m1: [32 x 400], m2: [256 x 10] at "
       "/pytorch/aten/src/TH/generic/THTensorMath.cpp:197",
       "shape_mismatch"},
      {"RuntimeError: Expected object of backend CUDA but got backend CPU for argument #2",
       "device_mismatch"},
      {"RuntimeError: \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Int'",
       "dtype_mismatch"},
      {"TypeError: can't convert CUDA tensor to numpy. Use Tensor.cpu() to copy", "device_mismatch"},
      {"RuntimeError: dimension out of range (expected to be in range of [-1, 0], but got 1)",
       "shape_mismatch"},
      {"RuntimeError: shape '[16, 34, 34, 512]' is inval1d f0r input of s1ze 89", "shape_mismatch"},
      {"IndexError: Target 5 is out of b0unds.", "label_out_of_range"},
  };
  for (const auto& [line, cause] : kLines)
    EXPECT_EQ(info(root_of(std::string(line) + "\n").cause).slug, cause) << line;
}

TEST(HostMessages, OtherWordsAreNotTheirs) {
  // A bound that somebody else tests; NumPy's own check, which is named, but in NumPy's words.
  EXPECT_EQ(root_of("ValueError: learning rate 5 is out of bounds\n").cause, Cause::kNotCuda);
  const Finding numpy = root_of("IndexError: index 5 is out of bounds for axis 0 with size 3\n");
  EXPECT_EQ(numpy.cause, Cause::kIndexOutOfRange);
  EXPECT_EQ(numpy.certainty, Certainty::kLikely);
  EXPECT_TRUE(numpy.op.empty());
  EXPECT_EQ(numpy.summary.find("kernel"), std::string::npos) << numpy.summary;
  // A warning is no failure.
  EXPECT_TRUE(explain_bytes(
                  "UserWarning: Using a target size (torch.Size([2, 1])) that is different to the input size "
                  "(torch.Size([2])). This will likely lead to incorrect results\n")
                  .findings.empty());
}

TEST(HostMessages, OneLineIsOneMessage) {
  const Report report = explain_bytes(
      "RuntimeError: The expanded size of the tensor (80) must match the existing size (64) at non-singleton "
      "dimension 1.  Target sizes: [8, 80].  Tensor sizes: [1, 64]\n");
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].op, "expand");
}

}  // namespace
}  // namespace trapline
