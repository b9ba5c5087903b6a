// Reads what the guarded processes left in the report folder.
#pragma once

#include "report/collected.hpp"
#include "run/report_folder.hpp"

namespace trapline {

// Takes finding-*.json, guard-*.json and skip-*.json of this run; temporary and foreign files are left alone.
// Never throws.
Collected collect(const ReportFolder& folder);

}  // namespace trapline
