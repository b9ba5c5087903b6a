#include "inputs/apart_messages.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "inputs/damage.hpp"

namespace trapline::inputs {
namespace {

constexpr std::size_t kMaxColumns = 65536, kMaxDims = 64;

// As it travels: the size of what follows, then these counts, the numbers, the data, the texts each with its
// size.
struct Head {
  std::int64_t kind, numbers, data, texts;
};

// The other process is gone: this one has nobody to read for.
[[noreturn]] void leave() { ::_exit(1); }

void write_all(int to, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t wrote = ::write(to, at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) leave();
    at += wrote;
    size -= static_cast<std::size_t>(wrote);
  }
}

template <class T>
void append(std::vector<std::byte>& out, const T* data, std::size_t count) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  out.insert(out.end(), bytes, bytes + count * sizeof(T));
}

// The message in the bytes; empty when its counts are not theirs.
std::optional<Message> parse(std::span<const std::byte> bytes) {
  Head head{};
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  const auto fits = [](std::int64_t count, std::size_t most) {
    return count >= 0 && static_cast<std::uint64_t>(count) <= most;
  };
  if (head.kind < 0 || head.kind > static_cast<std::int64_t>(Message::Kind::kEnd)) return std::nullopt;
  Message message;
  message.kind = static_cast<Message::Kind>(head.kind);
  if (!fits(head.numbers, bytes.size() / sizeof(std::int64_t))) return std::nullopt;
  message.numbers.resize(static_cast<std::size_t>(head.numbers));
  const std::size_t numbers = message.numbers.size() * sizeof(std::int64_t);
  if (numbers > 0) std::memcpy(message.numbers.data(), bytes.data(), numbers);
  bytes = bytes.subspan(numbers);
  if (!fits(head.data, bytes.size())) return std::nullopt;
  message.data = bytes.first(static_cast<std::size_t>(head.data));
  bytes = bytes.subspan(message.data.size());
  if (!fits(head.texts, bytes.size() / sizeof(std::int64_t))) return std::nullopt;
  for (std::int64_t i = 0; i < head.texts; ++i) {
    std::int64_t size = 0;
    if (bytes.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    if (!fits(size, bytes.size())) return std::nullopt;
    message.texts.emplace_back(as_text(bytes.first(static_cast<std::size_t>(size))));
    bytes = bytes.subspan(static_cast<std::size_t>(size));
  }
  if (!bytes.empty()) return std::nullopt;
  return message;
}

}  // namespace

void SendingSink::send(const Message& message) {
  std::vector<std::byte> out;
  const Head head{static_cast<std::int64_t>(message.kind), static_cast<std::int64_t>(message.numbers.size()),
                  static_cast<std::int64_t>(message.data.size()),
                  static_cast<std::int64_t>(message.texts.size())};
  append(out, &head, 1);
  append(out, message.numbers.data(), message.numbers.size());
  append(out, message.data.data(), message.data.size());
  for (const std::string& text : message.texts) {
    const auto size = static_cast<std::int64_t>(text.size());
    append(out, &size, 1);
    append(out, text.data(), text.size());
  }
  const auto size = static_cast<std::int64_t>(out.size());
  write_all(socket_, &size, sizeof size);
  write_all(socket_, out.data(), out.size());
}

bool SendingSink::answer() {
  char said = 0;
  for (;;) {
    const ssize_t got = ::read(socket_, &said, 1);
    if (got == 1) return said != 0;
    if (got == 0 || errno != EINTR) leave();
  }
}

bool SendingSink::begin(const Column& column) {
  Message message{Message::Kind::kBegin, {static_cast<std::int64_t>(column.dtype)}, {}, {column.name}};
  message.numbers.insert(message.numbers.end(), column.sizes.begin(), column.sizes.end());
  send(message);
  return answer();
}

bool SendingSink::piece(const Piece& piece) {
  const TensorView& view = piece.view;
  const auto bytes = static_cast<std::size_t>(view.numel()) * size_of(view.dtype);
  Message message{Message::Kind::kPiece, {}, {static_cast<const std::byte*>(view.data), bytes}, {}};
  message.texts.push_back(piece.column->name);
  message.numbers = {static_cast<std::int64_t>(view.dtype), piece.first_row, piece.scalars ? 1 : 0,
                     view.dim()};
  message.numbers.insert(message.numbers.end(), view.sizes.begin(), view.sizes.end());
  message.numbers.insert(message.numbers.end(), piece.row_of.begin(), piece.row_of.end());
  send(message);
  return answer();
}

void SendingSink::malformed(const Column& column, std::int64_t row, std::int64_t line,
                            std::string_view text) {
  constexpr std::size_t kMost = 256;
  send({Message::Kind::kMalformed, {row, line}, {}, {column.name, std::string(text.substr(0, kMost))}});
}

void SendingSink::skipped(std::string_view name, std::string_view why) {
  send({Message::Kind::kSkipped, {}, {}, {std::string(name), std::string(why)}});
}

