#include "inputs/hdf5/element.hpp"

#include <algorithm>
#include <utility>

namespace trapline::inputs {
namespace {

constexpr int kMaxDepth = 8;
constexpr int kMaxMembers = 1024;
constexpr std::size_t kMaxElement = std::size_t{16} << 20U;  // bytes

struct Plain {
  Stored stored;
  hid_t memory;
};

Element none(std::string why) {
  Element element;
  element.why = std::move(why);
  return element;
}

Element plain(Stored stored, hid_t memory) {
  Element element;
  element.kind = Element::Kind::kNumbers;
  element.memory = Id(H5Tcopy(memory));
  element.encoding = {stored, false};
  element.bytes = element.encoding.bytes();
  return element;
}

Element integers(hid_t type) {
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (H5Tget_size(type)) {
    case 1:
      return is_signed ? plain(Stored::kInt8, H5T_NATIVE_INT8) : plain(Stored::kUInt8, H5T_NATIVE_UINT8);
    case 2:
      return is_signed ? plain(Stored::kInt16, H5T_NATIVE_INT16) : plain(Stored::kUInt16, H5T_NATIVE_UINT16);
    case 3:
    case 4:
      return is_signed ? plain(Stored::kInt32, H5T_NATIVE_INT32) : plain(Stored::kUInt32, H5T_NATIVE_UINT32);
    case 5:
    case 6:
    case 7:
    case 8:
      return is_signed ? plain(Stored::kInt64, H5T_NATIVE_INT64) : plain(Stored::kUInt64, H5T_NATIVE_UINT64);
    default:
      return none("integers of " + std::to_string(H5Tget_size(type)) + " bytes");
  }
}

Element floats(hid_t type) {
  if (H5Tget_size(type) == 4) return plain(Stored::kFloat32, H5T_NATIVE_FLOAT);
  if (H5Tget_size(type) != 2) return plain(Stored::kFloat64, H5T_NATIVE_DOUBLE);
  std::size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) < 0 || sign != 15)
    return none("floating point numbers of an unknown kind");
  const bool half = exponent_size == 5 && mantissa_size == 10;
  const bool brain = exponent_size == 8 && mantissa_size == 7;
  if (!half && !brain) return plain(Stored::kFloat64, H5T_NATIVE_DOUBLE);
  // As they are stored: a conversion would only widen them.
  Element element = plain(half ? Stored::kFloat16 : Stored::kBFloat16, type);
  element.encoding.swapped = H5Tget_order(type) == H5T_ORDER_BE;
  return element;
}

// Class names, where the numbers are 0, 1, 2, ...: others are flags, or anything.
std::vector<ClassName> names_of(hid_t type) {
  const int count = H5Tget_nmembers(type);
  if (count < 1 || count > kMaxMembers) return {};
  std::vector<ClassName> names;
  for (int i = 0; i < count; ++i) {
    std::int64_t value = 0;
    const auto member = static_cast<unsigned>(i);
    const Id base(H5Tget_super(type));
    if (!base || H5Tget_size(base.get()) > sizeof value || H5Tget_member_value(type, member, &value) < 0 ||
        H5Tconvert(base.get(), H5T_NATIVE_INT64, 1, &value, nullptr, H5P_DEFAULT) < 0) {
      return {};
    }
    char* name = H5Tget_member_name(type, member);
    if (name == nullptr) return {};
    names.push_back({value, name, false});
    H5free_memory(name);
  }
  std::ranges::sort(names, {}, &ClassName::id);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].id != static_cast<std::int64_t>(i)) return {};
  }
  return names;
}

Element enumeration(hid_t type) {
  const Id base(H5Tget_super(type));
  if (!base) return none("an enumeration");
  Element element = integers(base.get());
  if (element.kind != Element::Kind::kNumbers) return element;
  element.classes = names_of(type);
  // As h5py writes bool.
  if (element.bytes == 1 && element.classes.size() == 2 && element.classes[0].name == "FALSE" &&
      element.classes[1].name == "TRUE") {
    element.classes.clear();
    element.encoding.stored = Stored::kBool;
  }
  return element;
}

Element element_below(hid_t type, int depth);

Element array(hid_t type, int depth) {
  const Id base(H5Tget_super(type));
  const int count = H5Tget_array_ndims(type);
  if (!base || count < 1 || count > H5S_MAX_RANK) return none("arrays");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(count));
  if (H5Tget_array_dims2(type, sizes.data()) < 0) return none("arrays");
  Element element = element_below(base.get(), depth + 1);
  if (element.kind != Element::Kind::kNumbers)
    return none("arrays of " + (element.why.empty() ? "lists" : element.why));
  std::vector<std::int64_t> all;
  for (const hsize_t size : sizes) {
    if (size == 0 || size > kMaxElement / element.bytes) return none("arrays that are too large");
    element.bytes *= size;
    all.push_back(static_cast<std::int64_t>(size));
  }
  all.insert(all.end(), element.sizes.begin(), element.sizes.end());
  element.sizes = std::move(all);
  element.memory = Id(H5Tarray_create2(element.memory.get(), static_cast<unsigned>(count), sizes.data()));
  return element.memory ? std::move(element) : none("arrays");
}

