// Every rule on sources in memory: some that break it, and innocent ones that look alike.
#include <catch2/catch.hpp>

#include "tests/architecture/rules.hpp"

using namespace weft::architecture;

namespace {

Sources one(const std::string& path, const std::string& content) {
  return {make_source_file(path, content)};
}

// The lines that a rule objects to, as "1 4 5".
std::string lines_of(const std::vector<Fault>& faults) {
  std::string result;
  for (const Fault& fault : faults) {
    if (!result.empty()) result += ' ';
    result += std::to_string(fault.line);
  }
  return result;
}

}  // namespace

TEST_CASE("comments and literals are blanked, and nothing else") {
  const SourceFile file = make_source_file("core/a.cpp", R"source(int a = 1'000; // exp(x)
const char* s = "exp(\"x\")"; char c = '"'; call(exp);
/* exp
   exp */ int b;
auto r = R"(exp
exp)"; exp;
)source");
  REQUIRE(file.code.size() == 6);
  CHECK(file.code[0] == "int a = 1'000;          ");
  CHECK(file.code[1] == "const char* s = \"          \"; char c = ' '; call(exp);");
  CHECK(file.code[2] == "      ");
  CHECK(file.code[3] == "          int b;");
  CHECK(file.code[4] == "auto r = R\"    ");
  CHECK(file.code[5] == "    \"; exp;");
  CHECK(file.text[2] == "/* exp");
}

TEST_CASE("faults print as file, line and message") {
  CHECK(print({{"core/a.hpp", 7, "wrong"}, {"b", 0, "x"}}) == "core/a.hpp:7: wrong\nb:0: x\n");
}

TEST_CASE("rule: folder law") {
  const auto law = [](const std::string& path, const std::string& header) {
    return !folder_law(one(path, "// c\n#include " + header + "\n")).empty();
  };
  // Each forbidden direction.
  CHECK(law("core/a.hpp", "\"parallel/comm/transport.hpp\""));
  CHECK(law("core/a.hpp", "<layers/mlp.hpp>"));
  CHECK(law("parallel/plan/plan.hpp", "\"layers/mlp.hpp\""));
  CHECK(law("parallel/comm/a.cpp", "\"io/file.hpp\""));
  for (const char* upper : {"mesh/mesh", "tensor/a", "data/a", "pipeline/a", "plan/plan"}) {
    CHECK(law("parallel/comm/a.cpp", "\"parallel/" + std::string(upper) + ".hpp\""));
  }
  CHECK(law("parallel/mesh/mesh.hpp", "\"parallel/tensor/a.hpp\""));
  CHECK(law("parallel/mesh/mesh.hpp", "\"parallel/plan/plan.hpp\""));
  for (const char* mine : {"tensor", "data", "pipeline"}) {
    for (const char* other : {"tensor", "data", "pipeline", "plan"}) {
      if (std::string(mine) == other) continue;
      CHECK(law("parallel/" + std::string(mine) + "/a.cpp",
                "\"parallel/" + std::string(other) + "/b.hpp\""));
    }
  }
  CHECK(law("layers/mlp.cpp", "\"io/file.hpp\""));
  CHECK(law("io/checkpoint/writer.cpp", "\"layers/mlp.hpp\""));
  CHECK(law("io/file.cpp", "\"apps/main.hpp\""));
  CHECK(law("apps/main.cpp", "\"tests/support/a.hpp\""));
  CHECK(law("tests/oracle/gelu.hpp", "\"core/range.hpp\""));
  CHECK(law("core/a.cpp", "\"a.hpp\""));
  CHECK(law("core/a.cpp", "\"../layers/mlp.hpp\""));
  // Each allowed one.
  CHECK_FALSE(law("core/kernels/gemm.cpp", "\"core/tensor.hpp\""));
  CHECK_FALSE(law("parallel/comm/a.cpp", "\"core/error.hpp\""));
  CHECK_FALSE(law("parallel/mesh/mesh.cpp", "\"parallel/comm/communicator.hpp\""));
  CHECK_FALSE(law("parallel/data/zero.cpp", "\"parallel/mesh/mesh.hpp\""));
  CHECK_FALSE(law("parallel/plan/planner.cpp", "\"parallel/pipeline/check.hpp\""));
  CHECK_FALSE(law("layers/mlp.cpp", "\"parallel/tensor/copy.hpp\""));
  CHECK_FALSE(law("io/plan_file.cpp", "\"parallel/plan/plan.hpp\""));
  CHECK_FALSE(law("apps/main.cpp", "\"io/plan_file.hpp\""));
  CHECK_FALSE(law("tests/layers/test_mlp.cpp", "\"tests/oracle/mlp.hpp\""));
  CHECK_FALSE(law("core/a.cpp", "<vector>"));
  // What is not an #include.
  CHECK(folder_law(one("core/a.cpp", "// #include \"io/a.hpp\"\n")).empty());
  CHECK(folder_law(one("core/a.cpp", "x = R\"(\n#include \"io/a.hpp\"\n)\";\n")).empty());
  CHECK(lines_of(folder_law(one("core/a.cpp", "// c\n\n  #  include \"io/a.hpp\"\n"))) == "3");
}

