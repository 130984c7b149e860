// A source file as the rules see it: its lines, and the same lines without comments and literals.
// Enough of C++'s lexical grammar to not be fooled by a comment; not a parser.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace weft::architecture {

struct SourceFile {
  std::string path;               // relative to the root, with '/'
  std::vector<std::string> text;  // lines as written
  std::vector<std::string> code;  // same lengths; comments and the insides of literals are blanks
};

// A fault a rule found. Line 0: the file or folder as a whole.
struct Fault {
  std::string path;
  std::size_t line;
  std::string message;
};

// One "path:line: message" a line.
std::string print(const std::vector<Fault>& faults);

SourceFile make_source_file(std::string path, std::string_view content);

// All C++ sources under the product's folders, tests and perf, in order of path.
std::vector<SourceFile> read_sources(const std::filesystem::path& root);

// A name in a line of code.
struct Word {
  std::string text;
  std::size_t begin;  // column
};
std::vector<Word> words_of(const std::string& code_line);

// The header named by an #include on this line, with '<' or '"' in front; else empty.
std::string included_by(const SourceFile& file, std::size_t line_index);

// x.hpp beside an x.cpp, where `sources` holds it; else empty.
std::string own_header_of(const SourceFile& file, const std::vector<SourceFile>& sources);

inline bool is_under(std::string_view path, std::string_view prefix) {
  return path.starts_with(prefix);
}
// core, parallel, layers, io, apps: what ships.
bool is_product(std::string_view path);
bool is_header(std::string_view path);

}  // namespace weft::architecture
