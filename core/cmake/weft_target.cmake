include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-mprefer-vector-width=512 WEFT_TAKES_WIDE_VECTORS)

# Settings that every target of ours gets: language, warnings, and the flags without which exact
# mode does not hold (EXACT section 4.1). On targets, never on directories.
function(weft_target target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow $<$<BOOL:${WEFT_WERROR}>:-Werror>)
  # g++ 12 sees overlapping copies in "text" + std::string (its bug 105651); later versions do not.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()

  # No contraction: a*b+c must not become an fma in one kernel and not in another.
  # No errno, no trapping: sqrt and comparisons vectorise; no bit changes.
  target_compile_options(${target} PRIVATE -ffp-contract=off -fno-math-errno -fno-trapping-math)
  if(WEFT_ARCH)
    target_compile_options(${target} PRIVATE -march=${WEFT_ARCH})
    # Where there are registers of 512 bits, GELU takes a quarter less time in them.
    if(WEFT_TAKES_WIDE_VECTORS)
      target_compile_options(${target} PRIVATE -mprefer-vector-width=512)
    endif()
  endif()
  if(WEFT_CUDA)
    target_compile_options(${target} PRIVATE --fmad=false --extended-lambda)
    # fmt 9 takes nvcc for a compiler without constexpr, which C++20's checks of format strings need.
    target_compile_definitions(${target} PRIVATE WEFT_WITH_CUDA FMT_USE_CONSTEXPR=1)
  endif()
  if(WEFT_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(WEFT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${WEFT_SANITIZE})
    # Instrumented code hides from g++ 12 which member of a std::variant is set.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
  endif()
endfunction()
