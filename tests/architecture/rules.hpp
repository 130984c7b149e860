// The rules of the code's structure, as functions from sources to faults.
// They look at text only, so each can be shown a violation in memory (test_rules.cpp); what they
// cannot see (a macro that hides an #include) is for reviewers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/source_file.hpp"

namespace weft::architecture {

using Sources = std::vector<SourceFile>;

// --- Who includes whom (include_rules.cpp)

// Our own headers: each folder includes only those that the folder law allows, by their path from
// the root.
std::vector<Fault> folder_law(const Sources& sources);
// Each third-party header only where its fence says.
std::vector<Fault> third_party_fences(const Sources& sources);
// The oracle includes the standard library and itself; its tests Catch2 as well.
std::vector<Fault> oracle_is_std_only(const Sources& sources);
// x.cpp includes x.hpp before anything else, which proves that x.hpp compiles alone. Headers
// without a .cpp are compiled alone by CMakeLists.txt.
std::vector<Fault> own_header_first(const Sources& sources);
// MPI_COMM_WORLD is named once.
std::vector<Fault> world_is_named_once(const Sources& sources);

// --- Exact mode (exact_rules.cpp; EXACT 7.12)

// No reduction whose order is not ours: parallel_reduce, atomics, MPI reductions, std::reduce, ...
std::vector<Fault> no_foreign_reductions(const Sources& sources);
// No libm in core/kernels and layers but sqrt and fma by their std:: or Kokkos:: names. Our own
// polynomials are called by their namespace (math::exp), or bare below their declaration.
std::vector<Fault> no_libm_in_kernels(const Sources& sources);
// fma only as std::fma (or Kokkos::fma): no intrinsics, no builtin.
std::vector<Fault> fma_is_explicit(const Sources& sources);
// No pragma or attribute that changes the arithmetic of one function.
std::vector<Fault> no_local_arithmetic_flags(const Sources& sources);
// The flags of every command in the text of a compile_commands.json.
std::vector<Fault> arithmetic_flags(std::string_view compile_commands_json);

// --- How files look (file_rules.cpp)

// What the file is, why it exists, what it is not; x.cpp may leave that to its x.hpp.
std::vector<Fault> files_open_with_comment(const Sources& sources);
std::vector<Fault> headers_have_pragma_once(const Sources& sources);
std::vector<Fault> file_length(const Sources& sources, std::size_t max_lines);
// Heuristic: braces of functions at namespace or class level.
std::vector<Fault> function_length(const Sources& sources, std::size_t max_lines);
std::vector<Fault> file_names(const Sources& sources);

// `entries`: names in the root folder; `ignore`: the lines of .gitignore.
std::vector<Fault> root_entries(const std::vector<std::string>& entries,
                                const std::vector<std::string>& ignore);

struct Folder {
  std::string path;
  int readme_lines;  // -1: there is none
};
std::vector<Fault> readmes(const std::vector<Folder>& folders, int max_lines);

}  // namespace weft::architecture
