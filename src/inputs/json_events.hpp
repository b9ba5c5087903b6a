// A .json file as a stream of events, because such a file is one document of any size: what the readers of it
// share. Each says which values are data, of which column and row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inputs/reader.hpp"
#include "inputs/value_column.hpp"

namespace trapline::inputs {

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonEvents(Sink& sink) : sink_(sink) {}

  // Reads the text, to its end or to what is wrong with it, and hands over what came before that.
  Result<bool> read(const std::string& path, std::string_view text);

  bool null() override;
  bool boolean(bool flag) override;
  bool number_integer(std::int64_t number) override;
  bool number_unsigned(std::uint64_t number) override;
  bool number_float(double number, const std::string& text) override;
  bool string(std::string& text) override;
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& key) override;
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override;

 protected:
  struct Level {
    bool list = false;
    std::string key;  // that is being read, of an object
  };
  struct Cell {
    bool data = false;
    std::int64_t row = 0;
  };

  // The row of the value that is read, whose column is put into path_.
  virtual Cell locate() = 0;
  virtual bool is_list() const { return true; }  // the innermost list holds values of one row
  virtual void opened() {}                       // levels_ has the new one
  virtual void closed() {}                       // and no longer
  virtual void passed() {}                       // a value that is neither list nor object
  virtual void integer(std::int64_t) {}
  virtual void text(const std::string&) {}
  virtual void finish() {}  // at the end, or before what is wrong

  static constexpr std::size_t kMaxColumns = 1024;

  // The keys from level `from` on, with dots between them.
  void put_path(std::size_t from);
  const std::unordered_map<std::string, std::unique_ptr<ValueColumn>>& columns() const { return columns_; }
  void flush(const std::string& path);

  Sink& sink_;
  std::vector<Level> levels_;
  std::string path_;

 private:
  bool open(bool list);
  bool close();
  template <class T>
  bool number(T number);
  ValueColumn* find();
  ValueColumn* text_column();
  void malformed(std::string_view text);

  std::unordered_map<std::string, std::unique_ptr<ValueColumn>> columns_;
  std::unordered_map<std::string, std::unique_ptr<ValueColumn>> texts_;  // null: passed over
  std::string problem_;
  std::size_t offset_ = 0;
};

}  // namespace trapline::inputs
