// Rules of exact mode that text can show (EXACT sections 4.1, 4.2, 4.4 and 7.12): order of sums,
// libm, contraction, flags.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/architecture/rules.hpp"

namespace weft::architecture {
namespace {

template <class Check>
void for_each_product_line(const Sources& sources, Check check) {
  for (const SourceFile& file : sources) {
    if (!is_product(file.path)) continue;
    for (std::size_t i = 0; i < file.code.size(); ++i) check(file, i, file.code[i]);
  }
}

bool in_kernels(std::string_view path) {
  return is_under(path, "core/kernels/") || is_under(path, "layers/");
}

// What stands in front of a name: "std::", "kernels::", "::", ".", "->", a word before a space, or
// any other character; empty at the start of a line.
std::string before(const std::string& line, std::size_t begin) {
  std::size_t end = begin;
  while (end > 0 && line[end - 1] == ' ') --end;
  if (end == 0) return "";
  const auto word_ending_at = [&](std::size_t stop) {
    std::size_t start = stop;
    while (start > 0 && (std::isalnum(static_cast<unsigned char>(line[start - 1])) != 0 ||
                         line[start - 1] == '_')) {
      --start;
    }
    return line.substr(start, stop - start);
  };
  if (end >= 2 && line.compare(end - 2, 2, "::") == 0) return word_ending_at(end - 2) + "::";
  if (end >= 2 && line.compare(end - 2, 2, "->") == 0) return "->";
  const std::string word = word_ending_at(end);
  return word.empty() ? line.substr(end - 1, 1) : word;
}

bool is_called(const std::string& line, const Word& word) {
  const std::size_t next = line.find_first_not_of(' ', word.begin + word.text.size());
  return next != std::string::npos && line[next] == '(';
}

bool is_library(const std::string& qualifier) {
  return qualifier == "std::" || qualifier == "::" || qualifier == "Kokkos::" ||
         qualifier == "Experimental::" || qualifier == "numbers::";
}

// True where the word in front of a name is a type: `float exp(float x)` declares and does not
// call.
bool is_declaration(const std::string& in_front) {
  static const std::set<std::string> keywords{"return", "else", "case",      "and",      "or",
                                              "not",    "do",   "co_return", "co_yield", "throw"};
  const bool is_word =
      !in_front.empty() && !in_front.ends_with("::") &&
      (std::isalpha(static_cast<unsigned char>(in_front[0])) != 0 || in_front[0] == '_');
  return is_word && !keywords.contains(in_front);
}

// True where a name is declared here, somebody's member, or in a namespace that is not a library's:
// `float exp(float x)`, `polynomial.exp(x)`, `math::exp(x)`.
bool is_ours_or_declared(const std::string& in_front) {
  if (in_front == "." || in_front == "->") return true;
  if (in_front.ends_with("::")) return !is_library(in_front);
  return is_declaration(in_front);
}

// libm's name of a word: builtin prefix and the f and l of float and long double taken off; empty
// where it is not in libm. max and min are here for their treatment of NaN and -0 (EXACT 3.25).
std::string libm_name(std::string word) {
  static const std::set<std::string> names{
      "exp",  "exp2",  "expm1", "log",   "log2", "log10", "log1p",    "tanh",   "sinh",
      "cosh", "atanh", "asinh", "acosh", "sin",  "cos",   "tan",      "asin",   "acos",
      "atan", "atan2", "erf",   "erfc",  "pow",  "cbrt",  "hypot",    "tgamma", "lgamma",
      "sqrt", "rsqrt", "fma",   "fmax",  "fmin", "fmod",  "remainder"};
  constexpr std::string_view builtin = "__builtin_";
  if (word.starts_with(builtin)) word.erase(0, builtin.size());
  if (names.contains(word)) return word;
  if (word.ends_with('f') || word.ends_with('l')) word.pop_back();
  return names.contains(word) ? word : "";
}

std::vector<std::string> arguments_of(const nlohmann::json& entry) {
  if (entry.contains("arguments")) return entry.at("arguments").get<std::vector<std::string>>();
  std::istringstream command(entry.at("command").get<std::string>());
  std::vector<std::string> arguments;
  for (std::string argument; command >> argument;) arguments.push_back(argument);
  return arguments;
}

}  // namespace

std::vector<Fault> no_foreign_reductions(const Sources& sources) {
  // Exact names, and beginnings of names.
  static const std::set<std::string> forbidden{
      "parallel_reduce", "parallel_scan",  "ScatterView", "transform_reduce",
      "inclusive_scan",  "exclusive_scan", "MPI_Reduce",  "MPI_Ireduce",
      "MPI_Accumulate",  "ncclAllReduce",  "ncclReduce",  "ncclReduceScatter"};
  static const std::vector<std::string> beginnings{"atomic_",     "MPI_Allreduce", "MPI_Iallreduce",
                                                   "MPI_Reduce_", "MPI_Ireduce_",  "MPI_Scan",
                                                   "MPI_Iscan",   "MPI_Exscan",    "MPI_Iexscan"};
  // These order memory between threads and add nothing.
  static const std::set<std::string> harmless{"atomic_flag", "atomic_thread_fence",
                                              "atomic_signal_fence"};
  std::vector<Fault> faults;
  for_each_product_line(sources, [&](const SourceFile& file, std::size_t i,
                                     const std::string& line) {
    const std::vector<Word> words = words_of(line);
    bool is_omp = false;
    for (const Word& word : words) {
      const bool begins =
          std::any_of(beginnings.begin(), beginnings.end(),
                      [&](const std::string& b) { return word.text.starts_with(b); });
      const bool is_std_reduce = word.text == "reduce" && before(line, word.begin) == "std::";
      is_omp = is_omp || word.text == "omp";
      const bool is_omp_reduction = is_omp && (word.text == "reduction" || word.text == "simd");
      if (forbidden.contains(word.text) || (begins && !harmless.contains(word.text)) ||
          is_std_reduce || is_omp_reduction) {
        faults.push_back({file.path, i + 1, word.text + ": its order of additions is not ours"});
      }
    }
  });
  return faults;
}

std::vector<Fault> no_libm_in_kernels(const Sources& sources) {
  std::vector<Fault> faults;
  // Functions of ours declared above in the same file: in their namespace a bare name finds them
  // and never looks for libm's.
  std::set<std::string> declared;
  for_each_product_line(sources, [&](const SourceFile& file, std::size_t i,
                                     const std::string& line) {
    if (!in_kernels(file.path)) return;
    if (i == 0) declared.clear();
    for (const Word& word : words_of(line)) {
      const std::string name = libm_name(word.text);
      if (name.empty()) continue;
      const std::string in_front = before(line, word.begin);
      if (is_called(line, word) && is_declaration(in_front)) declared.insert(word.text);
      // Named with its library, it need not even be called here: it may be passed on.
      const bool is_use = is_library(in_front) || word.text.starts_with("__builtin_") ||
                          (is_called(line, word) && !is_ours_or_declared(in_front) &&
                           !declared.contains(word.text));
      const bool is_allowed =
          (word.text == "sqrt" || word.text == "fma") && is_library(in_front) && in_front != "::";
      if (is_use && !is_allowed) {
        faults.push_back({file.path, i + 1,
                          word.text + ": libm differs by host; use our polynomials (qualified with "
                                      "their namespace), std::sqrt or std::fma"});
      }
    }
  });
  return faults;
}

std::vector<Fault> fma_is_explicit(const Sources& sources) {
  std::vector<Fault> faults;
  for_each_product_line(sources, [&](const SourceFile& file, std::size_t i,
                                     const std::string& line) {
    for (const Word& word : words_of(line)) {
      const bool is_fma = word.text == "fma" || word.text == "fmaf" || word.text == "fmal";
      const std::string in_front = before(line, word.begin);
      const bool is_bare = is_fma && is_called(line, word) && !is_ours_or_declared(in_front) &&
                           !(word.text == "fma" && (in_front == "std::" || in_front == "Kokkos::"));
      const bool is_intrinsic =
          word.text.starts_with("__builtin_fma") || word.text.starts_with("__fma") ||
          (word.text.starts_with("_mm") && (word.text.find("_fm") != std::string::npos ||
                                            word.text.find("_fnm") != std::string::npos));
      if (is_bare || is_intrinsic) {
        faults.push_back({file.path, i + 1, word.text + ": write std::fma"});
      }
    }
  });
  return faults;
}

std::vector<Fault> no_local_arithmetic_flags(const Sources& sources) {
  static const std::set<std::string> forbidden{"optimize",
                                               "FP_CONTRACT",
                                               "fast_math",
                                               "fp",
                                               "float_control",
                                               "_MM_SET_FLUSH_ZERO_MODE",
                                               "_MM_SET_DENORMALS_ZERO_MODE"};
  std::vector<Fault> faults;
  for_each_product_line(sources, [&](const SourceFile& file, std::size_t i,
                                     const std::string& line) {
    const std::vector<Word> words = words_of(line);
    const auto has = [&](std::string_view text) {
      return std::any_of(words.begin(), words.end(), [&](const Word& w) { return w.text == text; });
    };
    // Pragmas and attributes only; `fp` alone is a fine name for a variable.
    const bool is_pragma = has("pragma") || has("_Pragma") || has("__attribute__") || has("gnu");
    for (const Word& word : words) {
      if (forbidden.contains(word.text) && (is_pragma || word.text.starts_with("_MM_"))) {
        faults.push_back({file.path, i + 1, word.text + ": changes arithmetic in one place"});
      }
    }
  });
  return faults;
}

std::vector<Fault> arithmetic_flags(std::string_view compile_commands_json) {
  static const std::set<std::string> forbidden{"-ffast-math",        "-Ofast",
                                               "-fassociative-math", "-funsafe-math-optimizations",
                                               "-freciprocal-math",  "-ffinite-math-only",
                                               "-fno-signed-zeros",  "-fcx-limited-range",
                                               "--use_fast_math",    "-mdaz-ftz"};
  std::vector<Fault> faults;
  const nlohmann::json entries = nlohmann::json::parse(compile_commands_json);
  for (const nlohmann::json& entry : entries) {
    const std::string file = entry.at("file").get<std::string>();
    std::string contract = "not given";
    std::string errno_flag = "not given";
    std::string trapping = "not given";
    for (const std::string& argument : arguments_of(entry)) {
      // The last one wins, as in the compiler.
      if (argument.starts_with("-ffp-contract=")) contract = argument;
      if (argument == "-fmath-errno" || argument == "-fno-math-errno") errno_flag = argument;
      if (argument == "-ftrapping-math" || argument == "-fno-trapping-math") trapping = argument;
      if (forbidden.contains(argument)) faults.push_back({file, 0, "compiled with " + argument});
    }
    const auto demand = [&](const std::string& wanted, const std::string& found) {
      if (found != wanted) faults.push_back({file, 0, "needs " + wanted + ", last was: " + found});
    };
    demand("-ffp-contract=off", contract);
    demand("-fno-math-errno", errno_flag);
    demand("-fno-trapping-math", trapping);
  }
  if (entries.empty()) faults.push_back({"compile_commands.json", 0, "has no entries"});
  return faults;
}

}  // namespace weft::architecture
