#include "report/html/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ranges.hpp"
#include "report/details.hpp"
#include "report/sentences.hpp"

namespace trapline::html {
namespace {

constexpr std::size_t kMaxCells = 256;  // of what another process wrote
constexpr std::size_t kMaxLanes = 64;
constexpr int kHeight = 100;  // of a picture, in its own units; a cell is 10 wide

// A drawing that fills its place, whatever that is: it has neither text nor circles.
Html drawing(const char* kind, int width, const std::string& what, const Html& content) {
  return tag("svg",
             {{"class", kind},
              {"role", "img"},
              {"aria-label", what},
              {"viewBox", fmt::format("0 0 {} {}", width, kHeight)},
              {"preserveAspectRatio", "none"}},
             content);
}

Html box(const char* kind, double x, double width, double height, const std::string& title = {}) {
  return tag("rect",
             {{"class", kind},
              {"x", fmt::format("{:g}", x)},
              {"y", fmt::format("{:g}", kHeight - height)},
              {"width", fmt::format("{:g}", width)},
              {"height", fmt::format("{:g}", height)}},
             title.empty() ? Html() : tag("title", text(title)));
}

Html figure(const std::string& caption, const Html& content) {
  return tag("figure", tag("figcaption", text(caption)) + content);
}

Html span(const char* kind, const std::string& words) { return tag("span", {{"class", kind}}, text(words)); }

// As high as seen best beside `most`: one among a million must not vanish.
double height_of(std::int64_t count, std::int64_t most) {
  if (count <= 0 || most <= 0) return 0;
  return kHeight * std::clamp(std::sqrt(static_cast<double>(count) / static_cast<double>(most)), 0.06, 1.0);
}

std::string number_text(double value) {
  const bool is_whole = value == std::trunc(value) && std::abs(value) < 1e15;
  return is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string argument_of(const Finding& finding) {
  return finding.argument.empty() ? "the argument" : finding.argument;
}

// Whether no value of the stretch is valid.
bool is_bad(const Valid& valid, double low, double high) {
  return (valid.min && high <= as_double(*valid.min)) || (valid.max && low > as_double(*valid.max));
}

// What lies outside of a histogram.
Html beside(const char* kind, std::int64_t count, std::int64_t most, const std::string& words) {
  if (count <= 0) return {};
  const std::string what = fmt::format("{}: {}", words, count);
  return tag("div", {{"class", "beside"}},
             drawing("bars", 10, what, box(kind, 2, 6, height_of(count, most), what)) +
                 tag("p", tag("b", text(std::to_string(count)))) + tag("p", text(words)));
}

// How high a number stands between the lowest and the highest of its course: by logarithm where they are far
// apart, as what diverges does. The lowest is still seen.
class Heights {
 public:
  explicit Heights(const std::vector<double>& finite)
      : low_(*std::ranges::min_element(finite)), high_(*std::ranges::max_element(finite)) {}

  bool by_logarithm() const { return low_ > 0 && high_ / low_ > 100; }

  double of(double value) const {
    const double above = by_logarithm() ? std::log(value / low_) : value / 2 - low_ / 2;  // no overflow
    const double most = by_logarithm() ? std::log(high_ / low_) : high_ / 2 - low_ / 2;
    return kHeight * (most > 0 ? 0.06 + 0.94 * above / most : 0.5);
  }

 private:
  double low_, high_;
};

Html course_of(const Finding& finding, const char* name, std::optional<Scalar> TrainingStep::*number) {
  std::vector<const TrainingStep*> known;
  std::vector<double> finite;
  for (const TrainingStep& step : finding.last_steps) {
    if (known.size() == kMaxCells || !(step.*number)) continue;
    known.push_back(&step);
    if (const double value = as_double(*(step.*number)); std::isfinite(value)) finite.push_back(value);
  }
  if (known.size() < 2 || finite.empty()) return {};
  const Heights heights(finite);
  Html content;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const double value = as_double(*(known[i]->*number));
    const bool is_finite = std::isfinite(value);
    content +=
        box(is_finite ? "bar" : "bad", 10.0 * static_cast<double>(i) + 1, 8,
            is_finite ? heights.of(value) : kHeight, fmt::format("step {}: {:.4g}", known[i]->step, value));
  }
  const std::string what = fmt::format("{} of the last steps", name);
  const auto end = [&](const TrainingStep& step) {
    return span("", fmt::format("step {}: {:.3g}", step.step, as_double(*(step.*number))));
  };
  return figure(what + (heights.by_logarithm() ? " (heights by logarithm)" : ""),
                drawing("bars", 10 * static_cast<int>(known.size()), what, content) +
                    tag("p", {{"class", "axis"}}, end(*known.front()) + end(*known.back())));
}

}  // namespace

Html courses_of(const Finding& finding) {
  return course_of(finding, "loss", &TrainingStep::loss) +
         course_of(finding, "gradient norm", &TrainingStep::gradient_norm);
}

Html strip_of(const Finding& finding) {
  if (!finding.element || finding.element->strip.empty()) return {};
  const std::vector<std::int64_t>& strip = finding.element->strip;
  const std::size_t cells = std::min(strip.size(), kMaxCells);
  std::int64_t total = finding.element->total.value_or(0);
  if (finding.tensor && !finding.tensor->shape.empty()) {
    double product = 1;
    for (const std::int64_t size : finding.tensor->shape) product *= static_cast<double>(size);
    if (product >= 0 && product < 9e15) total = static_cast<std::int64_t>(product);
  }
  if (total < static_cast<std::int64_t>(cells)) return {};
  const auto most = *std::ranges::max_element(strip);
  const auto begin_of = [&](std::size_t cell) {  // the first element whose cell it is
    const auto step = static_cast<double>(total) / static_cast<double>(cells);
    return static_cast<std::int64_t>(std::ceil(step * static_cast<double>(cell)));
  };
  Html content;
  for (std::size_t i = 0; i < cells; ++i) {
    const double x = 10.0 * static_cast<double>(i);
    content += box("cell", x + 0.5, 9, kHeight);
    if (strip[i] <= 0) continue;
    const std::int64_t first = begin_of(i);
    const std::int64_t last = std::max(first, begin_of(i + 1) - 1);
    const std::string which =
        first == last ? fmt::format("element {}", first) : fmt::format("elements {} to {}", first, last);
    const double share = static_cast<double>(strip[i]) / static_cast<double>(std::max<std::int64_t>(most, 1));
    content += box("bad", x + 0.5, 9, kHeight * std::clamp(share, 0.4, 1.0),
                   fmt::format("{}: {} bad", which, strip[i]));
  }
  const std::string what = fmt::format("where the bad elements of {} lie", argument_of(finding));
  return figure(what, drawing("strip", 10 * static_cast<int>(cells), what, content) +
                          tag("p", {{"class", "axis"}},
                              span("", "element 0") + span("", fmt::format("element {}", total - 1))));
}

Html histogram_of(const Finding& finding) {
  if (!finding.element || !finding.element->histogram) return {};
  const Histogram& histogram = *finding.element->histogram;
  const std::size_t bins = std::min(histogram.counts.size(), kMaxCells);
  if (bins == 0 || !(histogram.low < histogram.high)) return {};
  std::int64_t most = std::max({*std::ranges::max_element(histogram.counts), histogram.below, histogram.above,
                                histogram.also, histogram.not_finite});
  if (most <= 0) return {};
  const double step = (histogram.high - histogram.low) / static_cast<double>(bins);
  Html content;
  for (std::size_t i = 0; i < bins; ++i) {
    const double low = histogram.low + step * static_cast<double>(i);
    const bool bad = finding.valid && is_bad(*finding.valid, low, low + step);
    const double x = 10.0 * static_cast<double>(i);
    if (!bad) content += box("valid", x, 10, kHeight);
    if (histogram.counts[i] <= 0) continue;
    content +=
        box(bad ? "bad" : "bar", x + 1, 8, height_of(histogram.counts[i], most),
            fmt::format("{} to {}: {}", number_text(low), number_text(low + step), histogram.counts[i]));
  }
  const std::string what = fmt::format("values of {}", argument_of(finding));
  const auto end_words = [&](const std::optional<Scalar>& end, const char* which) {
    return fmt::format("{} {}", which, end ? to_text(*end) : "unknown");
  };
  Html row = beside("bad", histogram.below, most, end_words(finding.element->min, "below, min"));
  row += tag("div", {{"class", "range"}},
             drawing("bars", 10 * static_cast<int>(bins), what, content) +
                 tag("p", {{"class", "axis"}},
                     span("", number_text(histogram.low)) +
                         span("", finding.valid ? "valid: " + valid_text(*finding.valid) : std::string()) +
                         span("", number_text(histogram.high))));
  row += beside("bad", histogram.above, most, end_words(finding.element->max, "above, max"));
  row += beside("bar", histogram.also, most, "also valid");
  row += beside("bad", histogram.not_finite, most, "NaN or Inf");
  return figure(what + " (heights by square root)", tag("div", {{"class", "histogram"}}, row));
}

Html ranks_of(const Report& report, std::string_view directory) {
  if (!reading_of(report).several_ranks) return {};
  struct Lane {
    std::size_t step = 0;
    bool is_root = false;
    std::string words;
  };
  std::map<std::int64_t, Lane> lanes;
  std::int64_t world = 0;
  const auto add = [&](std::int64_t rank, const Lane& lane) {
    if (rank >= 0) lanes.try_emplace(rank, lane);
  };
  const auto place = [&](const Finding& finding, Lane lane) {
    if (!finding.process) return;
    world = std::max(world, finding.process->world_size.value_or(0));
    if (finding.process->rank) add(*finding.process->rank, lane);
    const std::set<std::int64_t> together(finding.process->ranks.begin(), finding.process->ranks.end());
    const std::string who = ranks_text(together) + " ";
    if (!together.empty() && lane.words.starts_with(who)) lane.words.erase(0, who.size());  // each has a row
    for (const std::int64_t rank : together) add(rank, lane);
  };
  const Finding& root = report.findings.front();
  place(root, {1, true, fmt::format("[{}] {}", info(headline_cause(root)).code, root.summary)});
  std::size_t step = 1;
  for (const Other& other : others_of(report, directory)) {
    ++step;
    place(*other.first, {step, !other.is_consequence, other.text});
    for (const std::int64_t rank : other.ranks) add(rank, {step, !other.is_consequence, other.text});
  }
  if (lanes.empty()) return {};
  for (std::int64_t rank = 0; rank < std::min<std::int64_t>(world, kMaxLanes); ++rank) {
    add(rank, {step + 1, false, "nothing is known of it"});
  }
  Html rows;
  std::size_t drawn = 0;
  for (const auto& [rank, lane] : lanes) {
    if (drawn++ == kMaxLanes) break;
    const double at = 1000.0 * static_cast<double>(lane.step) / static_cast<double>(step + 1);
    const char* kind = lane.is_root ? "bad" : lane.step > step ? "cell" : "waits";
    Html line = box("cell", 0, std::min(at, 1000.0), 30);
    if (lane.step <= step) line += box(kind, at, lane.is_root ? 60 : 1000 - at, lane.is_root ? kHeight : 30);
    rows += tag("tr", {{"class", lane.is_root ? "root" : "follows"}},
                tag("th", {{"scope", "row"}}, text(fmt::format("rank {}", rank))) +
                    tag("td", drawing("lane", 1000, fmt::format("rank {}: {}", rank, lane.words), line)) +
                    tag("td", text(lane.words)));
  }
  if (lanes.size() > kMaxLanes) {
    rows += tag("tr", tag("td", {{"colspan", "3"}},
                          text(fmt::format("and {} more ranks", lanes.size() - kMaxLanes))));
  }
  return tag("section", {{"class", "ranks"}},
             tag("h2", literal("The ranks, in causal order")) + tag("table", tag("tbody", rows)));
}

}  // namespace trapline::html
