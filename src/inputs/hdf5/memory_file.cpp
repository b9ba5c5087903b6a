#include "inputs/hdf5/memory_file.hpp"

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

#include <cstring>

namespace trapline::inputs {
namespace {

struct File {
  H5FD_t base;  // libhdf5's own part comes first
  haddr_t end;  // of what it has taken for itself
};

// A driver is given nothing but a name; this one serves one file.
std::span<const std::byte> g_bytes;
bool g_open = false;

File& file_of(H5FD_t* file) { return *reinterpret_cast<File*>(file); }

H5FD_t* open(const char*, unsigned flags, hid_t, haddr_t) {
  if (g_open || (flags & H5F_ACC_RDWR) != 0) return nullptr;
  g_open = true;
  return reinterpret_cast<H5FD_t*>(new File{});
}
herr_t close(H5FD_t* file) {
  delete &file_of(file);
  g_open = false;
  return 0;
}
herr_t query(const H5FD_t*, unsigned long* flags) {
  if (flags != nullptr) *flags = 0;
  return 0;
}
haddr_t get_end(const H5FD_t* file, H5FD_mem_t) { return reinterpret_cast<const File*>(file)->end; }
herr_t set_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  file_of(file).end = end;
  return 0;
}
haddr_t size(const H5FD_t*, H5FD_mem_t) { return g_bytes.size(); }

herr_t read(H5FD_t*, H5FD_mem_t, hid_t, haddr_t at, std::size_t count, void* to) {
  if (at > g_bytes.size() || count > g_bytes.size() - at) return -1;
  std::memcpy(to, g_bytes.data() + at, count);
  return 0;
}
herr_t write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, std::size_t, const void*) { return -1; }

}  // namespace

Id open_memory_file(std::span<const std::byte> bytes) {
  g_bytes = bytes;
  static H5FD_class_t driver{};
#if H5_VERSION_GE(1, 14, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(H5FD_RESERVED + 77);
#endif
  driver.name = "trapline";
  driver.maxaddr = static_cast<haddr_t>(1) << 62U;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.open = open;
  driver.close = close;
  driver.query = query;
  driver.get_eoa = get_end;
  driver.set_eoa = set_end;
  driver.get_eof = size;
  driver.read = read;
  driver.write = write;
  constexpr H5FD_mem_t kMap[H5FD_MEM_NTYPES] = H5FD_FLMAP_SINGLE;
  std::memcpy(driver.fl_map, kMap, sizeof kMap);
  const hid_t id = H5FDregister(&driver);
  const Id access(H5Pcreate(H5P_FILE_ACCESS));
  if (id < 0 || !access || H5Pset_driver(access.get(), id, nullptr) < 0) return Id();
  return Id(H5Fopen("file", H5F_ACC_RDONLY, access.get()));
}

}  // namespace trapline::inputs
