// Notebooks: what cells printed and raised, and nothing else of them.
#include <gtest/gtest.h>

#include "log/read/notebook.hpp"
#include "reader_kept.hpp"

namespace trapline {
namespace {

constexpr std::string_view kNotebook = R"nb({
 "cells": [
  {
   "cell_type": "markdown",
   "source": ["RuntimeError: CUDA out of memory is a common error"]
  },
  {
   "cell_type": "code",
   "outputs": [
    {
     "name": "stderr",
     "output_type": "stream",
     "text": [
      "a warning: \"quoted\"\n",
      "step 1\rstep 2\n"
     ]
    },
    {
     "data": {
      "image/png": "iVBORw0KGgo=",
      "text/plain": ["<Figure with an error>"]
     },
     "output_type": "display_data"
    },
    {
     "ename": "RuntimeError",
     "evalue": "CUDA error: x",
     "output_type": "error",
     "traceback": [
      "\u001b[0;31mRuntimeError\u001b[0m   Traceback (most recent call last)",
      "File \u001b[0;32m/a/b.py:3\u001b[0m, in \u001b[0;36mf\u001b[0m(x)\n\u001b[0;32m----> 3\u001b[0m g(x)",
      "\u001b[0;31mRuntimeError\u001b[0m: CUDA error: x"
     ]
    },
    {
     "ename": "ValueError",
     "evalue": "no traceback",
     "output_type": "error",
     "traceback": []
    }
   ],
   "source": ["raise RuntimeError('text')"]
  }
 ],
 "metadata": {"text": "an error of nobody"}
}
)nb";

const std::vector<std::string> kTold = {"a warning: \"quoted\"",
                                        "step 1",
                                        "step 2",
                                        "<Figure with an error>",
                                        "RuntimeError   Traceback (most recent call last)",
                                        "File /a/b.py:3, in f(x)",
                                        "----> 3 g(x)",
                                        "RuntimeError: CUDA error: x",
                                        "ValueError: no traceback"};

Kept read_notebook(const std::string& name, std::string_view text) {
  const Folder folder;
  Kept kept;
  LogReader reader(kept);
  reader.read_path(folder.write(name, text));
  return kept;
}

TEST(Notebook, OutputsAreLinesAtTheirPlaceInTheFile) {
  const Kept kept = read_notebook("train.ipynb", kNotebook);
  EXPECT_EQ(kept.texts(), kTold);
  EXPECT_EQ(kept.lines[0].number, 14);
  EXPECT_EQ(kept.lines[6].number, 31);
  ASSERT_EQ(kept.ends.size(), 1U);
  EXPECT_EQ(kept.ends[0].lines, 46);
  EXPECT_EQ(kept.ends[0].bytes, kNotebook.size());
  EXPECT_FALSE(kept.ends[0].unfinished);
}

TEST(Notebook, IsKnownByItsCellsWhateverItsName) {
  EXPECT_EQ(read_notebook("saved.json", kNotebook).texts(), kTold);
  EXPECT_TRUE(is_notebook("a.ipynb.gz", "\n {}"));
  EXPECT_FALSE(is_notebook("a.ipynb", "RuntimeError: x"));
  EXPECT_FALSE(is_notebook("a.log", "{\"message\": \"x\"}"));
}

// In one line, cut anywhere, in pieces of any size.
TEST(Notebook, ACutOneIsToldUpToThere) {
  std::string line(kNotebook);
  std::erase(line, '\n');
  EXPECT_EQ(read_notebook("train.ipynb", line).texts(), kTold);
  struct Lines : RawLineSink {
    void raw_line(std::string_view raw, std::int64_t, bool) override { texts.emplace_back(raw); }
    std::vector<std::string> texts;
  };
  Lines whole;
  NotebookReader(whole).feed(line);
  for (std::size_t cut = 0; cut < line.size(); cut += 7) {
    Lines told;
    NotebookReader reader(told);
    for (std::size_t at = 0; at < cut; at += 5)
      reader.feed(line.substr(at, std::min<std::size_t>(5, cut - at)));
    EXPECT_EQ(reader.unfinished(), cut > 0);
    ASSERT_LE(told.texts.size(), whole.texts.size());
    for (std::size_t i = 0; i < told.texts.size(); ++i) EXPECT_EQ(told.texts[i], whole.texts[i]) << cut;
  }
}

// A notebook that ends in the middle of an exception: its words stand before its traceback.
TEST(Notebook, AnExceptionIsToldThoughItsTracebackIsCut) {
  EXPECT_EQ(read_notebook(
                "a.ipynb",
                R"({"cells": [{"outputs": [{"ename": "E", "evalue": "an error", "traceback": ["line 1", "li)")
                .texts(),
            (std::vector<std::string>{"line 1", "li", "E: an error"}));
}

// Megabytes of pictures cost no memory and hide nothing.
TEST(Notebook, PicturesArePassedOver) {
  const std::string picture(3 << 20, 'A');
  const std::string text = R"({"cells": [{"cell_type": "code", "outputs": [{"data": {"image/png": ")" +
                           picture + R"("}}, {"text": "RuntimeError: x"}]}]})";
  EXPECT_EQ(read_notebook("a.ipynb", text).texts(), std::vector<std::string>{"RuntimeError: x"});
}

}  // namespace
}  // namespace trapline
