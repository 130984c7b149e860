// `weft report RUN...`: one page of HTML, or a text in Markdown, out of the records of runs, of
// profiles and their traces.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

struct ReportOptions {
  std::vector<std::string> runs;  // folders, whose trace.json is shown where there is one
  std::string study;              // JSON of `weft layouts --json`; empty: none
  std::string html;               // *.html, replaced where it exists; empty: as report_path says
  bool markdown = false;          // instead, to `out`
  std::vector<std::string> profiles = {};  // JSON of `weft profile --json`
  std::vector<std::string> traces = {};    // of profiles, say
  std::optional<index_t> trace_step = {};  // which step of the traces; none: one of median time
};

// Where the page goes when nobody says: RUN.html beside the run's folder, in which nothing is ever
// written; of several runs report.html beside the first; without a run FILE.html beside the first
// profile, else trace.
std::string report_path(const ReportOptions& options);

// One process. The page's file is named on `text`. Throws Error(data) where a folder holds no run,
// Error(usage) for what is no study, profile or trace, and for a page that is not named *.html.
int report(const ReportOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
