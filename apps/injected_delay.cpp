#include "apps/injected_delay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <deque>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "parallel/plan/nearest.hpp"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;

const std::vector<std::string> place_names = {"compute", "data", "link"};

[[noreturn]] void refuse(const std::string& part, const std::string& why) {
  throw Error(ExitCode::usage,
              fmt::format("--delay: \"{}\": {}; expected RANK:WHERE=MS, several apart by commas, "
                          "WHERE one of compute, data, link: \"3:compute=25,0:data=10\"",
                          part, why));
}

template <class Number>
Number number_in(std::string_view text, const std::string& part, const char* what) {
  Number value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || text.empty())
    refuse(part, fmt::format("found {} \"{}\"", what, text));
  return value;
}

InjectedDelay parse_one(const std::string& part, index_t num_ranks) {
  const std::size_t colon = part.find(':');
  const std::size_t equals = part.find('=');
  if (colon == std::string::npos || equals == std::string::npos || equals < colon)
    refuse(part, "a part is missing");
  const std::string_view text = part;
  InjectedDelay delay;
  delay.rank = number_in<index_t>(text.substr(0, colon), part, "rank");
  if (delay.rank < 0 || delay.rank >= num_ranks)
    refuse(part, fmt::format("the run has ranks 0 to {}", num_ranks - 1));
  const std::string place = part.substr(colon + 1, equals - colon - 1);
  const auto found = std::find(place_names.begin(), place_names.end(), place);
  if (found == place_names.end())
    refuse(part, fmt::format("found \"{}\", did you mean {}?", place,
                             place_names[nearest_name(place, place_names)]));
  delay.place = static_cast<InjectedDelay::Place>(found - place_names.begin());
  const auto ms = number_in<double>(text.substr(equals + 1), part, "milliseconds");
  if (!(ms > 0.0 && ms <= 60000.0)) refuse(part, "a delay is above 0 and at most 60000 ms");
  delay.duration = std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
  return delay;
}

class SlowSamples final : public SampleSet {
 public:
  SlowSamples(std::shared_ptr<const SampleSet> samples, std::chrono::nanoseconds delay,
              index_t every)
      : samples_(std::move(samples)), delay_(delay), every_(every) {}

  const std::string& folder() const override { return samples_->folder(); }
  index_t num_samples() const override { return samples_->num_samples(); }
  SampleForm form() const override { return samples_->form(); }
  const std::vector<std::string>& class_names() const override { return samples_->class_names(); }
  std::string fingerprint() const override { return samples_->fingerprint(); }
  void read(index_t index, const std::optional<Augmentation>& augmentation,
            const SampleRow& row) const override {
    if (num_reads_++ % every_ == 0) std::this_thread::sleep_for(delay_);
    samples_->read(index, augmentation, row);
  }

 private:
  std::shared_ptr<const SampleSet> samples_;
  std::chrono::nanoseconds delay_;
  index_t every_;
  mutable std::atomic<index_t> num_reads_{0};
};

class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> transport, std::chrono::nanoseconds delay)
      : transport_(std::move(transport)), delay_(delay) {}

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  std::string_view name() const override { return transport_->name(); }
  std::unique_ptr<Transfer> start_send(int peer, Tag tag,
                                       std::span<const std::byte> bytes) override {
    auto message = std::make_shared<Message>(Message{peer, tag, bytes, Clock::now() + delay_, {}});
    waiting_.push_back(message);
    return std::make_unique<Send>(*this, std::move(message));
  }
  std::unique_ptr<Transfer> start_receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    return transport_->start_receive(peer, tag, bytes);
  }
  std::uint64_t num_events() const override { return transport_->num_events(); }
  void abort(ExitCode code, const std::string& reason) noexcept override {
    transport_->abort(code, reason);
  }

 private:
  struct Message {
    int peer;
    Tag tag;
    std::span<const std::byte> bytes;
    Clock::time_point due;
    std::unique_ptr<Transfer> transfer;  // once it has begun
  };

  class Send final : public Transfer {
   public:
    Send(SlowTransport& transport, std::shared_ptr<Message> message)
        : transport_(transport), message_(std::move(message)) {}
    // One that an error leaves behind never begins.
    ~Send() override { std::erase(transport_.waiting_, message_); }
    bool done() override {
      transport_.begin_what_is_due();
      return message_->transfer && message_->transfer->done();
    }

   private:
    SlowTransport& transport_;
    std::shared_ptr<Message> message_;
  };

  // In the order in which they were started: messages with the same tag match in that order.
  void begin_what_is_due() {
    while (!waiting_.empty() && waiting_.front()->due <= Clock::now()) {
      Message& message = *waiting_.front();
      message.transfer = transport_->start_send(message.peer, message.tag, message.bytes);
      waiting_.pop_front();
    }
  }

  std::unique_ptr<Transport> transport_;
  std::chrono::nanoseconds delay_;
  std::deque<std::shared_ptr<Message>> waiting_;
};

}  // namespace

std::vector<InjectedDelay> parse_delays(const std::string& text, index_t num_ranks) {
  std::vector<InjectedDelay> delays;
  std::istringstream parts(text);
  std::string part;
  while (std::getline(parts, part, ',')) delays.push_back(parse_one(part, num_ranks));
  return delays;
}

std::chrono::nanoseconds delay_of(const std::vector<InjectedDelay>& delays, index_t rank,
                                  InjectedDelay::Place place) {
  std::chrono::nanoseconds sum{};
  for (const InjectedDelay& delay : delays) {
    if (delay.rank == rank && delay.place == place) sum += delay.duration;
  }
  return sum;
}

std::shared_ptr<const SampleSet> with_delay(std::shared_ptr<const SampleSet> samples,
                                            std::chrono::nanoseconds delay, index_t every) {
  if (delay.count() == 0) return samples;
  return std::make_shared<SlowSamples>(std::move(samples), delay, every);
}

std::unique_ptr<Transport> with_delay(std::unique_ptr<Transport> transport,
                                      std::chrono::nanoseconds delay) {
  if (delay.count() == 0) return transport;
  return std::make_unique<SlowTransport>(std::move(transport), delay);
}

}  // namespace weft