TEST_CASE("rule: third-party fences") {
  const auto fenced = [](const std::string& path, const std::string& header) {
    return !third_party_fences(one(path, "#include <" + header + ">\n")).empty();
  };
  CHECK(fenced("parallel/comm/communicator.cpp", "mpi.h"));
  CHECK(fenced("apps/runtime.cpp", "mpi.h"));
  CHECK_FALSE(fenced("parallel/comm/mpi_transport.cpp", "mpi.h"));
  CHECK_FALSE(fenced("io/checkpoint/hdf5_handles.hpp", "hdf5.h"));
  CHECK(fenced("io/checkpoint/manifest.cpp", "hdf5.h"));
  CHECK(fenced("io/checkpoint/hdf5_file.cpp", "hdf5.h"));
  CHECK_FALSE(fenced("io/checkpoint/hdf5_file.cpp", "io/checkpoint/hdf5_handles.hpp"));
  CHECK(fenced("io/checkpoint/manifest.cpp", "io/checkpoint/hdf5_handles.hpp"));
  CHECK(fenced("io/checkpoint/hdf5_file.hpp", "H5public.h"));
  CHECK_FALSE(fenced("parallel/comm/ucx_transport.cpp", "ucp/api/ucp.h"));
  CHECK(fenced("parallel/comm/transport_registry.cpp", "ucp/api/ucp.h"));
  CHECK(fenced("parallel/comm/nccl_transport.cpp", "nccl.h"));
  CHECK(fenced("io/loader.cpp", "Kokkos_Core.hpp"));
  CHECK(fenced("parallel/comm/algorithms.cpp", "Kokkos_Core.hpp"));
  CHECK(fenced("layers/mlp.hpp", "Kokkos_Core.hpp"));
  CHECK(fenced("apps/trainer.cpp", "Kokkos_Core.hpp"));
  CHECK_FALSE(fenced("core/tensor.hpp", "Kokkos_Core.hpp"));
  CHECK_FALSE(fenced("core/kernels/softmax.cpp", "Kokkos_Core.hpp"));
  CHECK_FALSE(fenced("layers/mlp.cpp", "Kokkos_Core.hpp"));
  CHECK_FALSE(fenced("apps/runtime.cpp", "Kokkos_Core.hpp"));
  CHECK_FALSE(fenced("tests/test_main.cpp", "Kokkos_Core.hpp"));
  CHECK(fenced("layers/row_linear.cpp", "cblas.h"));
  CHECK_FALSE(fenced("core/kernels/gemm_cblas.cpp", "cblas.h"));
  CHECK(fenced("apps/main.cpp", "toml++/toml.h"));
  CHECK(fenced("io/plan_file.hpp", "toml++/toml.h"));
  CHECK_FALSE(fenced("io/plan_file.cpp", "toml++/toml.h"));
  CHECK_FALSE(fenced("io/plan_file_keys.cpp", "toml++/toml.h"));
  CHECK_FALSE(fenced("io/name_table.cpp", "toml++/toml.h"));
  CHECK(fenced("io/plan_file.cpp", "CLI/CLI.hpp"));
  CHECK_FALSE(fenced("apps/main.cpp", "CLI/CLI.hpp"));
  CHECK(fenced("core/a.cpp", "catch2/catch.hpp"));
}

