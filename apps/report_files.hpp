// The files of report/ as constants: what a report's page is made of.
#pragma once

#include <string_view>

namespace weft::report_files {

extern const std::string_view page_html;
extern const std::string_view page_css;
extern const std::string_view ideal_js;
extern const std::string_view page_js;

}  // namespace weft::report_files
