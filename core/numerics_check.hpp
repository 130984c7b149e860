// What must hold before a run in exact mode may start: equal machines and libraries on all ranks,
// no flushing of denormals on any thread, and matrix products that repeat bit for bit.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/context.hpp"
#include "core/kernels/gemm.hpp"

namespace weft {

// BLAS and its kernel, CPU model and flags, libc, compiler, Kokkos and back-end, and which build of
// weft this is, with its flags: one line. Ranks with different fingerprints must not work on one
// result (EXACT 4.8).
std::string numerics_fingerprint(const Device& device);

// Throws Error(failed) where a thread that computes flushes denormals to zero (EXACT 4.7).
void check_denormals(Context& context);

using Gemm = std::function<void(Context& context, const kernels::GemmCall& call)>;

// Runs each distinct shape and beta with two alignments and two leading dims, twice: throws
// Error(failed) with the shape where the bits differ (EXACT 4.6). Only shapes and beta of `calls`
// are used. `gemm`: another one for tests.
void probe_gemm(Context& context, std::span<const kernels::GemmCall> calls,
                const Gemm& gemm = kernels::gemm);

}  // namespace weft
