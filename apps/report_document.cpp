#include "apps/report_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/overloaded.hpp"

namespace weft {

namespace {

constexpr double usual_width = 500.0;  // of a picture that stands beside another one

bool is_number(const std::string& cell) {
  return cell.find_first_not_of("0123456789.+-e") == std::string::npos &&
         cell.find_first_of("0123456789") != std::string::npos;
}

std::string html_row(const std::vector<std::string>& cells, const char* element) {
  std::string row = "<tr>";
  for (const std::string& cell : cells) {
    row += fmt::format("<{0}{1}>{2}</{0}>", element, is_number(cell) ? " class=\"number\"" : "",
                       escaped(cell));
  }
  return row + "</tr>\n";
}

// A bar would end the cell.
std::string markdown_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += ' ';
    for (const char c : cell) row += c == '|' ? std::string("\\|") : std::string(1, c);
    row += " |";
  }
  return row + "\n";
}

std::string markdown_table(const ReportTable& table) {
  std::string text = markdown_row(table.header) + "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const bool is_right = std::any_of(table.rows.begin(), table.rows.end(),
                                      [&](const auto& row) { return is_number(row[i]); });
    text += is_right ? " ---: |" : " --- |";
  }
  text += "\n";
  for (const auto& row : table.rows) text += markdown_row(row);
  return text;
}

// More backticks than any run of them inside.
std::string markdown_listing(const std::string& text) {
  std::size_t longest = 2, here = 0;
  for (const char c : text) {
    here = c == '`' ? here + 1 : 0;
    longest = std::max(longest, here);
  }
  const std::string fence(longest + 1, '`');
  return fence + "\n" + text + (text.ends_with('\n') ? "" : "\n") + fence + "\n";
}

// A title's letters and digits, in lower case, with hyphens between.
std::string anchor_of(const ReportSection& section) {
  std::string anchor;
  for (const char c : section.title) {
    const bool is_kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_kept || (c >= 'A' && c <= 'Z'))
      anchor += is_kept ? c : static_cast<char>(c - 'A' + 'a');
    else if (!anchor.empty() && anchor.back() != '-')
      anchor += '-';
  }
  return anchor;
}

}  // namespace

std::string links_of(const std::vector<ReportSection>& sections) {
  std::string text;
  for (const ReportSection& section : sections) {
    if (section.level == 2)
      text += fmt::format("<a href=\"#{}\">{}</a>\n", anchor_of(section), escaped(section.title));
  }
  return text;
}

std::string markdown_of(const std::string& title, const std::vector<ReportSection>& sections) {
  std::string text = "# " + title + "\n";
  for (const ReportSection& section : sections) {
    text += fmt::format("\n{} {}\n", std::string(static_cast<std::size_t>(section.level), '#'),
                        section.title);
    for (const ReportBlock& block : section.blocks) {
      text += std::visit(
          Overloaded{
              [](const std::string& sentence) { return "\n" + sentence + "\n"; },
              [](const ReportTable& table) { return "\n" + markdown_table(table); },
              [](const ReportListing& listing) { return "\n" + markdown_listing(listing.text); },
              [](const SvgPicture&) { return std::string(); }},
          block);
    }
  }
  return text;
}

std::string html_of(const ReportTable& table) {
  std::string text =
      "<div class=\"wide\"><table>\n<thead>" + html_row(table.header, "th") + "</thead>\n<tbody>\n";
  for (const auto& row : table.rows) text += html_row(row, "td");
  return text + "</tbody>\n</table></div>\n";
}

std::string html_of(const std::vector<ReportSection>& sections) {
  std::string text;
  for (const ReportSection& section : sections) {
    text += fmt::format("<section id=\"{0}\">\n<h{1}>{2}</h{1}>\n", anchor_of(section),
                        section.level, escaped(section.title));
    bool is_in_plots = false;
    for (const ReportBlock& block : section.blocks) {
      const bool is_plot = std::holds_alternative<SvgPicture>(block);
      if (is_plot && !is_in_plots) text += "<div class=\"plots\">\n";
      if (!is_plot && is_in_plots) text += "</div>\n";
      is_in_plots = is_plot;
      text += std::visit(
          Overloaded{
              [](const std::string& sentence) { return "<p>" + escaped(sentence) + "</p>\n"; },
              [](const ReportTable& table) { return html_of(table); },
              [](const ReportListing& listing) {
                return "<pre>" + escaped(listing.text) + "</pre>\n";
              },
              [](const SvgPicture& picture) {
                const bool is_wide = picture.width > usual_width;
                return std::string(is_wide ? "<figure class=\"long\">" : "<figure>") +
                       svg_element(picture) + "</figure>\n";
              }},
          block);
    }
    if (is_in_plots) text += "</div>\n";
    text += "</section>\n";
  }
  return text;
}

std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string, std::string>>& texts) {
  std::string out;
  for (;;) {
    const std::size_t begin = page.find("{{");
    const std::size_t end = begin == page.npos ? page.npos : page.find("}}", begin);
    if (end == page.npos) return out.append(page);
    const std::string_view name = page.substr(begin + 2, end - begin - 2);
    const auto found = std::find_if(texts.begin(), texts.end(),
                                    [&](const auto& text) { return text.first == name; });
    if (found == texts.end())
      throw std::logic_error("the page asks for a text that there is not: " + std::string(name));
    out.append(page.substr(0, begin)).append(found->second);
    page.remove_prefix(end + 2);
  }
}

}  // namespace weft
