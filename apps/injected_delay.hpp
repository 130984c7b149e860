// Delays that `weft profile` puts into a run on purpose: a slow rank, a slow loader, a slow link.
// They change no bit of the result.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "io/sample_set.hpp"
#include "parallel/comm/transport.hpp"

namespace weft {

struct InjectedDelay {
  // compute: before the forward pass of a step's first microbatch; data: in the loader's thread,
  // once for as many samples as the rank reads in a step; link: each message that the rank sends
  // begins so much later.
  enum class Place { compute, data, link };
  index_t rank = 0;
  Place place = Place::compute;
  std::chrono::nanoseconds duration{};
};

// "3:compute=25,0:data=10.5": milliseconds. Throws Error(usage) on what is none, and on ranks that
// the run has not.
std::vector<InjectedDelay> parse_delays(const std::string& text, index_t num_ranks);

// Of all those of the rank and place together; 0 where there are none.
std::chrono::nanoseconds delay_of(const std::vector<InjectedDelay>& delays, index_t rank,
                                  InjectedDelay::Place place);

// The same samples; each `every`-th read takes so much longer.
std::shared_ptr<const SampleSet> with_delay(std::shared_ptr<const SampleSet> samples,
                                            std::chrono::nanoseconds delay, index_t every);

// The same messages in the same order; what is sent begins so much later.
std::unique_ptr<Transport> with_delay(std::unique_ptr<Transport> transport,
                                      std::chrono::nanoseconds delay);

}  // namespace weft
