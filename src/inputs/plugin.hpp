// Libraries that are loaded at the first file that needs them: what they are linked with is large, or not on
// every machine, and everything else starts and works without it.
#pragma once

#include <filesystem>
#include <string>

namespace trapline::inputs {

struct Plugin {
  void* symbol = nullptr;
  std::string problem;  // why there is none
};

// `folder_variable`: of the environment; names a folder to look in before those beside this program.
Plugin load_plugin(const std::string& library, const char* symbol, const char* folder_variable);

// Where the program or library lies that this code is part of; empty when that cannot be told.
std::filesystem::path own_folder();

}  // namespace trapline::inputs
