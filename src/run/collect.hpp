// Reads what the guarded processes left in the report folder.
#pragma once

#include "report/collected.hpp"
#include "run/report_folder.hpp"

namespace trapline {

// Takes this run's files (is_report_file); temporary and foreign ones are left alone. What processes handed
// over is first put into the folder, where that can be done. Never throws.
Collected collect(const ReportFolder& folder, Handed handed = {});

}  // namespace trapline
