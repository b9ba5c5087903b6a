// The field of a library's configuration that says how many rows a table has.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/frame.hpp"
#include "diagnose/violation/writer.hpp"

namespace trapline::diagnose {
namespace {

// The ids as the user has them: `types[..., 2]` where the table is for one column of the variable.
std::string users_column(const ViolationWriter& w) {
  const auto& variable = w.facts.variable;
  const bool column = variable && variable->index.size() == w.facts.index.size() + 1 &&
                      std::equal(w.facts.index.begin(), w.facts.index.end(), variable->index.begin());
  return column ? fmt::format("`{}[..., {}]`", variable->name, variable->index.back()) : w.users();
}

// No checkpoint's: right ids are not to be kept below a size that the program itself has given.
void fix_fresh(ViolationWriter& w, const Need& need) {
  const SettingFact& setting = *w.facts.setting;
  const std::string where = w.facts.assigned ? w.look_at_value("the ids")
                                             : fmt::format("look at where {} {} computed", users_column(w),
                                                           w.facts.variable ? "is" : "are");
  const std::string look = fmt::format("{}: {}", where, w.outside());
  const bool mixed = !setting.other.empty() && !w.no_size();
  const bool first = mixed || w.many_beyond();
  if (!first) w.fix(look);
  if (w.no_size()) return;
  std::string made = fmt::format("config.{}={} made this table", setting.name, setting.value);
  if (setting.made)
    made += fmt::format(", by `{}` ({})", setting.made->text,
                        file_and_line(setting.made->file, setting.made->line));
  if (mixed)
    w.fix(fmt::format("{}; config.{}={} would have room for these ids: see that the two are not mixed up",
                      made, setting.other, setting.other_value));
  else if (w.speaks_for_size() || !need.of.empty())
    w.fix(fmt::format("{}{}: it has to be {}{}", w.if_meant(), made, w.how_many(need), w.basis(need)));
  else
    w.fix(fmt::format("see as well whether that is enough: {}{}", made, w.basis(need)));
  if (first) w.fix(look);
}

}  // namespace

void fix_setting(ViolationWriter& w) {
  const SettingFact& setting = *w.facts.setting;
  const Need need = w.need();
  const bool one_segment = setting.name == "type_vocab_size" && setting.value == 1;
  if (one_segment) w.fix("pass no token_type_ids: this model has one segment only");
  if (setting.fresh) return fix_fresh(w, need);
  w.fix(fmt::format(
      "keep {} below {}: config.{}={} made this table; only a model that is trained anew can have {}{}",
      users_column(w), w.hi(), setting.name, setting.value, w.how_many(need, "rows"), w.basis(need)));
}

}  // namespace trapline::diagnose