TEST_CASE("rule: the oracle is std only") {
  const auto fault = [](const std::string& path, const std::string& header) {
    return !oracle_is_std_only(one(path, "#include " + header + "\n")).empty();
  };
  CHECK(fault("tests/oracle/a.hpp", "<Kokkos_Core.hpp>"));
  CHECK(fault("tests/oracle/a.hpp", "<catch2/catch.hpp>"));
  CHECK(fault("tests/oracle/a.hpp", "<math.h>"));
  CHECK(fault("tests/oracle/a.hpp", "\"core/range.hpp\""));
  CHECK_FALSE(fault("tests/oracle/a.hpp", "<vector>"));
  CHECK_FALSE(fault("tests/oracle/a.hpp", "\"tests/oracle/matrix.hpp\""));
  CHECK_FALSE(fault("tests/oracle/test_a.cpp", "<catch2/catch.hpp>"));
  CHECK_FALSE(fault("tests/core/a.cpp", "\"core/range.hpp\""));
}

TEST_CASE("rule: a source includes its own header first") {
  const auto faults = [](const std::string& source) {
    return own_header_first({make_source_file("core/a.hpp", "// a\n#pragma once\n"),
                             make_source_file("core/a.cpp", source),
                             make_source_file("core/b.cpp", "#include <vector>\n")});
  };
  CHECK(lines_of(faults("// a\n#include <vector>\n#include \"core/a.hpp\"\n")) == "2");
  CHECK(faults("// a\nint a;\n").size() == 1);
  CHECK(faults("// a\n#include \"core/a.hpp\"\n#include <vector>\n").empty());
}

TEST_CASE("rule: MPI_COMM_WORLD once") {
  CHECK(lines_of(world_is_named_once(one("apps/a.cpp", "f(MPI_COMM_WORLD);\nMPI_COMM_WORLD;\n"))) ==
        "1 2");
  CHECK(world_is_named_once(one("apps/a.cpp", "f(MPI_COMM_WORLD); // MPI_COMM_WORLD\n")).empty());
}

TEST_CASE("rule: no reductions in foreign order") {
  const auto faulty = [](const std::string& line) {
    return !no_foreign_reductions(one("core/kernels/a.cpp", line + "\n")).empty();
  };
  CHECK(faulty("Kokkos::parallel_reduce(\"weft/a\", n, f, s);"));
  CHECK(faulty("parallel_scan(n, f);"));
  CHECK(faulty("Kokkos::atomic_add(&a, b);"));
  CHECK(faulty("std::atomic_ref<float> r(a);"));
  CHECK(faulty("Kokkos::Experimental::ScatterView<float*> v;"));
  CHECK(faulty("#pragma omp parallel for reduction(+ : sum)"));
  CHECK(faulty("#pragma omp simd"));
  CHECK(faulty("MPI_Allreduce(a, b, 1, MPI_FLOAT, MPI_SUM, c);"));
  CHECK(faulty("MPI_Iallreduce(a, b);"));
  CHECK(faulty("MPI_Reduce(a, b);"));
  CHECK(faulty("MPI_Reduce_scatter_block(a, b);"));
  CHECK(faulty("ncclAllReduce(a, b);"));
  CHECK(faulty("s = std::reduce(a, b);"));
  CHECK_FALSE(faulty("// parallel_reduce is forbidden"));
  CHECK_FALSE(faulty("std::atomic<bool> stop;"));
  CHECK_FALSE(faulty("std::atomic_flag flag; std::atomic_thread_fence(order);"));
  CHECK_FALSE(faulty("#pragma omp parallel for"));
  CHECK_FALSE(faulty("reduce_tree::Stack<float> s; reduce(a);"));
  CHECK(no_foreign_reductions(one("perf/a.cpp", "MPI_Allreduce(a, b);\n")).empty());
}

