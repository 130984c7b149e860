#include "parallel/comm/local_transport.hpp"

#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace weft {

namespace {

// Half a message: one side's buffer, and how far it got. Shared by its Transfer and the mailbox.
struct Post {
  enum class Stage { posted, copying, done, wrong_size };

  bool is_send = false;
  std::byte* data = nullptr;  // only read when is_send
  std::size_t num_bytes = 0;
  std::size_t peer_bytes = 0;  // set before wrong_size
  std::atomic<Stage> stage{Stage::posted};
};

using Key = std::tuple<int, std::uint16_t, std::uint32_t>;  // source, group, sequence

// What has been sent to one rank or is expected by it, and has met no counterpart yet. A queue
// never holds sends and receives together.
struct Mailbox {
  std::mutex mutex;
  std::map<Key, std::deque<std::shared_ptr<Post>>> queues;
};

void copy(const Post& send, Post& receive) {
  receive.peer_bytes = send.num_bytes;
  if (send.num_bytes != receive.num_bytes) return;
  if (send.num_bytes > 0) std::memcpy(receive.data, send.data, send.num_bytes);
}

}  // namespace

struct LocalWorld::State {
  explicit State(int num_ranks) : mailboxes(static_cast<std::size_t>(num_ranks)) {}

  void abort(const std::string& reason) noexcept {
    const std::lock_guard lock(abort_mutex);
    if (aborted.load()) return;  // the first cause counts
    try {
      abort_reason = reason;
    } catch (...) {  // out of memory: aborted all the same
    }
    aborted.store(true);
  }

  void require_running() {
    if (!aborted.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(abort_mutex);
    throw Error(ExitCode::peer, "the run was ended: " + abort_reason);
  }

  std::vector<Mailbox> mailboxes;
  std::atomic<bool> aborted{false};
  std::mutex abort_mutex;
  std::string abort_reason;
};

namespace {

class LocalTransfer final : public Transfer {
 public:
  LocalTransfer(std::shared_ptr<LocalWorld::State> world, int source, int target, Tag tag,
                std::shared_ptr<Post> post)
      : world_(std::move(world)),
        box_(&world_->mailboxes[static_cast<std::size_t>(target)]),
        key_(source, tag.group, tag.sequence),
        target_(target),
        post_(std::move(post)) {
    meet();
  }

  ~LocalTransfer() override { withdraw(); }

  bool done() override {
    switch (post_->stage.load(std::memory_order_acquire)) {
      case Post::Stage::done:
        return true;
      case Post::Stage::wrong_size:
        throw Error(ExitCode::failed, "rank " + std::to_string(std::get<0>(key_)) + " sent " +
                                          std::to_string(post_->peer_bytes) + " bytes where rank " +
                                          std::to_string(target_) + " expects " +
                                          std::to_string(post_->num_bytes));
      case Post::Stage::posted:
      case Post::Stage::copying:
        world_->require_running();
    }
    return false;
  }

 private:
  // Copies at once if the counterpart is there, else leaves the post for it.
  void meet() {
    std::shared_ptr<Post> other;
    {
      const std::lock_guard lock(box_->mutex);
      auto& queue = box_->queues[key_];
      if (queue.empty() || queue.front()->is_send == post_->is_send) {
        queue.push_back(post_);
        return;
      }
      other = queue.front();
      queue.pop_front();
      if (queue.empty()) box_->queues.erase(key_);
      other->stage.store(Post::Stage::copying, std::memory_order_relaxed);
    }
    Post& send = post_->is_send ? *post_ : *other;
    Post& receive = post_->is_send ? *other : *post_;
    copy(send, receive);
    const bool fits = send.num_bytes == receive.num_bytes;
    receive.stage.store(fits ? Post::Stage::done : Post::Stage::wrong_size,
                        std::memory_order_release);
    send.stage.store(Post::Stage::done, std::memory_order_release);
  }

  // The buffer may go after this: on the way out of an exception nobody must copy into it any more.
  void withdraw() {
    if (post_->stage.load(std::memory_order_acquire) == Post::Stage::done) return;
    {
      const std::lock_guard lock(box_->mutex);
      if (post_->stage.load(std::memory_order_relaxed) == Post::Stage::posted) {
        const auto entry = box_->queues.find(key_);
        std::erase(entry->second, post_);
        if (entry->second.empty()) box_->queues.erase(entry);
      }
    }
    while (post_->stage.load(std::memory_order_acquire) == Post::Stage::copying)
      std::this_thread::yield();
  }

  std::shared_ptr<LocalWorld::State> world_;
  Mailbox* box_;  // the receiver's, in *world_
  Key key_;
  int target_;
  std::shared_ptr<Post> post_;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalWorld::State> world, int rank)
      : world_(std::move(world)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_->mailboxes.size()); }
  std::string_view name() const override { return "local"; }

  std::unique_ptr<Transfer> start_send(int peer, Tag tag,
                                       std::span<const std::byte> bytes) override {
    require_peer(peer);
    auto post = std::make_shared<Post>();
    post->is_send = true;
    post->data = const_cast<std::byte*>(bytes.data());
    post->num_bytes = bytes.size();
    return std::make_unique<LocalTransfer>(world_, rank_, peer, tag, std::move(post));
  }

  std::unique_ptr<Transfer> start_receive(int peer, Tag tag, std::span<std::byte> bytes) override {
    require_peer(peer);
    auto post = std::make_shared<Post>();
    post->data = bytes.data();
    post->num_bytes = bytes.size();
    return std::make_unique<LocalTransfer>(world_, peer, rank_, tag, std::move(post));
  }

  void abort(ExitCode, const std::string& reason) noexcept override {
    try {
      world_->abort("rank " + std::to_string(rank_) + ": " + reason);
    } catch (...) {
      world_->abort(reason);
    }
  }

 private:
  void require_peer(int peer) {
    world_->require_running();
    require(peer >= 0 && peer < size() && peer != rank_, ExitCode::failed,
            "a message from rank " + std::to_string(rank_) + " to or from rank " +
                std::to_string(peer) + " of " + std::to_string(size()));
  }

  std::shared_ptr<LocalWorld::State> world_;
  int rank_;
};

}  // namespace

LocalWorld::LocalWorld(int size) {
  require(size >= 1, ExitCode::usage,
          "a world needs at least one rank, not " + std::to_string(size));
  state_ = std::make_shared<State>(size);
}

LocalWorld::~LocalWorld() = default;

int LocalWorld::size() const { return static_cast<int>(state_->mailboxes.size()); }

std::unique_ptr<Transport> LocalWorld::make_transport(int rank) const {
  require(rank >= 0 && rank < size(), ExitCode::usage,
          "rank " + std::to_string(rank) + " of a world of " + std::to_string(size()));
  return std::make_unique<LocalTransport>(state_, rank);
}

void LocalWorld::abort(ExitCode, const std::string& reason) noexcept { state_->abort(reason); }

void run_ranks(int num_ranks, const std::function<void(Transport&)>& body) {
  LocalWorld world(num_ranks);
  std::mutex mutex;
  std::exception_ptr first;
  const auto fail = [&](Transport& transport, ExitCode code, const std::string& reason) {
    {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    transport.abort(code, reason);
  };
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto transport = world.make_transport(rank);
      try {
        body(*transport);
      } catch (const Error& error) {
        fail(*transport, error.code(), error.what());
      } catch (const std::exception& error) {
        fail(*transport, ExitCode::failed, error.what());
      } catch (...) {
        fail(*transport, ExitCode::failed, "an exception without a message");
      }
    });
  }
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace weft
