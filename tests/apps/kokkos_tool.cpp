// A Kokkos tool, loaded by a run that is tested: writes each event as a line to the file that
// WEFT_TEST_TOOL_FILE names. By the interface that Kokkos documents for tools, nothing of weft.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

std::FILE* file() {
  static std::FILE* const opened = std::fopen(std::getenv("WEFT_TEST_TOOL_FILE"), "w");
  return opened;
}

}  // namespace

extern "C" {

void kokkosp_init_library(int, std::uint64_t, std::uint32_t, void*) {
  std::fputs("init\n", file());
}
void kokkosp_finalize_library() { std::fclose(file()); }
void kokkosp_push_profile_region(const char* name) { std::fprintf(file(), "push %s\n", name); }
void kokkosp_pop_profile_region() { std::fputs("pop\n", file()); }
void kokkosp_begin_parallel_for(const char* name, std::uint32_t, std::uint64_t* id) {
  *id = 0;
  std::fprintf(file(), "kernel %s\n", name);
}
void kokkosp_end_parallel_for(std::uint64_t) {}

}  // extern "C"
