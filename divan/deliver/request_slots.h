// How many requests of a process may be under way, and how types of jobs share them.
//
// A request has a slot of one of three classes:
// - A type whose last response came within a second is fast, and may use all slots.
// - The others share three quarters of them.
// - An eighth is for the first request of types that have not been tried, if none of those is free.
// A type has at most half of the slots that the others leave free. So receivers that do not respond delay
// those that do as little as possible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace divan::deliver {

/// How soon the receiver of a type has responded last.
enum class Speed : std::uint8_t { unknown, fast, slow };

/// Not thread-safe.
class RequestSlots {
 public:
  struct Limits {
    std::size_t requests = 1;
    std::size_t requests_of_host = 1;
    std::size_t bytes = SIZE_MAX;  ///< of bodies: when they are reached, there is no free slot
  };
  enum class Class : std::uint8_t { fast, other, first };

  /// Of later requests.
  void set_limits(const Limits& limits) { limits_ = limits; }

  struct Free {
    std::size_t count = 0;
    Class slot_class{};  ///< of those slots
  };
  /// The free slots for requests to a host, of a type that has `own` requests under way.
  Free free(const std::string& host, std::size_t own, Speed speed) const;

  void take(const std::string& host, Class slot_class, std::size_t bytes);
  /// Returns a slot that was taken with these arguments.
  void give_back(const std::string& host, Class slot_class, std::size_t bytes);

 private:
  static constexpr std::size_t kClasses = 3;
  std::size_t used(Class slot_class) const { return used_[static_cast<std::size_t>(slot_class)]; }

  Limits limits_{};
  std::array<std::size_t, kClasses> used_{};
  std::size_t bytes_ = 0;
  std::map<std::string, std::size_t> hosts_;  // used slots
};

}  // namespace divan::deliver
