// What lies in a folder, by name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace trapline::inputs {

bool is_folder(const std::string& path);
// Sorted paths. Hidden ones are left out; what cannot be read is not there.
std::vector<std::string> files_in(const std::string& folder, std::string_view end);
// `hidden`: those, too, as os.scandir has them.
std::vector<std::string> folders_in(const std::string& folder, bool hidden = false);
// Every file below, in no order, until visit returns false. Links to folders are not followed.
void each_file_below(const std::string& folder, const std::function<bool(const std::string&)>& visit);
std::string name_of_path(const std::string& path);  // its last part

}  // namespace trapline::inputs
