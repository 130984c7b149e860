// `weft report RUN...`: one page of HTML, or a text in Markdown, out of the records of runs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace weft {

struct ReportOptions {
  std::vector<std::string> runs;  // folders
  std::string study;              // JSON of `weft layouts --json`; empty: none
  std::string html;               // *.html, replaced where it exists; empty: as report_path says
  bool markdown = false;          // instead, to `out`
};

// Where the page goes when nobody says: RUN.html beside the run's folder, in which nothing is ever
// written; of several runs report.html beside the first.
std::string report_path(const std::vector<std::string>& runs);

// One process. The page's file is named on `text`. Throws Error(data) where a folder holds no run,
// Error(usage) for what is no study and for a page that is not named *.html.
int report(const ReportOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
