#include "check/class_gaps.hpp"

#include <algorithm>

#include "check/scan.hpp"
#include "checks/element.hpp"
#include "checks/walk.hpp"

namespace trapline::check {

bool has_gaps(std::span<const inputs::ClassName> classes, std::int64_t limit) {
  std::int64_t inside = 0;
  for (const inputs::ClassName& name : classes) inside += name.id >= 0 && name.id < limit ? 1 : 0;
  return !classes.empty() && inside < limit;
}

GapSink::GapSink(std::string column, std::span<const inputs::ClassName> classes,
                 const std::atomic<bool>& stop)
    : column_(std::move(column)), stop_(stop) {
  for (const inputs::ClassName& name : classes) ids_.insert(name.id);
  highest_ = std::ranges::max(classes, {}, &inputs::ClassName::id).id;
}

void GapSink::file(const inputs::Column& column, std::string_view path, std::int64_t first_row) {
  if (column.name != column_) return;
  file_ = std::string(path);
  file_row_ = first_row;
}

bool GapSink::piece(const inputs::Piece& piece) {
  if (is_floating(piece.view.dtype) || piece.view.numel() == 0) return !stopped();
  const Layout layout = row_major_layout(piece.view, piece.view.sizes.size());
  with_type(piece.view.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* data = static_cast<const T*>(piece.view.data);
    std::int64_t flat = 0;
    for_each_offset(layout, layout.dims, [&](std::int64_t offset) {
      const auto label = static_cast<std::int64_t>(widen(load(data + offset)));
      if (label >= 0 && label <= highest_ && !ids_.contains(label) && bad_++ == 0) {
        first_ = place_of(piece, flat, 0);
        first_.value = label;
        first_.source = file_;
        if (!file_.empty() && !first_.index.empty()) first_.index[0] -= file_row_;
      }
      ++flat;
      return true;
    });
  });
  return !stopped();
}

}  // namespace trapline::check