TEST_CASE("rule: no libm in kernels and layers") {
  const auto faulty = [](const std::string& line) {
    return !no_libm_in_kernels(one("core/kernels/a.hpp", line + "\n")).empty();
  };
  for (const char* call :
       {"y = std::exp(x);", "y = exp(x);", "y = expf(x);", "return log(x);", "y = ::tanh(x);",
        "y = Kokkos::erf(x);", "y = Kokkos::Experimental::pow(x, 2);", "f(std::tanh);",
        "using std::exp;", "y = __builtin_expf(x);", "y = sqrt(x);", "y = sqrtf(x);",
        "y = -cosf (x);", "y = 1 / std::log1p(x);", "y = std::fmax(a, b);"}) {
    INFO(call);
    CHECK(faulty(call));
  }
  for (const char* innocent :
       {"y = std::sqrt(x);", "y = Kokkos::sqrt(x);", "y = Kokkos::Experimental::sqrt(x);",
        "y = std::fma(a, b, c);", "inline float exp(float x) {", "y = math::exp(x);",
        "y = polynomial.exp(x);", "y = p->log(x);", "// exp(x)", "f(\"exp(x)\");",
        "expect(x); experiment(y); logits(x); power(y); log_softmax(z);", "float log = 1;",
        "std::exp_table t;"}) {
    INFO(innocent);
    CHECK_FALSE(faulty(innocent));
  }
  CHECK(no_libm_in_kernels(one("layers/a.cpp", "y = std::exp(x);\n")).size() == 1);
  // Below its declaration a bare name is ours; above it, or with a library's name, it is libm's.
  CHECK(lines_of(no_libm_in_kernels(one("core/kernels/math.hpp",
                                        "y = exp(x);\ninline float exp(float x);\n"
                                        "y = exp(x);\ny = std::exp(x);\ny = log(x);\n"))) ==
        "1 4 5");
  // Scalars of a schedule are functions of the step, in f64, equal on every rank.
  CHECK(no_libm_in_kernels(one("core/schedule.cpp", "y = std::cos(x);\n")).empty());
}

TEST_CASE("rule: fma only as std::fma") {
  const auto faulty = [](const std::string& line) {
    return !fma_is_explicit(one("parallel/comm/a.cpp", line + "\n")).empty();
  };
  CHECK(faulty("y = fma(a, b, c);"));
  CHECK(faulty("y = std::fmaf(a, b, c);"));
  CHECK(faulty("y = __builtin_fma(a, b, c);"));
  CHECK(faulty("y = __fmaf_rn(a, b, c);"));
  CHECK(faulty("y = _mm256_fmadd_ps(a, b, c);"));
  CHECK(faulty("y = _mm256_fnmadd_ps(a, b, c);"));
  CHECK_FALSE(faulty("y = std::fma(a, b, c);"));
  CHECK_FALSE(faulty("y = _mm256_add_ps(a, b); format(z);"));
}

TEST_CASE("rule: no pragma or attribute changes arithmetic") {
  const auto faulty = [](const std::string& line) {
    return !no_local_arithmetic_flags(one("core/a.cpp", line + "\n")).empty();
  };
  CHECK(faulty("#pragma GCC optimize(\"fast-math\")"));
  CHECK(faulty("#pragma STDC FP_CONTRACT ON"));
  CHECK(faulty("#pragma clang fp contract(fast)"));
  CHECK(faulty("__attribute__((optimize(\"Ofast\"))) void f();"));
  CHECK(faulty("_MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);"));
  CHECK_FALSE(faulty("#pragma once"));
  CHECK_FALSE(faulty("optimize(plan); int fp = 0;"));
}

TEST_CASE("rule: flags of exact mode") {
  const auto faults = [](const std::string& flags) {
    return arithmetic_flags(R"([{"directory": "/b", "command": "c++ -O2 )" + flags +
                            R"( -c a.cpp", "file": "a.cpp"}])");
  };
  const std::string good = "-ffp-contract=off -fno-math-errno -fno-trapping-math";
  CHECK(faults(good).empty());
  CHECK(faults("-ffp-contract=fast " + good).empty());
  CHECK(faults(good + " -ffp-contract=fast").size() == 1);
  CHECK(faults(good + " -fmath-errno").size() == 1);
  CHECK(faults(good + " -ffast-math").size() == 1);
  CHECK(faults(good + " -Ofast").size() == 1);
  CHECK(faults(good + " -fassociative-math").size() == 1);
  CHECK(faults("-fno-math-errno -fno-trapping-math").size() == 1);
  CHECK(faults("").size() == 3);
  CHECK(arithmetic_flags(R"([{"file": "a.cpp", "arguments": ["c++", "-Ofast"]}])").size() == 4);
  CHECK(arithmetic_flags("[]").size() == 1);
}

