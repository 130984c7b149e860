#include "parallel/comm/request.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "parallel/comm/operation.hpp"

namespace weft {

Request::Request() = default;
Request::Request(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}
Request::Request(Request&&) noexcept = default;

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    require_gone();
    operation_ = std::move(other.operation_);
  }
  return *this;
}

Request::~Request() { require_gone(); }

bool Request::is_done() const { return !operation_ || operation_->is_done(); }

bool Request::test() {
  if (!operation_) return true;
  auto operation = std::move(operation_);  // gone if it throws
  if (operation->test()) return true;
  operation_ = std::move(operation);
  return false;
}

void Request::wait() {
  if (!operation_) return;
  const auto operation = std::move(operation_);
  operation->wait();
}

void Request::require_gone() noexcept {
  if (!operation_ || operation_->may_go() || std::uncaught_exceptions() > 0) return;
  std::fprintf(stderr, "%s: its Request was dropped before wait()\n",
               operation_->describe().c_str());
  std::terminate();
}

}  // namespace weft
