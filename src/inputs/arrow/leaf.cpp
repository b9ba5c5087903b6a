#include "inputs/arrow/leaf.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxLeaves = 65536;

struct TypeRow {
  arrow::Type::type type;
  Stored stored;
};
constexpr TypeRow kTypes[] = {
    {arrow::Type::BOOL, Stored::kBool},     {arrow::Type::INT8, Stored::kInt8},
    {arrow::Type::UINT8, Stored::kUInt8},   {arrow::Type::INT16, Stored::kInt16},
    {arrow::Type::UINT16, Stored::kUInt16}, {arrow::Type::INT32, Stored::kInt32},
    {arrow::Type::UINT32, Stored::kUInt32}, {arrow::Type::INT64, Stored::kInt64},
    {arrow::Type::UINT64, Stored::kUInt64}, {arrow::Type::HALF_FLOAT, Stored::kFloat16},
    {arrow::Type::FLOAT, Stored::kFloat32}, {arrow::Type::DOUBLE, Stored::kFloat64},
};

bool is_text(arrow::Type::type type) {
  return type == arrow::Type::STRING || type == arrow::Type::LARGE_STRING || type == arrow::Type::STRING_VIEW;
}

std::string why_skipped(const arrow::DataType& type) {
  if (is_text(type.id())) return "text";
  if (type.id() == arrow::Type::BINARY || type.id() == arrow::Type::LARGE_BINARY) return "binary";
  return "elements of the type " + type.ToString().substr(0, 80);
}

class Search {
 public:
  explicit Search(Leaves& found) : found_(found) {}

  void go(const std::shared_ptr<arrow::DataType>& declared, Leaf leaf, std::size_t depth) {
    const std::shared_ptr<arrow::DataType> type = storage_of(declared);
    if (depth > kMaxDepth || found_.leaves.size() >= kMaxLeaves) {
      found_.skipped.emplace_back(leaf.name, "nested too deep, or one of too many columns");
      return;
    }
    switch (type->id()) {
      case arrow::Type::STRUCT:
        for (int i = 0; i < type->num_fields(); ++i) {
          Leaf next = leaf;
          next.below.push_back(i);
          next.name += (next.name.empty() ? "" : ".") + type->field(i)->name();
          next.ragged = true;
          go(type->field(i)->type(), std::move(next), depth + 1);
        }
        return;
      case arrow::Type::LIST:
      case arrow::Type::LARGE_LIST:
        leaf.ragged = leaf.lists = true;
        return go(type->field(0)->type(), std::move(leaf), depth + 1);
      case arrow::Type::FIXED_SIZE_LIST:
        leaf.lists = true;
        leaf.fixed.push_back(static_cast<const arrow::FixedSizeListType&>(*type).list_size());
        return go(type->field(0)->type(), std::move(leaf), depth + 1);
      case arrow::Type::DICTIONARY: {
        const auto values = storage_of(static_cast<const arrow::DictionaryType&>(*type).value_type());
        if (text(*values, leaf)) return;
        if (values->id() == arrow::Type::BOOL || !number(*values, leaf)) {
          found_.skipped.emplace_back(leaf.name, why_skipped(*values));
          return;
        }
        leaf.ragged = true;  // decoded one by one
        found_.leaves.push_back(std::move(leaf));
        return;
      }
      default:
        if (text(*type, leaf)) return;
        if (!number(*type, leaf)) {
          found_.skipped.emplace_back(leaf.name, why_skipped(*type));
          return;
        }
        found_.leaves.push_back(std::move(leaf));
    }
  }

 private:
  bool text(const arrow::DataType& type, const Leaf& leaf) {
    const bool whole = type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
    if (!whole || leaf.lists || !leaf.below.empty()) return false;
    found_.leaves.push_back(leaf);
    found_.leaves.back().text = true;
    return true;
  }
  static bool number(const arrow::DataType& type, Leaf& leaf) {
    for (const TypeRow& row : kTypes) {
      if (row.type != type.id()) continue;
      leaf.encoding.stored = row.stored;
      leaf.bits = row.stored == Stored::kBool;
      return true;
    }
    return false;
  }
  Leaves& found_;
};

}  // namespace

std::shared_ptr<arrow::DataType> storage_of(std::shared_ptr<arrow::DataType> type) {
  while (type->id() == arrow::Type::EXTENSION) {
    type = static_cast<const arrow::ExtensionType&>(*type).storage_type();
  }
  return type;
}

Leaves leaves_of(const arrow::Schema& schema) {
  Leaves found;
  Search search(found);
  for (int i = 0; i < schema.num_fields(); ++i) {
    Leaf leaf;
    leaf.field = i;
    leaf.name = schema.field(i)->name();
    search.go(schema.field(i)->type(), std::move(leaf), 0);
  }
  return found;
}

}  // namespace trapline::inputs