TEST_CASE("rule: files open with a comment, headers with #pragma once") {
  CHECK(files_open_with_comment(one("core/a.cpp", "#include <vector>\n")).size() == 1);
  CHECK(files_open_with_comment(one("core/a.cpp", "")).size() == 1);
  CHECK(files_open_with_comment(one("core/a.cpp", "// What.\n")).empty());
  CHECK(lines_of(files_open_with_comment({make_source_file("core/a.hpp", "// What.\n"),
                                          make_source_file("core/a.cpp", "int a;\n")})) == "");
  CHECK(lines_of(files_open_with_comment({make_source_file("core/a.hpp", "#pragma once\n"),
                                          make_source_file("core/a.cpp", "// What.\n")})) == "1");
  const auto faults = [](const std::string& content) {
    return lines_of(headers_have_pragma_once(one("core/a.hpp", content)));
  };
  CHECK(faults("// a\n\n#include <vector>\n#pragma once\n") == "3");
  CHECK(faults("// a\n#ifndef A_HPP\n") == "2");
  CHECK(faults("// #pragma once\n") == "2");
  CHECK(faults("// a\n// b\n\n#pragma once\n") == "");
  CHECK(headers_have_pragma_once(one("core/a.cpp", "int a;\n")).empty());
}

TEST_CASE("rule: length of files") {
  CHECK(file_length(one("core/a.cpp", "a\nb\nc\n"), 2).size() == 1);
  CHECK(file_length(one("core/a.cpp", "a\nb\n"), 2).empty());
}

TEST_CASE("rule: length of functions") {
  const auto lines = [](const std::string& content) {
    return lines_of(function_length(one("core/a.cpp", content), 3));
  };
  CHECK(lines("namespace a {\nint f(int x) {\n  if (x) {\n  }\n}\n}\n") == "2");
  CHECK(lines("namespace a {\nint f(int x) {\n  return x;\n}\n}\n") == "");
  CHECK(lines("struct S {\n  int a;\n  int b;\n  int f() const {\n\n\n  }\n};\n") == "4");
  CHECK(lines("template <class T>\nstruct S {\n  int a;\n  int b;\n};\n") == "");
  CHECK(lines("template <class T>\nT f(T x) {\n\n\n}\n") == "1");
  CHECK(lines("S::S(int a)\n    : a_{a},\n      b_{a} {\n\n\n\n}\n") != "");
  CHECK(lines("const int table[] = {\n1,\n2,\n3,\n};\n") == "");
}

TEST_CASE("rule: file names") {
  for (const char* path : {"core/utils.hpp", "core/string_helpers.cpp", "io/common/a.hpp",
                           "parallel/comm/device_manager.hpp", "core/ReduceTree.hpp"}) {
    CHECK(file_names(one(path, "")).size() == 1);
  }
  CHECK(file_names(one("parallel/comm/communicator.hpp", "")).empty());
  CHECK(file_names(one("core/reduce_tree.hpp", "")).empty());
}

TEST_CASE("rule: the root folder") {
  const std::vector<std::string> ignore{"build/", "runs/"};
  CHECK(root_entries({"CMakeLists.txt", "README.md", ".git", "core", "build", "runs"}, ignore)
            .empty());
  CHECK(root_entries({"notes.md"}, ignore).size() == 1);
  CHECK(root_entries({"cmake", "third_party"}, ignore).size() == 2);
  CHECK(root_entries({"build"}, {"runs/"}).size() == 2);
}

TEST_CASE("rule: READMEs") {
  CHECK(readmes({{"core", -1}}, 80).size() == 1);
  CHECK(readmes({{"core", 80}}, 80).size() == 1);
  CHECK(readmes({{"core", 79}, {"io", 1}}, 80).empty());
}
