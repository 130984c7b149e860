// Rules about single files and folders: how they open, how long they are, what they are called.
#include <algorithm>
#include <set>

#include "tests/architecture/rules.hpp"

namespace weft::architecture {
namespace {

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r") == std::string::npos;
}

enum class Scope { name_space, type, function, other };

struct OpenBrace {
  Scope scope;
  std::size_t line;
  std::string name;
};

bool contains_word(const std::string& head, std::string_view word) {
  const std::vector<Word> words = words_of(head);
  return std::any_of(words.begin(), words.end(), [&](const Word& w) { return w.text == word; });
}

// `template <...>` taken off the front.
std::string without_template(const std::string& head) {
  const std::vector<Word> words = words_of(head);
  if (words.empty() || words[0].text != "template") return head;
  int depth = 0;
  for (std::size_t i = words[0].begin; i < head.size(); ++i) {
    if (head[i] == '<') ++depth;
    if (head[i] == '>' && --depth == 0) return without_template(head.substr(i + 1));
  }
  return head;
}

// What a '{' opens, from the text between it and the last ';', '{' or '}'.
OpenBrace classify(const std::string& full_head, std::size_t line, bool inside_function,
                   bool after_member_initializer) {
  if (inside_function) return {Scope::other, line, ""};
  const std::string head = without_template(full_head);
  const std::vector<Word> words = words_of(head);
  const std::string first = words.empty() ? "" : words[0].text;
  if (contains_word(head, "namespace") || first == "extern") return {Scope::name_space, line, ""};
  if (first == "class" || first == "struct" || first == "enum" || first == "union") {
    return {Scope::type, line, ""};
  }
  // `Foo() : a_{1} {`: what follows the initializer's brace is still that function.
  if (after_member_initializer) return {Scope::function, line, "constructor"};
  const std::size_t open = head.find('(');
  if (open == std::string::npos) return {Scope::other, line, ""};
  std::string name;
  for (const Word& word : words) {
    if (word.begin < open) name = word.text;
  }
  return {Scope::function, line, name};
}

void function_lengths_of(const SourceFile& file, std::size_t max_lines,
                         std::vector<Fault>& faults) {
  std::vector<OpenBrace> open;
  std::string head;
  std::size_t head_line = 0;  // where the head's first word stands
  bool after_member_initializer = false;
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    const std::size_t first = line.find_first_not_of(" \t");
    if (first != std::string::npos && line[first] == '#') continue;
    for (const char c : line) {
      if (c == '{') {
        const bool inside = std::any_of(open.begin(), open.end(), [](const OpenBrace& brace) {
          return brace.scope == Scope::function || brace.scope == Scope::other;
        });
        open.push_back(
            classify(head, is_blank(head) ? i : head_line, inside, after_member_initializer));
        after_member_initializer = false;
        head.clear();
      } else if (c == '}') {
        if (open.empty()) return;  // unbalanced, for example by #if: no opinion
        const OpenBrace closed = open.back();
        open.pop_back();
        const std::size_t length = i - closed.line + 1;
        if (closed.scope == Scope::function && length > max_lines) {
          faults.push_back(
              {file.path, closed.line + 1, closed.name + ": " + std::to_string(length) + " lines"});
        }
        after_member_initializer = closed.scope == Scope::function;
        head.clear();
      } else if (c == ';') {
        head.clear();
        after_member_initializer = false;
      } else {
        if (is_blank(head) && c != ' ' && c != '\t') {
          head_line = i;
          after_member_initializer = after_member_initializer && c == ',';
        }
        head += c;
      }
    }
    head += ' ';
  }
}

}  // namespace

std::vector<Fault> files_open_with_comment(const Sources& sources) {
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) {
    if (!own_header_of(file, sources).empty()) continue;
    if (file.text.empty() || !(file.text[0].starts_with("//") || file.text[0].starts_with("/*"))) {
      faults.push_back({file.path, 1, "opens without a comment that says what it is and why"});
    }
  }
  return faults;
}

std::vector<Fault> headers_have_pragma_once(const Sources& sources) {
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) {
    if (!is_header(file.path)) continue;
    const auto first = std::find_if_not(file.code.begin(), file.code.end(), is_blank);
    if (first == file.code.end() || *first != "#pragma once") {
      faults.push_back({file.path, static_cast<std::size_t>(first - file.code.begin()) + 1,
                        "the first line of code must be #pragma once"});
    }
  }
  return faults;
}

std::vector<Fault> file_length(const Sources& sources, std::size_t max_lines) {
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) {
    if (file.text.size() > max_lines) {
      faults.push_back(
          {file.path, file.text.size(),
           std::to_string(file.text.size()) + " lines, more than " + std::to_string(max_lines)});
    }
  }
  return faults;
}

std::vector<Fault> function_length(const Sources& sources, std::size_t max_lines) {
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) function_lengths_of(file, max_lines, faults);
  return faults;
}

std::vector<Fault> file_names(const Sources& sources) {
  static const std::set<std::string> empty_words{"util",    "utils",  "utility", "helper",
                                                 "helpers", "common", "manager", "managers",
                                                 "misc",    "stuff"};
  std::vector<Fault> faults;
  for (const SourceFile& file : sources) {
    const std::string stem = file.path.substr(0, file.path.rfind('.'));
    std::string word;
    for (const char c : stem + "/") {
      if (c != '/' && c != '_' && c != '-' && c != '.') {
        word += c;
        continue;
      }
      if (empty_words.contains(word)) {
        faults.push_back({file.path, 0, "'" + word + "' says nothing about what is inside"});
      }
      word.clear();
    }
    const bool is_snake = std::all_of(stem.begin(), stem.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '/';
    });
    if (!is_snake) faults.push_back({file.path, 0, "file names are snake_case"});
  }
  return faults;
}

std::vector<Fault> root_entries(const std::vector<std::string>& entries,
                                const std::vector<std::string>& ignore) {
  static const std::set<std::string> allowed{"CMakeLists.txt",
                                             "README.md",
                                             "CMakePresets.json",
                                             "core",
                                             "parallel",
                                             "layers",
                                             "io",
                                             "apps",
                                             "tests",
                                             "perf"};
  const auto is_ignored = [&](const std::string& name) {
    return std::any_of(ignore.begin(), ignore.end(), [&](const std::string& line) {
      return line == name + "/" || line == "/" + name + "/" || line == name || line == "/" + name;
    });
  };
  std::vector<Fault> faults;
  for (const std::string& entry : entries) {
    if (entry.starts_with(".") || allowed.contains(entry)) continue;
    if ((entry == "build" || entry == "runs") && is_ignored(entry)) continue;
    faults.push_back({entry, 0, "does not belong in the root folder"});
  }
  for (const char* name : {"build", "runs"}) {
    if (!is_ignored(name)) faults.push_back({".gitignore", 0, std::string(name) + "/ is missing"});
  }
  return faults;
}

std::vector<Fault> readmes(const std::vector<Folder>& folders, int max_lines) {
  std::vector<Fault> faults;
  for (const Folder& folder : folders) {
    const std::string path = folder.path + "/README.md";
    if (folder.readme_lines < 0) {
      faults.push_back({path, 0, "is missing"});
    } else if (folder.readme_lines >= max_lines) {
      faults.push_back({path, static_cast<std::size_t>(folder.readme_lines),
                        "must have fewer than " + std::to_string(max_lines) + " lines"});
    }
  }
  return faults;
}

}  // namespace weft::architecture
