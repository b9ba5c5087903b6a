#include "check/shards.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace trapline::check {
namespace {

namespace fs = std::filesystem;

// "data/year=/train-#-of-#.parquet": shards differ in numbers, and in the values of partitions.
std::string table_of(const std::string& path) {
  std::string table;
  for (const fs::path& part : fs::path(path).parent_path()) {
    const std::string name = part.string();
    const std::size_t sign = name.find('=');
    table += (sign == 0 || sign == name.npos ? name : name.substr(0, sign + 1)) + "/";
  }
  bool digits = false;
  for (const char c : fs::path(path).filename().string()) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || !digits) table += digit ? '#' : c;
    digits = digit;
  }
  return table;
}

// A column that the name of a folder gives to all files below it.
bool is_of_folder(const FileResult& file, const ColumnResult& column) {
  return column.last_file.find('=') != std::string::npos && file.path.starts_with(column.last_file + "/");
}

// Empty: it is no part of anything.
std::string key_of(const FileResult& file, const ColumnResult& column, std::size_t which) {
  if (!file.table || !file.whole || column.texts) return {};
  const std::string name = column.name + "\n" + std::to_string(which) + "\n" + column.stored + "\n" +
                           std::string(trapline::name_of(column.dtype)) + "\n";
  if (is_of_folder(file, column)) return name + column.last_file;
  return column.last_file.empty() ? name + table_of(file.path) : std::string();
}

bool same_classes(const ColumnResult& a, const ColumnResult& b) {
  if (a.classes.size() != b.classes.size()) return false;
  for (std::size_t i = 0; i < a.classes.size(); ++i) {
    if (a.classes[i].id != b.classes[i].id || a.classes[i].name != b.classes[i].name) return false;
  }
  return true;
}

void name_file(Place& place, const std::string& path) {
  if (place.source.empty()) place.source = path;
}

ColumnResult named(const ColumnResult& column, const std::string& path) {
  ColumnResult own{column.name,  column.dtype,   column.sizes,     column.stored,
                   column.tally, column.classes, column.last_file, column.often_missing,
                   {},           column.unnamed, column.lengths};
  if (own.tally.first) name_file(*own.tally.first, path);
  name_file(own.tally.missing.first, path);
  name_file(own.tally.malformed.first, path);
  for (Place& place : own.tally.detail.places) name_file(place, path);
  if (own.unnamed) name_file(own.unnamed->first, path);
  name_file(own.lengths.first, path);
  return own;
}

void add(ColumnResult& to, const ColumnResult& later) {
  to.tally.merge(later.tally);
  to.lengths.merge(later.lengths);
  if (to.unnamed && later.unnamed) {
    to.unnamed->bad += later.unnamed->bad;
  } else if (later.unnamed) {
    to.unnamed = later.unnamed;
  }
  if (to.sizes.empty() || later.sizes.empty()) return;
  const bool counted = to.sizes[0] >= 0 && later.sizes[0] >= 0 && to.sizes.size() == later.sizes.size();
  to.sizes[0] = counted ? to.sizes[0] + later.sizes[0] : -1;
  for (std::size_t i = 1; counted && i < to.sizes.size(); ++i) {
    if (to.sizes[i] != later.sizes[i]) to.sizes[i] = -1;
  }
}

}  // namespace

std::vector<WholeColumn> whole_columns(const std::vector<FileResult>& results) {
  std::vector<WholeColumn> columns;
  std::map<std::string, std::size_t> places;  // by key: in `columns`
  for (const FileResult& file : results) {
    std::map<std::string, std::size_t> which;  // a file may have several columns of one name
    for (const ColumnResult& column : file.columns) {
      const std::string key = key_of(file, column, which[column.name]++);
      const auto [at, fresh] =
          key.empty() ? std::pair(places.end(), true) : places.emplace(key, columns.size());
      if (!fresh) {
        WholeColumn& first = columns[at->second];
        if (same_classes(*first.column, column) && first.column->often_missing == column.often_missing) {
          if (!first.merged) first.merged = named(*first.column, first.file->path);
          add(*first.merged, named(column, file.path));
          // A part that is good was not: which classes occur in it is not known.
          first.closely = first.closely && first.column->tally.detailed && column.tally.detailed;
          if (!first.closely) first.merged->tally.detail.seen.clear();
          continue;
        }
      }
      columns.push_back({&file, &column});
    }
  }
  return columns;
}

}  // namespace trapline::check
