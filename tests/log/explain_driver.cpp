// Reads a file or a folder plainly and prints what the reasoner makes of it, as JSON: to try rules without
// the reader. Ranks come from file names ("rank3.log") and from "[rank3]:" at the beginning of a line.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "log/reason.hpp"
#include "report/json.hpp"
#include "report/utf8.hpp"

namespace {

int rank_of_name(const std::string& name) {
  const std::size_t at = name.find("rank");
  if (at == std::string::npos || at + 4 >= name.size()) return -1;
  return std::isdigit(static_cast<unsigned char>(name[at + 4])) != 0 ? std::atoi(name.c_str() + at + 4) : -1;
}

void read_file(const std::filesystem::path& path, trapline::Reasoner& reasoner) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = trapline::valid_utf8(all.str());
  const std::string source = path.string();
  const int file_rank = rank_of_name(path.filename().string());
  trapline::Line line;
  line.source = source;
  trapline::SourceEnd end;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t stop = std::min(text.find('\n', begin), text.size());
    std::string_view part(text.data() + begin, stop - begin);
    ++line.number;
    while (!part.empty()) {
      const std::size_t cr = part.find('\r');
      std::string_view piece = part.substr(0, cr);
      part = cr == std::string_view::npos ? std::string_view() : part.substr(cr + 1);
      line.rank = file_rank;
      if (piece.starts_with("[rank") && piece.find("]:") != std::string_view::npos) {
        line.rank = std::atoi(std::string(piece.substr(5, 6)).c_str());
        piece.remove_prefix(piece.find("]:") + 2);
        if (piece.starts_with(" ")) piece.remove_prefix(1);
      }
      line.text = piece;
      reasoner.line(line);
    }
    begin = stop + 1;
  }
  end.bytes = text.size();
  end.lines = line.number;
  reasoner.end_of_source(source, end);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  trapline::Reasoner reasoner;
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(argv[1])) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back(argv[1]);
  }
  for (const auto& file : files) read_file(file, reasoner);
  std::cout << trapline::to_json(reasoner.finish()).dump(1) << "\n";
}
