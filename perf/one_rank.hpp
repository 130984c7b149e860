// What benchmarks of one rank's training steps share: data, a transport for one, and how to time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "apps/trainer.hpp"
#include "core/kokkos_session.hpp"
#include "io/synthetic_cifar10.hpp"
#include "parallel/comm/local_transport.hpp"

namespace weft::perf {

// 5000 synthetic images, made once a machine.
inline std::string data_folder() {
  const std::string path = (std::filesystem::temp_directory_path() / "weft-perf-cifar10").string();
  if (!std::filesystem::exists(path + "/test_batch.bin"))
    make_synthetic_cifar10(path, {.rows_per_file = 1000});
  return path;
}

// 4000 of them to train on.
inline TrainingData open_data() {
  TaskPlan task;
  task.train = 4000;
  task.validation = 1000;
  return open_training_data(task, data_folder());
}

class OneRank {
 public:
  OneRank() : data_(open_data()), world_(1), transport_(world_.make_transport(0)) {}

  // plan.task.train and validation as above.
  std::unique_ptr<Trainer> make_trainer(const Plan& plan) {
    return std::make_unique<Trainer>(plan, data_, *transport_);
  }

 private:
  const KokkosSession kokkos_{1};
  TrainingData data_;
  LocalWorld world_;
  std::unique_ptr<Transport> transport_;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline double seconds_of(const auto& work) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Numbers of the command line, in order; those that are not given stay as they are.
inline void read_arguments(int argc, char** argv, std::initializer_list<index_t*> numbers) {
  int i = 1;
  for (index_t* number : numbers) {
    if (i < argc) *number = std::atol(argv[i++]);
  }
}

}  // namespace weft::perf
