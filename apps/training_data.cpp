#include "apps/training_data.hpp"

#include "io/cifar10_samples.hpp"

namespace weft {

TrainingData open_training_data(const TaskPlan& task, const std::string& folder) {
  auto samples = std::make_unique<Cifar10Samples>(folder);
  const index_t num_training = samples->images().num_samples(Cifar10::Part::training);
  Split split = make_split(num_training, task.train, task.validation, task.split_seed);
  split.test = all_of({num_training, samples->num_samples()});
  return {std::move(samples), std::move(split)};
}

}  // namespace weft