std::string member_name(hid_t type, unsigned member) {
  char* name = H5Tget_member_name(type, member);
  std::string copy = name == nullptr ? "" : name;
  if (name != nullptr) H5free_memory(name);
  return copy;
}

// {r, i} of one floating point type, as h5py writes complex numbers.
Element complex(hid_t type) {
  if (H5Tget_nmembers(type) != 2 || member_name(type, 0) != "r" || member_name(type, 1) != "i") return {};
  const Id real(H5Tget_member_type(type, 0));
  const Id imaginary(H5Tget_member_type(type, 1));
  if (!real || !imaginary || H5Tget_class(real.get()) != H5T_FLOAT ||
      H5Tequal(real.get(), imaginary.get()) <= 0)
    return {};
  Element element = floats(real.get());
  if (element.kind != Element::Kind::kNumbers) return {};
  Id pair(H5Tcreate(H5T_COMPOUND, 2 * element.bytes));
  if (!pair || H5Tinsert(pair.get(), "r", 0, element.memory.get()) < 0 ||
      H5Tinsert(pair.get(), "i", element.bytes, element.memory.get()) < 0) {
    return {};
  }
  element.memory = std::move(pair);
  element.bytes *= 2;
  element.sizes = {2};
  return element;
}

Element element_below(hid_t type, int depth) {
  if (depth == kMaxDepth) return none("nested too deep");
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return integers(type);
    case H5T_FLOAT:
      return floats(type);
    case H5T_ENUM:
      return enumeration(type);
    case H5T_BITFIELD:  // as PyTables writes bool
      return H5Tget_size(type) == 1 ? plain(Stored::kUInt8, type) : none("bit fields");
    case H5T_ARRAY:
      return array(type, depth);
    case H5T_COMPOUND: {
      Element element = complex(type);
      return element.kind == Element::Kind::kNumbers ? std::move(element) : none("records");
    }
    case H5T_STRING: {
      if (H5Tis_variable_str(type) != 0) return none("text");
      Element element;
      element.kind = Element::Kind::kText;
      element.why = "text";
      element.memory = Id(H5Tcopy(type));
      element.bytes = H5Tget_size(type);
      return element;
    }
    case H5T_VLEN: {
      const Id base(H5Tget_super(type));
      Element element = base ? element_below(base.get(), depth + 1) : none("");
      if (element.kind != Element::Kind::kNumbers || !element.sizes.empty())
        return none("lists of " + (element.why.empty() ? "lists" : element.why));
      const bool real = is_floating(element.encoding.dtype());
      element.kind = Element::Kind::kRagged;
      element.encoding = {real ? Stored::kFloat64 : Stored::kInt64, false};
      element.memory = Id(H5Tvlen_create(real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64));
      element.bytes = sizeof(hvl_t);
      return element;
    }
    case H5T_REFERENCE:
      return none("references");
    case H5T_OPAQUE:
      return none("bytes");
    case H5T_TIME:
      return none("times");
    default:
      return none("elements of an unknown kind");
  }
}

}  // namespace

Element element_of(hid_t type) {
  Element element = element_below(type, 0);
  if (element.kind != Element::Kind::kNone && !element.memory) return none("elements of an unknown kind");
  if (element.bytes > kMaxElement) return none("elements that are too large");
  return element;
}

std::vector<Member> members_of(hid_t type) {
  if (H5Tget_class(type) != H5T_COMPOUND || complex(type).kind == Element::Kind::kNumbers) return {};
  const int count = H5Tget_nmembers(type);
  std::vector<Member> members;
  for (int i = 0; i < std::min(count, kMaxMembers); ++i) {
    const auto member = static_cast<unsigned>(i);
    const Id its_type(H5Tget_member_type(type, member));
    Member made{member_name(type, member), its_type ? element_of(its_type.get()) : none("unknown")};
    if (made.element.kind == Element::Kind::kText) made.element = none("text");
    if (made.element.kind != Element::Kind::kNone) {
      // libhdf5 takes out of the stored record what the one in memory has.
      Id record(H5Tcreate(H5T_COMPOUND, made.element.bytes));
      if (!record || H5Tinsert(record.get(), made.name.c_str(), 0, made.element.memory.get()) < 0) {
        made.element = none("unknown");
      } else {
        made.element.memory = std::move(record);
      }
    }
    members.push_back(std::move(made));
  }
  return members;
}

}  // namespace trapline::inputs
