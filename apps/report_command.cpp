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
  std::vector<ReportSection> plans;  // none without a run
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

std::string stem_of(const std::string& path) { return fs::path(path).stem().string(); }

std::string title_of(const ReportOptions& options, const std::vector<RunRecords>& runs) {
  std::vector<std::string> names;
  for (const RunRecords& run : runs) names.push_back(run.name);
  for (const std::string& path : options.profiles) names.push_back(stem_of(path));
  for (const std::string& path : options.traces) names.push_back(stem_of(path));
  std::string title = "weft report: " + names.front();
  if (names.size() > 1) title += fmt::format(" and {} more", names.size() - 1);
  return title;
}

// A trace that lies in a run's folder, which nobody named: a run that was stopped early has one of no
// step, and a report has more to show than that.
ReportSection section_of_trace(const std::string& path, const RunRecords& run,
                               const ReportOptions& options) {
  const std::string title = "Pipeline of run " + run.name;
  try {
    return pipeline_section(read_trace(path, options.trace_step), title);
  } catch (const Error& error) {
    return {title, {std::string("Not shown: ") + error.what()}, 2};
  }
}

void add_runs(const ReportOptions& options, const std::vector<RunRecords>& runs, Content& content) {
  content.plans.push_back(plan_section(runs));
  content.sections = run_sections(runs);
  if (auto seeds = seed_section(runs)) content.sections.push_back(std::move(*seeds));
  std::error_code ignored;
  for (const RunRecords& run : runs) {
    const std::string path = (fs::path(run.folder) / "trace.json").string();
    if (fs::exists(path, ignored))
      content.sections.push_back(section_of_trace(path, run, options));
  }
}

Content content_of(const ReportOptions& options) {
  require(
      !options.runs.empty() || !options.profiles.empty() || !options.traces.empty(),
      ExitCode::usage,
      "report: of what? Name run folders, or a profile with --profile, or a trace with --trace");
  std::vector<RunRecords> runs;
  for (const std::string& folder : options.runs) runs.push_back(read_run(folder));
  Content content{.title = title_of(options, runs), .sections = {}, .plans = {}, .ideal = {}};
  if (!runs.empty()) add_runs(options, runs, content);
  for (const std::string& path : options.profiles) {
    for (ReportSection& section : profile_sections(read_profile(path)))
      content.sections.push_back(std::move(section));
  }
  for (const std::string& path : options.traces)
    content.sections.push_back(
        pipeline_section(read_trace(path, options.trace_step), "Pipeline of " + stem_of(path)));
  if (options.study.empty()) return content;
  const std::vector<StudyPoint> points = read_study_file(options.study);
  const IdealFit fit = fit_ideal(points);
  content.sections.push_back(study_section(points, fit));
  if (fault_of(model_of(fit), 1).empty()) content.ideal = model_of(fit);
  return content;
}

std::string page_of(const Content& content) {
  const std::string model = model_json(content.ideal).dump();
  const std::string plans_link = content.plans.empty() ? "" : "<a href=\"#plans\">Plans</a>\n";
  return filled(report_files::page_html, {{"title", escaped(content.title)},
                                          {"style", std::string(report_files::page_css)},
                                          {"links", links_of(content.sections)},
                                          {"plans_link", plans_link},
                                          {"sections", html_of(content.sections)},
                                          {"plans", html_of(content.plans)},
                                          {"ideal_table", html_of(ideal_table(content.ideal))},
                                          {"ideal_model", model},
                                          {"ideal_script", std::string(report_files::ideal_js)},
                                          {"page_script", std::string(report_files::page_js)}});
}

}  // namespace

std::string report_path(const ReportOptions& options) {
  if (options.runs.empty()) {
    const std::string& file =
        options.profiles.empty() ? options.traces.front() : options.profiles.front();
    return fs::path(file).replace_extension(".html").string();
  }
  const fs::path first = fs::path(options.runs.front()).lexically_normal();
  const fs::path folder = first.has_filename() ? first : first.parent_path();
  if (options.runs.size() == 1) return folder.string() + ".html";
  return (folder.parent_path() / "report.html").string();
}

int report(const ReportOptions& options, std::ostream& text, std::ostream& out) {
  require(options.html.empty() || options.html.ends_with(".html"), ExitCode::usage,
          fmt::format("--html: expected a name that ends with .html; found {0}. Give {0}.html",
                      options.html));
  Content content = content_of(options);
  if (options.markdown) {
    content.sections.push_back(ideal_section(content.ideal));
    for (ReportSection& plan : content.plans) content.sections.push_back(std::move(plan));
    out << markdown_of(content.title, content.sections) << std::flush;
    return static_cast<int>(ExitCode::done);
  }
  const std::string path = options.html.empty() ? report_path(options) : options.html;
  write_file(path, page_of(content));
  text << "report " << path << std::endl;
  return static_cast<int>(ExitCode::done);
}

}  // namespace weft