void SendingSink::class_names(const Column& column, std::span<const ClassName> names) {
  Message message{Message::Kind::kClassNames, {}, {}, {column.name}};
  for (const ClassName& name : names) {
    message.numbers.push_back(name.id);
    message.texts.push_back(name.name);
  }
  send(message);
}

void SendingSink::end(const std::optional<Error>& problem) {
  Message message{Message::Kind::kEnd, {}, {}, {}};
  if (problem) message.texts = {problem->what, problem->why, problem->fix};
  send(message);
}

const Column* Receiver::column(const Message& message) const {
  if (message.texts.empty()) return nullptr;
  const auto found = columns_.find(message.texts[0]);
  return found == columns_.end() ? nullptr : &found->second;
}

std::optional<bool> Receiver::begin(const Message& message) {
  const std::vector<std::int64_t>& numbers = message.numbers;
  if (numbers.empty() || numbers.size() > kMaxDims || message.texts.size() != 1) return std::nullopt;
  if (numbers[0] < 0 || numbers[0] > static_cast<std::int64_t>(DType::kFloat64)) return std::nullopt;
  const std::vector<std::int64_t> sizes(numbers.begin() + 1, numbers.end());
  if (std::ranges::any_of(sizes, [](std::int64_t size) { return size < -1; })) return std::nullopt;
  if (columns_.size() == kMaxColumns) return std::nullopt;
  const auto [at, fresh] =
      columns_.emplace(message.texts[0], Column{message.texts[0], static_cast<DType>(numbers[0]), sizes});
  if (!fresh) return std::nullopt;
  return sink_.begin(at->second);
}

std::optional<bool> Receiver::piece(const Message& message) {
  constexpr std::size_t kFixed = 4;
  const std::vector<std::int64_t>& numbers = message.numbers;
  Piece piece;
  piece.column = column(message);
  if (piece.column == nullptr || numbers.size() < kFixed) return std::nullopt;
  if (numbers[0] < 0 || numbers[0] > static_cast<std::int64_t>(DType::kFloat64)) return std::nullopt;
  const auto dtype = static_cast<DType>(numbers[0]);
  piece.first_row = numbers[1];
  piece.scalars = numbers[2] != 0;
  const std::int64_t dims = numbers[3];
  const std::span<const std::int64_t> rest = std::span(numbers).subspan(kFixed);
  if (piece.first_row < 0 || dims < 0 || static_cast<std::uint64_t>(dims) > std::min(kMaxDims, rest.size())) {
    return std::nullopt;
  }
  const std::span<const std::int64_t> sizes = rest.first(static_cast<std::size_t>(dims));
  piece.row_of = rest.subspan(sizes.size());
  const std::optional<std::int64_t> elements = product(sizes);
  if (!elements || static_cast<std::uint64_t>(*elements) != message.data.size() / size_of(dtype) ||
      message.data.size() % size_of(dtype) != 0) {
    return std::nullopt;
  }
  if (!piece.row_of.empty() &&
      (dims != 1 || static_cast<std::int64_t>(piece.row_of.size()) != sizes[0] ||
       piece.row_of[0] != piece.first_row || !std::ranges::is_sorted(piece.row_of))) {
    return std::nullopt;
  }
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<std::int64_t>(sizes[d], 1);
  piece.view = {message.data.data(), dtype, sizes, strides};
  return sink_.piece(piece);
}

std::optional<bool> Receiver::take(std::span<const std::byte> bytes) {
  const std::optional<Message> message = parse(bytes);
  if (!message || ended_) return std::nullopt;
  const std::vector<std::string>& texts = message->texts;
  switch (message->kind) {
    case Message::Kind::kBegin:
      return begin(*message);
    case Message::Kind::kPiece:
      return piece(*message);
    case Message::Kind::kMalformed: {
      const Column* of = column(*message);
      if (of == nullptr || texts.size() != 2 || message->numbers.size() != 2 || message->numbers[0] < 0)
        return std::nullopt;
      sink_.malformed(*of, message->numbers[0], std::max<std::int64_t>(message->numbers[1], 0), texts[1]);
      return true;
    }
    case Message::Kind::kSkipped:
      if (texts.size() != 2) return std::nullopt;
      sink_.skipped(texts[0], texts[1]);
      return true;
    case Message::Kind::kClassNames: {
      const Column* of = column(*message);
      if (of == nullptr || texts.size() != message->numbers.size() + 1) return std::nullopt;
      std::vector<ClassName> names;
      for (std::size_t i = 0; i < message->numbers.size(); ++i)
        names.push_back({message->numbers[i], texts[i + 1], false});
      sink_.class_names(*of, names);
      return true;
    }
    case Message::Kind::kEnd:
      ended_ = true;
      if (texts.empty()) return true;
      if (texts.size() != 3) return std::nullopt;
      problem_ = Error{texts[0], texts[1], texts[2]};
      return true;
  }
  return std::nullopt;
}

}  // namespace trapline::inputs
