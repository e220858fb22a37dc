// Finds channels by name. Internal to the module; others include bus.h. directory.cc explains the algorithm.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/base/striped.h"
#include "divan/events/channel.h"

namespace divan::events {

class Directory;

/// Keeps a channel in its directory: a subscription and a publisher's handle each hold one. Movable, not
/// copyable; requires external synchronisation. The directory must outlive it.
class ChannelUse {
 public:
  ChannelUse() = default;
  ChannelUse(Directory& directory, std::shared_ptr<Channel> channel)
      : directory_(&directory), channel_(std::move(channel)) {}
  ChannelUse(ChannelUse&& other) noexcept = default;
  ChannelUse& operator=(ChannelUse&& other) noexcept;
  ~ChannelUse() { end(); }

  explicit operator bool() const { return channel_ != nullptr; }
  Channel& operator*() const { return *channel_; }
  Channel* operator->() const { return channel_.get(); }

 private:
  void end();

  Directory* directory_ = nullptr;
  std::shared_ptr<Channel> channel_;
};

/// The channels that are in use, by name. Thread-safe; find_subscribed() takes no lock.
class Directory {
 public:
  explicit Directory(Counters& counters) : counters_(counters) {}
  /// No channel may be in use.
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  /// Returns the channel of this name; creates it if it is missing.
  ChannelUse use(std::string_view name);

  /// The channel of this name if it has subscribers, else null.
  std::shared_ptr<Channel> find_subscribed(std::string_view name);

  /// All channels that have subscribers.
  std::vector<ChannelStats> subscribed();

 private:
  friend class ChannelUse;

  /// 32 KiB of chain heads: with ten thousand channels a chain has two or three.
  static constexpr std::size_t kChains = 4096;

  std::atomic<Channel*>& chain(std::size_t hash) { return chains_[hash % kChains]; }
  void release(Channel& channel);
  void unlink(Channel& channel);

  Counters& counters_;
  ReaderGate gate_;
  // Held to change a chain or a number of users.
  Mutex mutex_{MutexRank::channel_directory, "Directory::mutex_"};
  std::array<std::atomic<Channel*>, kChains> chains_{};
};

}  // namespace divan::events
