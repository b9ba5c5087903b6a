#include <gtest/gtest.h>

#include "log/clean/progress.hpp"

namespace trapline {
namespace {

TEST(Progress, TextThatOnlyLooksLikeABarStays) {
  for (const std::string_view text : {"x[0:3] | y", "block: [0,0,0], thread: [1,0,0] Assertion",
                                      "loss 50%| x", "[E704 10:58:27 x.cpp:1] a/s b"}) {
    EXPECT_EQ(without_progress_bar(text), text);
    EXPECT_FALSE(is_progress_bar(text));
  }
}

TEST(Progress, HowFarTheLastBarIs) {
  EXPECT_EQ(progress_in("  3%|#   | 1/9 [00:05<02:05, 5.2it/s] 40%|##  | 4/9 [00:09<00:12, 4it/s]"), 40);
  EXPECT_EQ(progress_in("0it [00:00, ?it/s]"), 0);
  EXPECT_EQ(progress_in("loss 0.4"), -1);
}

}  // namespace
}  // namespace trapline
