#include "apps/report_command.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "apps/ideal_command.hpp"
#include "apps/report_files.hpp"
#include "apps/report_sections.hpp"
#include "core/error.hpp"
#include "io/file.hpp"

namespace weft {

namespace {

namespace fs = std::filesystem;

struct Content {
  std::string title;
  std::vector<ReportSection> sections;
  ReportSection plans;
  IdealModel ideal;
};

// The sliders begin at what the study's layouts are like: all axes' communication together.
IdealModel model_of(const IdealFit& fit) {
  IdealModel model;
  model.compute_ms = fit.ms[0];
  model.fixed_ms = fit.ms[1];
  model.communication_ms = fit.ms[2] + fit.ms[3] + fit.ms[4];
  return model;
}

Content content_of(const ReportOptions& options) {
  std::vector<RunRecords> runs;
  for (const std::string& folder : options.runs) runs.push_back(read_run(folder));
  Content content{.title = "weft report: " + runs.front().name,
                  .sections = {},
                  .plans = plan_section(runs),
                  .ideal = {}};
  if (runs.size() > 1) content.title += fmt::format(" and {} more", runs.size() - 1);
  content.sections = run_sections(runs);
  if (options.study.empty()) return content;
  const std::vector<StudyPoint> points = read_study_file(options.study);
  const IdealFit fit = fit_ideal(points);
  content.sections.push_back(study_section(points, fit));
  if (fault_of(model_of(fit), 1).empty()) content.ideal = model_of(fit);
  return content;
}

std::string page_of(const Content& content) {
  const std::string model = model_json(content.ideal).dump();
  return filled(report_files::page_html, {{"title", escaped(content.title)},
                                          {"style", std::string(report_files::page_css)},
                                          {"links", links_of(content.sections)},
                                          {"sections", html_of(content.sections)},
                                          {"plans", html_of({content.plans})},
                                          {"ideal_table", html_of(ideal_table(content.ideal))},
                                          {"ideal_model", model},
                                          {"ideal_script", std::string(report_files::ideal_js)},
                                          {"page_script", std::string(report_files::page_js)}});
}

}  // namespace

std::string report_path(const std::vector<std::string>& runs) {
  const fs::path first = fs::path(runs.front()).lexically_normal();
  const fs::path folder = first.has_filename() ? first : first.parent_path();
  if (runs.size() == 1) return folder.string() + ".html";
  return (folder.parent_path() / "report.html").string();
}

int report(const ReportOptions& options, std::ostream& text, std::ostream& out) {
  require(options.html.empty() || options.html.ends_with(".html"), ExitCode::usage,
          fmt::format("--html: expected a name that ends with .html; found {0}. Give {0}.html",
                      options.html));
  Content content = content_of(options);
  if (options.markdown) {
    content.sections.push_back(ideal_section(content.ideal));
    content.sections.push_back(content.plans);
    out << markdown_of(content.title, content.sections) << std::flush;
    return static_cast<int>(ExitCode::done);
  }
  const std::string path = options.html.empty() ? report_path(options.runs) : options.html;
  write_file(path, page_of(content));
  text << "report " << path << std::endl;
  return static_cast<int>(ExitCode::done);
}

}  // namespace weft
