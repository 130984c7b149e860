// What a report says, before it is a page or a text: sections of sentences, tables, pictures. One
// content, two ways to write it.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/svg_plot.hpp"

namespace weft {

struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  // as wide as the header
};
// Shown letter by letter: a plan, a line of versions.
struct ReportListing {
  std::string text;
};

using ReportBlock = std::variant<std::string, ReportTable, ReportListing, SvgPicture>;

struct ReportSection {
  std::string title;
  std::vector<ReportBlock> blocks;  // a string is a sentence or some
  int level = 2;                    // of its heading; 3: belongs to the one before
};

// Markdown shows no pictures: what they draw is in the tables, or in the page.
std::string markdown_of(const std::string& title, const std::vector<ReportSection>& sections);
// The sections as elements for a page's body.
std::string html_of(const std::vector<ReportSection>& sections);
std::string html_of(const ReportTable& table);
// Links to the sections of level 2 in the same page.
std::string links_of(const std::vector<ReportSection>& sections);
// `page` with each {{name}} replaced by its text, which is not looked through again. Throws
// std::logic_error for a name that has none.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string, std::string>>& texts);

}  // namespace weft
