// Reading and blanking of sources; see source_file.hpp.
#include "tests/architecture/source_file.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace weft::architecture {
namespace {

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<std::string> lines_of(std::string_view content) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : content) {
    if (c == '\n') {
      lines.push_back(line);
      line.clear();
    } else {
      line += c;
    }
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

// The end of the literal or comment that starts at `i`, one past its last character; `i` itself
// where none starts.
std::size_t end_of_blank(std::string_view s, std::size_t i) {
  const auto find_end = [&](std::string_view closing, std::size_t from) {
    const std::size_t at = s.find(closing, from);
    return at == std::string_view::npos ? s.size() : at + closing.size();
  };
  if (s.substr(i, 2) == "//") return std::min(s.find('\n', i), s.size());
  if (s.substr(i, 2) == "/*") return find_end("*/", i + 2);
  const bool after_word = i > 0 && is_word_char(s[i - 1]);
  if (s[i] == '"' && i > 0 && s[i - 1] == 'R') {  // R"delimiter( ... )delimiter"
    const std::size_t open = s.find('(', i);
    if (open == std::string_view::npos) return s.size();
    std::string closing = ")";
    closing.append(s.substr(i + 1, open - i - 1)).append("\"");
    return find_end(closing, open);
  }
  // 1'000'000 is a number.
  if (s[i] == '"' || (s[i] == '\'' && !after_word)) {
    std::size_t j = i + 1;
    while (j < s.size() && s[j] != s[i] && s[j] != '\n') j += s[j] == '\\' ? 2 : 1;
    return std::min(j + 1, s.size());
  }
  return i;
}

std::string blanked(std::string_view s) {
  std::string code(s);
  std::size_t i = 0;
  while (i < s.size()) {
    const std::size_t end = end_of_blank(s, i);
    if (end == i) {
      ++i;
      continue;
    }
    const bool is_literal = s[i] != '/';
    for (std::size_t j = i; j < end; ++j) {
      const bool is_quote = is_literal && (j == i || j + 1 == end);
      if (s[j] != '\n' && !is_quote) code[j] = ' ';
    }
    i = end;
  }
  return code;
}

}  // namespace

std::string print(const std::vector<Fault>& faults) {
  std::string result;
  for (const Fault& fault : faults) {
    result += fault.path + ":" + std::to_string(fault.line) + ": " + fault.message + "\n";
  }
  return result;
}

SourceFile make_source_file(std::string path, std::string_view content) {
  return {std::move(path), lines_of(content), lines_of(blanked(content))};
}

std::vector<SourceFile> read_sources(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  for (const char* folder : {"core", "parallel", "layers", "io", "apps", "tests", "perf"}) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      const bool is_source = extension == ".hpp" || extension == ".cpp" || extension == ".h" ||
                             extension == ".cc" || extension == ".cu" || extension == ".cuh";
      if (!entry.is_regular_file() || !is_source) continue;
      std::ostringstream content;
      content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      files.push_back(
          make_source_file(fs::relative(entry.path(), root).generic_string(), content.str()));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::vector<Word> words_of(const std::string& code_line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < code_line.size();) {
    if (!is_word_char(code_line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < code_line.size() && is_word_char(code_line[end])) ++end;
    if (std::isdigit(static_cast<unsigned char>(code_line[i])) == 0) {
      words.push_back({code_line.substr(i, end - i), i});
    }
    i = end;
  }
  return words;
}

std::string included_by(const SourceFile& file, std::size_t line_index) {
  // Ask the blanked line whether this is an #include at all, and the written one for the name.
  const std::string& code = file.code[line_index];
  const std::size_t hash = code.find_first_not_of(" \t");
  if (hash == std::string::npos || code[hash] != '#') return "";
  const std::vector<Word> words = words_of(code);
  if (words.empty() || words[0].text != "include") return "";
  const std::string& text = file.text[line_index];
  const std::size_t open = text.find_first_of("<\"", words[0].begin);
  if (open == std::string::npos) return "";
  const std::size_t close = text.find(text[open] == '<' ? '>' : '"', open + 1);
  return text.substr(open, close == std::string::npos ? std::string::npos : close - open);
}

std::string own_header_of(const SourceFile& file, const std::vector<SourceFile>& sources) {
  if (!file.path.ends_with(".cpp")) return "";
  const std::string own = file.path.substr(0, file.path.size() - 4) + ".hpp";
  const bool exists = std::any_of(sources.begin(), sources.end(),
                                  [&](const SourceFile& other) { return other.path == own; });
  return exists ? own : "";
}

bool is_product(std::string_view path) {
  for (const char* folder : {"core/", "parallel/", "layers/", "io/", "apps/"}) {
    if (is_under(path, folder)) return true;
  }
  return false;
}

bool is_header(std::string_view path) {
  return path.ends_with(".hpp") || path.ends_with(".h") || path.ends_with(".cuh");
}

}  // namespace weft::architecture
